"""Word vectors made of others: of some of the words, of words without capitals, of length 1."""

import numpy as np

from tiedtools.vectors.vectors import Vectors


def only(vectors, words):
    """The vectors of `words`, in the order they have in `vectors`."""
    words = set(words)
    rows = [row for row, word in enumerate(vectors.words) if word in words]
    return Vectors([vectors.words[row] for row in rows], vectors.matrix[rows])


def first(vectors, V):
    """The first V vectors."""
    return Vectors(vectors.words[:V], vectors.matrix[:V])


def lower(vectors, how):
    """Lower-cased words, each once, in the order of their first spellings.

    how  "first": each has the vector of its first spelling; "mean": the mean of those of all its spellings
    """
    index = {}
    rows = [index.setdefault(word.lower(), len(index)) for word in vectors.words]
    if how == "first":
        return Vectors(list(index), vectors.matrix[np.unique(rows, return_index=True)[1]])
    sums = np.zeros((len(index), vectors.dim), np.float32)
    np.add.at(sums, rows, vectors.matrix)
    return Vectors(list(index), sums / np.bincount(rows)[:, None].astype(np.float32))


def normalized(vectors):
    """Vectors of Euclidean length 1; zeros stay zeros."""
    return Vectors(vectors.words, unit(vectors.matrix))


def unit(matrix):
    """The rows of a matrix (V, E) at Euclidean length 1, float32; zeros stay zeros."""
    return np.multiply(
        matrix, inverse_norms(matrix)[:, None], out=np.empty(matrix.shape, np.float32), casting="same_kind"
    )


def inverse_norms(matrix):
    """1 / Euclidean length of each row, 0 for a row of zeros: (V, E) -> (V,) float64; float32 need not hold it."""
    norms = np.sqrt(np.einsum("ve,ve->v", matrix, matrix, dtype=np.float64))
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms != 0)
