"""Word tables: the input or output embeddings of a network.

    matrix()                  [V, m], with padded rows
    rows(y, ids)              y = rows `ids`, int32 [N]
    gradient()                like Params.gradient, for all rows
    row_gradient(ids)         like Params.row_gradient
    add_to_rows(dy, ids)      add dy to the gradients of rows `ids`, which may repeat

Input embeddings, output layers, and the augmented loss take one table each; with weight tying, tables share an array.
"""

from tiedtools.kernels.elementwise import add_to_rows, gather_rows


class Lookup:
    """A word table whose rows are those of parameter `name` [V, m]. start, by_rows: see Params.add."""

    def __init__(self, params, name, V, m, start=None, by_rows=False):
        params.add(name, (V, m), start, by_rows)
        self.params, self.name, self.V, self.m = params, name, V, m

    def matrix(self):
        return self.params.padded(self.name)

    def rows(self, y, ids):
        self.params.team(gather_rows, y, self.matrix(), ids)

    def gradient(self):
        return self.params.gradient(self.name)

    def row_gradient(self, ids):
        return self.params.row_gradient(self.name, ids)

    def add_to_rows(self, dy, ids):
        self.params.team(add_to_rows, self.row_gradient(ids), dy, ids)
