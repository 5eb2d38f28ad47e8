"""Vectors of words that are computed when they are indexed, and those that are means of rows of character n-grams."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tiedtools.kernels.text import fasttext as kernels
from tiedtools.kernels.word2vec.composed import compose
from tiedtools.vectors.norms import blocks

Matrix = np.ndarray[Any, Any]
PART = 1 << 12  # words listed at a time


class Computed:
    """An array (V, E), float32, whose rows are computed when they are indexed.

    A subclass has `shape`, `words`, and `computed`, which returns some rows, and `compose`, if it `has_ngrams`.
    """

    ndim, dtype, has_ngrams = 2, np.dtype(np.float32), True
    shape: tuple[int, int]
    words: Sequence[str]

    @property
    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Matrix:
        """Return the vectors of a row, a slice of rows, or an integer array of rows of any shape, float32 (..., E)."""
        if isinstance(key, slice):
            return self.computed(np.arange(*key.indices(len(self))))
        ids = np.asarray(key, np.int64)
        if ((ids < -len(self)) | (ids >= len(self))).any():
            raise IndexError(f"no row {key} among {len(self)}")
        ids, inverse = np.unique(np.where(ids < 0, ids + len(self), ids), return_inverse=True)
        return self.computed(ids)[inverse.reshape(np.shape(key))]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Matrix:
        matrix = np.empty(self.shape, np.float32 if dtype is None else dtype)
        for start, rows in blocks(self):
            matrix[start : start + len(rows)] = rows
        return matrix

    def computed(self, ids: Matrix) -> Matrix:
        """Return the vectors of the rows `ids`, int64 [n], float32 (n, E)."""
        raise NotImplementedError

    def compose(self, words: Sequence[str]) -> tuple[list[str], Matrix]:
        """Return the words that have n-grams, and their vectors, composed from these if the word is unknown."""
        raise NotImplementedError


class Ngrams:
    """The rows of V words in a matrix: a row per word, and a row per bucket of their character n-grams, as in fastText.

    min_n, max_n  number of characters of an n-gram of `<word>`; `</s>` has none
    buckets       number of buckets that n-grams are hashed to; those that occur have rows
    occurring     the buckets with rows V, V + 1, ..., in order of the first word with such an n-gram, int64
    starts, rows  the rows of word w, its own first, are rows[starts[w] : starts[w + 1]]; int64 [V + 1] and int32
    """

    def __init__(self, words: Sequence[str], min_n: int, max_n: int, buckets: int) -> None:
        self.V, self.settings = len(words), (min_n, max_n, buckets)
        parts = [self.listed(words[k : k + PART], np.arange(k, min(k + PART, self.V))) for k in range(0, self.V, PART)]
        rows = np.concatenate([rows for rows, _ in parts])
        self.starts = np.append(0, np.cumsum(np.concatenate([np.diff(ends, prepend=0) for _, ends in parts])))
        own = rows < self.V
        found, first, inverse = np.unique(rows[~own], return_index=True, return_inverse=True)
        order = np.argsort(first)
        self.occurring, rank = found[order] - self.V, np.empty_like(order)
        rank[order] = np.arange(len(order))
        rows[~own] = self.V + rank[inverse]
        self.rows = rows.astype(np.int32)
        self.sorted, self.order = found - self.V, rank

    def listed(self, words: Sequence[str], ids: Matrix) -> tuple[Matrix, Matrix]:
        """Return (rows, ends) of words, with row V + bucket for each n-gram; see `subwords` of the kernels."""
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        stops = np.cumsum([len(word) for word in encoded], dtype=np.int64)
        starts = np.append(0, stops[:-1])
        min_n, max_n, buckets = self.settings
        text, max_n = np.frombuffer(b"".join(encoded) + b"\0", np.uint8), max_n if buckets else 0
        rows = np.empty(len(words) + max_n * int((stops - starts + 2).sum()), np.int64)
        ends = np.empty(len(words), np.int64)
        kernels.subwords(rows, ends, ids, text, starts, stops, self.V, min_n, max_n, max(buckets, 1))
        return rows[: ends[-1] if len(ends) else 0].copy(), ends

    def find(self, buckets: Matrix) -> Matrix:
        """Return the rows of buckets, int64; -1 for those that do not occur."""
        if not len(self.sorted):
            return np.full(len(buckets), -1)
        at = np.minimum(np.searchsorted(self.sorted, buckets), len(self.sorted) - 1)
        return np.where(self.sorted[at] == buckets, self.V + self.order[at], -1)

    def __len__(self) -> int:
        """Number of rows of the matrix."""
        return self.V + len(self.occurring)


class Composed(Computed):
    """The vectors of words as an array (V, E): means of rows of a matrix, by Ngrams.

    matrix  float32 [rows, P], C-contiguous; the first E columns are used
    """

    def __init__(self, words: Sequence[str], matrix: Matrix, ngrams: Ngrams, E: int) -> None:
        self.words, self.matrix, self.ngrams = words, matrix, ngrams
        self.shape = len(words), E
        self.has_ngrams = len(ngrams) > ngrams.V
        self.index: Mapping[str, int] | None = None

    def computed(self, ids: Matrix) -> Matrix:
        return self.means(self.ngrams.starts, self.ngrams.rows, ids)

    def means(self, starts: Matrix, rows: Matrix, ids: Matrix) -> Matrix:
        """Return the means of some lists of rows, float32 (len(ids), E)."""
        X = np.empty((len(ids), self.matrix.shape[1]), np.float32)
        compose(X, X, self.matrix, starts, rows, ids.astype(np.int32))
        return X[:, : self.shape[1]]

    def compose(self, words: Sequence[str]) -> tuple[list[str], Matrix]:
        """Return the words that have a known n-gram, and their vectors, composed from these if the word is unknown.

        The rows of other n-grams count as 0, as in a model of fastText that these vectors are written to.
        """
        if self.index is None:
            self.index = {word: k for k, word in enumerate(self.words)}
        V = self.ngrams.V
        rows, ends = self.ngrams.listed(words, np.array([self.index.get(word, -1) for word in words], np.int64))
        rows = np.where(rows < V, rows, self.ngrams.find(rows - V))
        counts, present = np.diff(ends, prepend=0), np.append(0, np.cumsum(rows >= 0))[ends]
        sizes = np.diff(present, prepend=0)
        ids = np.flatnonzero(sizes)
        means = self.means(np.append(0, present), rows[rows >= 0].astype(np.int32), ids)
        return [words[k] for k in ids], means * (sizes[ids] / counts[ids])[:, None].astype(np.float32)


class Buckets(Computed):
    """The input matrix of a model of fastText as an array (V + buckets, E): rows of buckets without n-grams are 0."""

    def __init__(self, composed: Composed) -> None:
        self.source, ngrams = composed, composed.ngrams
        self.shape = ngrams.V + ngrams.settings[2] * bool(ngrams.settings[1]), composed.shape[1]

    def computed(self, ids: Matrix) -> Matrix:
        V, matrix = self.source.ngrams.V, self.source.matrix
        rows = np.where(ids < V, ids, self.source.ngrams.find(ids - V))
        return matrix[rows, : self.shape[1]] * (rows >= 0)[:, None]
