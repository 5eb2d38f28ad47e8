"""The MorphSum encoder."""

import numpy as np

from tiedtools.kernels.output import compose
from tiedtools.network.buffers import Buffers
from tiedtools.network.params import Params
from tiedtools.network.start import Start
from tiedtools.network.step import Step


class MorphSum:
    """A word's vector is the sum of its subword embeddings: Assylbekov and Takhanov 2018, section 4."""

    def __init__(self, params: Params, name: str, S: int, d: int, start: Start) -> None:
        self.params, self.team, self.d, self.E = params, params.team, d, f"{name}.emb.E"
        params.add(self.E, (S, d), start.embeddings or start.weights)
        self.buffers = Buffers(params.dtype)

    def forward(self, codes: np.ndarray, step: Step) -> np.ndarray:
        self.codes, y = codes, self.buffers("y", 1, len(codes), self.d)
        self.team(compose.sum_rows, y[0], self.params.padded(self.E), codes)
        return y

    def backward(self, dy: np.ndarray) -> None:
        dE, accumulate = self.params.gradient(self.E)
        self.team(compose.add_to_summed, dE, dy[0], self.codes, accumulate)
