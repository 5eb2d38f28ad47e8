"""The input embedding layer."""

import numpy as np

from tiedtools.network.buffers import Buffers
from tiedtools.network.params import Params
from tiedtools.network.step import Step
from tiedtools.network.tables import Table


class Embedding:
    """Embedding layer: x_t = E[w_t], with E from a word table; the vector of ID -1 is 0."""

    def __init__(self, params: Params, table: Table) -> None:
        self.table, self.buffers = table, Buffers(params.dtype)

    def forward(self, ids: np.ndarray, step: Step) -> np.ndarray:
        """Look up embeddings: int32 [T, B] -> [T, B, m]."""
        self.unread = np.flatnonzero(ids.ravel() < 0)
        self.ids = np.maximum(ids.ravel(), 0) if self.unread.size else ids.ravel()
        y = self.buffers("y", *ids.shape, self.table.m)
        self.table.rows(y.reshape(ids.size, -1), self.ids)
        y.reshape(ids.size, -1)[self.unread] = 0
        return y

    def backward(self, dy: np.ndarray) -> None:
        """Add each row of dy [T, B, m] to the gradient of its word's embedding; rows of ID -1 of dy become 0."""
        rows = dy.reshape(self.ids.size, -1)
        rows[self.unread] = 0
        self.table.add_to_rows(rows, self.ids)
