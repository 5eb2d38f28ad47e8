"""Transform word vectors: select words, lower-case them, remove spaces in words, and normalize vectors."""

import re

import numpy as np

from tiedtools.vectors.formats import SPACES
from tiedtools.vectors.norms import unit
from tiedtools.vectors.vectors import Vectors


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
