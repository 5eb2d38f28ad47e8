"""The input embedding layer."""

from tiedtools.network.buffers import Buffers


class Embedding:
    """Embedding layer: x_t = E[w_t], with E from a word table."""

    def __init__(self, params, table):
        self.table, self.buffers = table, Buffers(params.dtype)

    def forward(self, ids, step):
        """Look up embeddings: int32 [T, B] -> [T, B, m]."""
        self.ids = ids.ravel()
        y = self.buffers("y", *ids.shape, self.table.m)
        self.table.rows(y.reshape(ids.size, -1), self.ids)
        return y

    def backward(self, dy):
        """Add each row of dy [T, B, m] to the gradient of its word's embedding."""
        self.table.add_to_rows(dy.reshape(self.ids.size, -1), self.ids)
