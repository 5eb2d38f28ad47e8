"""The MorphSum encoder."""

import numpy as np

from tiedtools.kernels import compose
from tiedtools.network.buffers import Buffers


class MorphSum:
    """A word's vector is the sum of its subword embeddings: Assylbekov and Takhanov 2018, section 4."""

    def __init__(self, params, name, codes, S, d, start):
        self.params, self.team, self.codes, self.d, self.E = params, params.team, codes, d, f"{name}.emb.E"
        params.add(self.E, (S, d), start.weights)
        self.buffers = Buffers(params.dtype)

    def forward(self, words, step):
        self.rows = self.codes if words is None else self.codes[words]
        y = self.buffers("y", 1, len(self.rows), self.d)
        self.team(compose.sum_rows, y[0], self.params.padded(self.E), self.rows)
        return y

    def backward(self, dy):
        dE, accumulate = self.params.gradient(self.E)
        self.team(compose.add_to_summed, dE, dy[0], self.rows, accumulate)


def distinct(codes):
    """Return (sorted distinct codes, without -1; codes replaced by their positions there, int32)."""
    found, at = np.unique(codes, return_inverse=True)
    none = int(found.size and found[0] < 0)
    return found[none:], (at.reshape(codes.shape) - none).astype(np.int32)
