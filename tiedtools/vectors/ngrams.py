"""Vectors of words that are computed when they are indexed, and those that are means of rows of character n-grams."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tiedtools.kernels.text import fasttext as kernels
from tiedtools.kernels.word2vec.composed import number
from tiedtools.text.encoding import ranges
from tiedtools.vectors.norms import Matrix, blocks

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
        """Return the vectors of a row, a slice, a mask, or an integer array of rows of any shape, float32 (..., E)."""
        if isinstance(key, slice):
            return self.computed(np.arange(*key.indices(len(self))))
        if isinstance(key, tuple):
            raise IndexError("these vectors have only rows; convert them with numpy.asarray")
        key = np.asarray(key)
        ids = np.flatnonzero(key) if key.dtype == bool else key.astype(np.int64)
        if ((ids < -len(self)) | (ids >= len(self))).any():
            raise IndexError(f"no row {key} among {len(self)}")
        ids, inverse = np.unique(np.where(ids < 0, ids + len(self), ids), return_inverse=True)
        return self.computed(ids)[inverse.reshape(np.shape(key) if key.dtype != bool else -1)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Matrix:
        if copy is False:
            raise ValueError("these vectors are computed, which `copy=False` forbids; omit it")
        matrix = np.empty(self.shape, np.float32 if dtype is None else dtype)
        for start, rows in blocks(self):
            matrix[start : start + len(rows)] = rows
        return matrix

    def computed(self, ids: Matrix) -> Matrix:
        """Return the vectors of the rows `ids`, int64 [n], float32 (n, E)."""
        raise NotImplementedError


def average(data: Matrix, rows: Matrix, ends: Matrix) -> Matrix:
    """Average rows of a float32 matrix, given as its bytes: float32 (len(ends), E); see `average` of the kernels."""
    out = np.empty((len(ends), data.shape[1] // 4), np.float32)
    row = np.empty(out.shape[1], np.float32)
    data.flags.writeable = False  # so that the kernel is compiled for one type of arrays
    kernels.average(out, row, row.view(np.uint8), data, rows, ends)
    return out


class Ngrams:
    """The rows of V words in a matrix: a row per word, and rows of their character n-grams, as in fastText.

    N-grams are hashed to buckets. Buckets with n-grams of the same words get the same gradient in every step, and would
    only differ by their random initial values. They share a row, with that of the word if there is only one. Buckets
    that do not occur have none.

    min_n, max_n  number of characters of an n-gram of `<word>`; `</s>` has none
    buckets       number of buckets
    table         int32 [V + buckets]: the row of each of fastText's; -1: none. Rows are in order of the first word
    starts, rows  the rows of word w, its own first, are rows[starts[w] : starts[w + 1]]; int64 [V + 1] and int32
    sizes         int32 [rows]: how many rows of fastText's matrix a row stands for
    lengths       int64 [V]: how many rows of fastText's matrix each word has
    """

    def __init__(self, words: Sequence[str], min_n: int, max_n: int, buckets: int) -> None:
        self.V, self.settings = len(words), (min_n, max_n, buckets)
        parts = [self.listed(words[k : k + PART], np.arange(k, min(k + PART, self.V))) for k in range(0, self.V, PART)]
        self.lengths = np.concatenate([np.diff(ends, prepend=0) for _, ends in parts])
        rows = np.concatenate([rows for rows, _ in parts], dtype=np.int32)
        del parts
        # Number the buckets in order. Those with the same sum of random numbers of their words share a row.
        place, occurring = np.full(self.V + buckets, -1, np.int32), np.empty(self.V + len(rows), np.int32)
        unused = np.empty(len(occurring), np.float32), 0
        number(occurring, 0, place, np.arange(self.V, dtype=np.int32), *unused)
        sums = np.zeros(number(occurring, self.V, place, rows, *unused), np.uint64)
        keys = np.random.default_rng(0).integers(2**64, size=self.V, dtype=np.uint64)
        np.add.at(sums, rows, np.repeat(keys, self.lengths))
        _, first, row = np.unique(sums, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        row = rank[row]
        self.sizes = np.bincount(row).astype(np.int32)
        self.table = np.where(place < 0, np.int32(-1), row[place])
        listed = (first[order][row] == np.arange(len(row)))[rows]  # one of those that share a row
        self.rows = row[rows[listed]]
        self.starts = np.append(0, np.cumsum(listed))[np.append(0, np.cumsum(self.lengths))]

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

    def __len__(self) -> int:
        """Number of rows of the matrix."""
        return len(self.sizes)


class Composed(Computed):
    """The vectors of words as an array (V, E): means of rows of a matrix, by Ngrams.

    matrix  float32 [rows, P], C-contiguous; the first E columns are used
    """

    def __init__(self, words: Sequence[str], matrix: Matrix, ngrams: Ngrams, E: int) -> None:
        self.words, self.matrix, self.ngrams = words, matrix, ngrams
        self.shape = len(words), E
        self.has_ngrams = bool((ngrams.table[ngrams.V :] >= 0).any())
        self.index: Mapping[str, int] | None = None

    def computed(self, ids: Matrix) -> Matrix:
        starts, rows = self.ngrams.starts, self.ngrams.rows
        rows = rows[ranges(starts[ids], starts[ids + 1] - starts[ids])]
        return self.means(np.repeat(rows, self.ngrams.sizes[rows]), np.cumsum(self.ngrams.lengths[ids]))

    def means(self, rows: Matrix, ends: Matrix) -> Matrix:
        """Return the means of lists of rows, float32 (len(ends), E)."""
        return average(self.matrix.view(np.uint8), rows.astype(np.int64), ends)[:, : self.shape[1]]

    def compose(self, words: Sequence[str]) -> tuple[list[str], Matrix]:
        """Return the words that have a known n-gram, and their vectors, composed from these if the word is unknown.

        The rows of other n-grams count as 0, as in a model of fastText that these vectors are written to.
        """
        if self.index is None:
            self.index = {word: k for k, word in enumerate(self.words)}
        rows, ends = self.ngrams.listed(words, np.array([self.index.get(word, -1) for word in words], np.int64))
        rows = self.ngrams.table[rows]
        counts, present = np.diff(ends, prepend=0), np.append(0, np.cumsum(rows >= 0))[ends]
        sizes = np.diff(present, prepend=0)
        known = np.flatnonzero(sizes)
        means = self.means(rows[rows >= 0], present[known])
        return [words[k] for k in known.tolist()], means * (sizes[known] / counts[known])[:, None].astype(np.float32)


class Buckets(Computed):
    """The input matrix of a model of fastText as an array (V + buckets, E): rows of buckets without n-grams are 0.

    settings  fields of the file's header
    """

    def __init__(self, composed: Composed) -> None:
        self.source, (min_n, max_n, buckets) = composed, composed.ngrams.settings
        # fastText divides by the number of buckets if there is a length.
        self.settings = dict(minn=min_n, maxn=max_n, bucket=buckets) if buckets and max_n else {}
        self.shape = len(composed) + self.settings.get("bucket", 0), composed.shape[1]

    def computed(self, ids: Matrix) -> Matrix:
        rows = self.source.ngrams.table[ids]
        values = self.source.matrix[np.maximum(rows, 0), : self.shape[1]]
        values[rows < 0] = 0
        return values
