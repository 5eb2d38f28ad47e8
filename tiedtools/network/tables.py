"""Word tables: the input or output embeddings of a network.

    matrix()                  [V, m], with padded rows
    rows(y, ids)              y = rows `ids`, int32 [N]
    gradient()                like Params.gradient, for all rows
    add_to_rows(dy, ids)      add dy to the gradients of rows `ids`, which may repeat

Input embeddings, output layers, and the augmented loss take one table each; with weight tying, tables share an array.
"""

from typing import Any

import numpy as np

from tiedtools.kernels.base.elementwise import add_to_rows, gather_rows
from tiedtools.network.network import Step
from tiedtools.network.params import Buffers, Fill, Params


class Lookup:
    """A word table whose rows are the rows of parameter `name` [V, m]. start, by_rows: see Params.add."""

    def __init__(
        self, params: Params, name: str, V: int, m: int, start: Fill | None = None, by_rows: bool = False
    ) -> None:
        params.add(name, (V, m), start, by_rows)
        self.params, self.name, self.V, self.m = params, name, V, m

    def matrix(self) -> np.ndarray:
        return self.params.padded(self.name)

    def rows(self, y: np.ndarray, ids: np.ndarray) -> None:
        self.params.team.over(y.size, gather_rows, y, self.matrix(), ids)

    def gradient(self) -> tuple[np.ndarray, bool]:
        return self.params.gradient(self.name)

    def add_to_rows(self, dy: np.ndarray, ids: np.ndarray) -> None:
        self.params.team(add_to_rows, self.params.row_gradient(self.name, ids), dy, ids)


class Composed:
    """A word table whose rows layers compose from subwords: the first is an encoder, the others map [1, V', m].

    A network calls `begin` before and `backward` after each step. In training, only the words that the step needs are
    composed, and `matrix` and `gradient` have a row for each word only if it needs all of them. Otherwise, the whole
    vocabulary is composed, once for each version of the parameters.

    codes   int32 [V, L], the subwords of each word: see encoders
    needed  functions from a Step to word IDs that the step needs; empty: all words
    """

    words: Any = None  # int [V'], the words that are composed, sorted; None: all
    composed: Any = None  # version of the parameters with which all words are composed; None: not all, or in training
    y: Any = None  # [1, V', m]

    def __init__(self, params: Params, layers: list[Any], codes: np.ndarray, m: int) -> None:
        self.params, self.layers, self.codes, self.V, self.m = params, layers, codes, len(codes), m
        self.needed, self.buffers = [], Buffers(params.dtype)

    def begin(self, step: Step) -> None:
        if not step.training and self.composed == self.params.version:
            return
        self.words, self.written = None, False
        if step.training and self.needed:
            self.words = np.unique(np.concatenate([np.ravel(words(step)) for words in self.needed]))
        self.composed = None if step.training else self.params.version
        self.compose(self.codes if self.words is None else self.codes[self.words], step)

    def compose(self, codes: np.ndarray, step: Step) -> None:
        """Set `matrix` to the vectors of words with these codes; without `begin`, words of any vocabulary."""
        self.y = codes
        for layer in self.layers:
            self.y = layer.forward(self.y, step)

    def backward(self) -> None:
        """Backpropagate the sum of the gradients of all layers that use the table."""
        dy, _ = self.gradient()
        dy = dy[None]
        for layer in reversed(self.layers):
            dy = layer.backward(dy)

    def at(self, ids: np.ndarray) -> np.ndarray:
        return ids if self.words is None else np.searchsorted(self.words, ids)

    def matrix(self) -> np.ndarray:
        return self.y[0]

    def rows(self, y: np.ndarray, ids: np.ndarray) -> None:
        self.params.team.over(y.size, gather_rows, y, self.matrix(), self.at(ids))

    def gradient(self) -> tuple[np.ndarray, bool]:
        accumulate, self.written = self.written, True
        return self.buffers("dy", self.y.shape[1], self.m), accumulate

    def add_to_rows(self, dy: np.ndarray, ids: np.ndarray) -> None:
        grad, accumulate = self.gradient()
        if not accumulate:
            grad[:] = 0
        self.params.team(add_to_rows, grad, dy, self.at(ids))


Table = Lookup | Composed
