"""Word tables: the vectors of the vocabulary as one side of a network sees them, input or output.

    matrix()                  [V, m], rows filled up
    rows(y, ids)              y = the rows of ids, int32 [N]
    gradient()                as Params.gradient, of all rows
    row_gradient(ids)         as Params.row_gradient
    add_to_rows(dy, ids)      add to the gradients of these rows, which may come again

Input embeddings, output layers and the augmented loss take a table each; weight tying is two tables of one array.
"""

from tiedtools.kernels.elementwise import add_to_rows, gather_rows


class Lookup:
    """Rows of a parameter `name` [V, m]. start, by_rows: see Params.add."""

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
