"""The CharCNN encoder."""

import numpy as np

from tiedtools.kernels.output import compose
from tiedtools.network.buffers import Buffers
from tiedtools.network.encoders.positions import Positions
from tiedtools.network.params import Params
from tiedtools.network.start import Start
from tiedtools.network.step import Step


class CharCNN:
    """Convolutions over a word's characters, tanh, and the maximum over time: Kim et al. 2016, section 3.

    Words are padded to the longest one, and the windows of padding take part in the maximum. The products of each
    character with each position of a window are computed once, so that a window is a sum of rows.

    L        length of the longest word
    filters  number of filters of widths 1, 2, ...: f_1, f_2, ...; n is their sum
    Parameters: name.cnn.W1 [d, f_1], name.cnn.W2 [2d, f_2], ..., and biases name.cnn.b1 [f_1], ...
    """

    def __init__(self, params: Params, name: str, L: int, C: int, d: int, filters: list[int], start: Start) -> None:
        E, self.C = f"{name}.emb.E", C
        params.add(E, (C, d), start.embeddings or start.weights)
        self.params, self.team, self.n = params, params.team, sum(filters)
        self.longest = max(L, len(filters))
        ends, self.layers = np.cumsum([0, *filters]).tolist(), []
        for width, f in enumerate(filters, 1):
            b = f"{name}.cnn.b{width}"
            table = Positions(params, E, f"{name}.cnn.W{width}", width, d, f, start)
            params.add(b, (f,), start.biases)
            columns = slice(ends[width - 1], ends[width])
            self.layers.append((width, table, b, columns, np.tile(np.arange(C), width)))
        self.buffers = Buffers(params.dtype)

    def forward(self, codes: np.ndarray, step: Step) -> np.ndarray:
        self.codes, N, buffer = codes, len(codes), self.buffers
        self.y, self.best = buffer("y", 1, N, self.n), buffer("best", N, self.n, dtype=np.int32)
        scratch = self.scratch()
        for width, table, b, columns, units in self.layers:
            T = table.forward(units, range(0, self.C * width + 1, self.C)).reshape(width, self.C, -1)
            outputs = self.y[0, :, columns], self.best[:, columns]
            self.team(compose.convolve, *outputs, scratch, T, self.params[b], codes, self.longest)
        return self.y

    def scratch(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the scratch arrays of the kernels."""
        threads, widest = self.team.threads, max(table.n for _, table, *_ in self.layers)
        return self.buffers("sums", threads, 2, widest), self.buffers("places", threads, widest, dtype=np.int32)

    def backward(self, dy: np.ndarray) -> None:
        scratch = self.scratch()
        for width, table, b, columns, _ in self.layers:
            dT = self.buffers(f"dT{width}", self.team.threads, width * self.C + 1, table.n)
            db, accumulate = self.params.gradient(b)
            inputs = dy[0, :, columns], self.y[0, :, columns], self.best[:, columns], self.codes, width, self.longest
            self.team(compose.convolve_back, dT, db, scratch, *inputs, accumulate)
            table.backward(dT[0, :-1])
