"""Rows of a table, by word."""

from tiedtools.kernels.elementwise import add_to_rows, gather_rows
from tiedtools.network.buffers import Buffers


class Embedding:
    """x_t = E[w_t].        E  [V, m], parameter `name`"""

    def __init__(self, params, team, name, V, m):
        params.add(name, (V, m), by_rows=True)
        self.params, self.team, self.name, self.m = params, team, name, m
        self.buffers = Buffers(params.dtype)

    def forward(self, ids):
        """int32 [T, B] -> [T, B, m]"""
        self.ids = ids
        y = self.buffers("y", *ids.shape, self.m)
        self.team(gather_rows, y.reshape(ids.size, -1), self.params.padded(self.name), ids.ravel())
        return y

    def backward(self, dy):
        """dy [T, B, m]: add each row to the gradient of its word's vector."""
        ids = self.ids.ravel()
        grad = self.params.row_gradient(self.name, ids)
        self.team(add_to_rows, grad, dy.reshape(ids.size, -1), ids)
