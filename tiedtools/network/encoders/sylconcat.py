"""The SylConcat encoder."""

import numpy as np

from tiedtools.kernels import compose
from tiedtools.network.buffers import Buffers
from tiedtools.network.encoders.morphsum import distinct
from tiedtools.network.encoders.positions import Positions


class SylConcat:
    """A word's vector is a projection of its concatenated syllable embeddings: Assylbekov et al. 2017.

    The words share few pairs of a syllable and its position. Each pair is projected once, and a word is a sum of pairs.

    Parameter: name.proj.W  [L d, n]
    """

    def __init__(self, params, name, codes, S, d, n, start):
        E, self.S, L = f"{name}.emb.E", S, codes.shape[1]
        params.add(E, (S, d), start.weights)
        self.pairs = np.where(codes < 0, -1, codes + S * np.arange(L, dtype=np.int32))
        self.all = distinct(self.pairs)
        self.project = Positions(params, E, f"{name}.proj.W", L, d, n, start)
        self.params, self.team, self.n, self.buffers = params, params.team, n, Buffers(params.dtype)
        self.ends = S * np.arange(L + 1)

    def forward(self, words, step):
        pairs, self.rows = self.all if words is None else distinct(self.pairs[words])
        self.T = self.project.forward(pairs % self.S, np.searchsorted(pairs, self.ends).tolist())
        y = self.buffers("y", 1, len(self.rows), self.n)
        self.team(compose.sum_rows, y[0], self.T, self.rows)
        return y

    def backward(self, dy):
        dT = self.buffers("dT", len(self.T), self.n)
        self.team(compose.add_to_summed, dT, dy[0], self.rows, False)
        self.project.backward(dT)
