"""Transformations of word vectors: selecting words, lower-casing, and normalizing."""

import numpy as np

from tiedtools.vectors.vectors import Vectors


def only(vectors, words):
    """Return the vectors of `words`, in the order of `vectors`."""
    words = set(words)
    rows = [row for row, word in enumerate(vectors.words) if word in words]
    return Vectors([vectors.words[row] for row in rows], vectors.matrix[rows])


def first(vectors, V):
    """Return the first V vectors."""
    return Vectors(vectors.words[:V], vectors.matrix[:V])


def lower(vectors, how):
    """Lower-case the words and merge duplicates, in the order of first occurrence.

    how  "first": use the vector of the first spelling; "mean": average the vectors of all spellings
    """
    index = {}
    rows = [index.setdefault(word.lower(), len(index)) for word in vectors.words]
    if how == "first":
        return Vectors(list(index), vectors.matrix[np.unique(rows, return_index=True)[1]])
    sums = np.zeros((len(index), vectors.dim), np.float32)
    np.add.at(sums, rows, vectors.matrix)
    return Vectors(list(index), sums / np.bincount(rows)[:, None].astype(np.float32))


def normalized(vectors):
    """Normalize vectors to Euclidean length 1; zero vectors stay zero."""
    return Vectors(vectors.words, unit(vectors.matrix))


def unit(matrix):
    """Normalize the rows of a matrix (V, E) to Euclidean length 1, in float32; zero rows stay zero."""
    return np.multiply(
        matrix, inverse_norms(matrix)[:, None], out=np.empty(matrix.shape, np.float32), casting="same_kind"
    )


def inverse_norms(matrix):
    """Return 1 / Euclidean length of each row, 0 for zero rows: (V, E) -> (V,) float64, as float32 may overflow."""
    norms = np.sqrt(np.einsum("ve,ve->v", matrix, matrix, dtype=np.float64))
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms != 0)
