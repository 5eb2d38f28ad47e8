"""Transform word vectors: lower-case words, remove spaces in words, normalize vectors, and cluster them by k-means."""

import re

import numpy as np

from tiedtools.vectors.formats import SPACES
from tiedtools.vectors.norms import unit
from tiedtools.vectors.vectors import Vectors

BLOCK = 4096  # rows at a time
SCORES = 1 << 22  # maximum size of a block of scores, which limits the rows if there are many classes


def lower(vectors: Vectors, how: str) -> Vectors:
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


def spaces(vectors: Vectors, how: str) -> tuple[Vectors, int]:
    """Remove spaces (ASCII whitespace) in words; return the vectors, and the number of words with spaces.

    how  "skip": drop these words; "_", for example: replace each space with it
    """
    spaced = [re.search(SPACES, word) is not None for word in vectors.words]
    if how == "skip":
        rows = np.flatnonzero(~np.array(spaced, bool)).tolist()
        return Vectors([vectors.words[row] for row in rows], vectors.matrix[rows]), sum(spaced)
    return Vectors([re.sub(SPACES, how, word) for word in vectors.words], vectors.matrix), sum(spaced)


def normalized(vectors: Vectors) -> Vectors:
    """Normalize vectors to Euclidean length 1; zero vectors stay zero."""
    return Vectors(vectors.words, unit(vectors.matrix))


def spherical_kmeans(matrix: np.ndarray, classes: int, iterations: int = 10) -> np.ndarray:
    """Cluster the rows of `matrix` [V, m] into `classes` classes by dot product with unit-length means; int64 [V].

    As by word2vec.c's -classes, row k starts in class k mod `classes`; means and assignments are updated `iterations`
    times.
    """
    assigned = np.arange(len(matrix)) % classes
    block = max(1, min(BLOCK, SCORES // classes))
    for _ in range(iterations):
        centers = np.zeros((classes, matrix.shape[1]), np.float64)
        np.add.at(centers, assigned, matrix)
        norms = np.linalg.norm(centers, axis=1, keepdims=True)
        centers = (centers / np.where(norms > 0, norms, 1)).astype(np.float32)
        # An empty class stays empty.
        bias = np.where(norms[:, 0] > 0, 0, -np.inf).astype(np.float32)
        for start in range(0, len(matrix), block):
            assigned[start : start + block] = np.argmax(matrix[start : start + block] @ centers.T + bias, axis=1)
    return assigned
