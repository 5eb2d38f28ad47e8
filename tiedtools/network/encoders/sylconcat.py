"""The SylConcat encoder."""

import numpy as np

from tiedtools.kernels.output import compose
from tiedtools.network.buffers import Buffers
from tiedtools.network.encoders.positions import Positions
from tiedtools.network.params import Params
from tiedtools.network.start import Start
from tiedtools.network.step import Step


class SylConcat:
    """A word's vector is a projection of its concatenated syllable embeddings: Assylbekov et al. 2017.

    The words share few pairs of a syllable and its position. Each pair is projected once, and a word is a sum of pairs.

    L  greatest number of syllables in a word
    Parameter: name.proj.W  [L d, n]
    """

    def __init__(self, params: Params, name: str, L: int, S: int, d: int, n: int, start: Start) -> None:
        E, self.S = f"{name}.emb.E", S
        params.add(E, (S, d), start.embeddings or start.weights)
        self.project = Positions(params, E, f"{name}.proj.W", L, d, n, start)
        self.params, self.team, self.n, self.buffers = params, params.team, n, Buffers(params.dtype)
        self.ends, self.codes = S * np.arange(L + 1), np.empty(0)

    def forward(self, codes: np.ndarray, step: Step) -> np.ndarray:
        if codes is not self.codes:  # the whole vocabulary is one array in all steps
            self.codes, (self.pairs, self.rows) = codes, distinct_pairs(codes, self.S)
        pairs = self.pairs
        self.T = self.project.forward(pairs % self.S, np.searchsorted(pairs, self.ends).tolist())
        y = self.buffers("y", 1, len(self.rows), self.n)
        self.team(compose.sum_rows, y[0], self.T, self.rows)
        return y

    def backward(self, dy: np.ndarray) -> None:
        dT = self.buffers("dT", len(self.T), self.n)
        self.team(compose.add_to_summed, dT, dy[0], self.rows, False)
        self.project.backward(dT)


def distinct_pairs(codes: np.ndarray, S: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (sorted distinct pairs, as S position + code; the index of each code's pair, int32, -1: padding)."""
    pairs = np.where(codes < 0, -1, codes + S * np.arange(codes.shape[1]))
    distinct, index = np.unique(pairs, return_inverse=True)
    padding = int(distinct.size and distinct[0] < 0)
    return distinct[padding:], (index.reshape(codes.shape) - padding).astype(np.int32)
