"""The MorphSum encoder."""

from tiedtools.kernels.output import compose
from tiedtools.network.buffers import Buffers


class MorphSum:
    """A word's vector is the sum of its subword embeddings: Assylbekov and Takhanov 2018, section 4."""

    def __init__(self, params, name, S, d, start):
        self.params, self.team, self.d, self.E = params, params.team, d, f"{name}.emb.E"
        params.add(self.E, (S, d), start.embeddings or start.weights)
        self.buffers = Buffers(params.dtype)

    def forward(self, codes, step):
        self.codes, y = codes, self.buffers("y", 1, len(codes), self.d)
        self.team(compose.sum_rows, y[0], self.params.padded(self.E), codes)
        return y

    def backward(self, dy):
        dE, accumulate = self.params.gradient(self.E)
        self.team(compose.add_to_summed, dE, dy[0], self.codes, accumulate)
