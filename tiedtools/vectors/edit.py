"""Transformations of word vectors: selecting words, lower-casing, spaces in words, and normalizing."""

import re

import numpy as np

from tiedtools.vectors.formats import SPACES
from tiedtools.vectors.norms import unit
from tiedtools.vectors.vectors import Vectors


def only(vectors, words):
    """Return the vectors of those of the different `words` that have one, in the order of `words`."""
    words = [word for word in words if word in vectors]
    return Vectors(words, vectors.matrix[[vectors.index[word] for word in words]])


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


def spaces(vectors, how):
    """Return the vectors without spaces in words, which are ASCII whitespace, and the number of words that had any.

    how  "skip": leave these words out; "_": replace each space with it
    """
    found = [re.search(SPACES, word) is not None for word in vectors.words]
    if how == "skip":
        kept = [row for row, spaced in enumerate(found) if not spaced]
        return Vectors([vectors.words[row] for row in kept], vectors.matrix[kept]), sum(found)
    return Vectors([re.sub(SPACES, how, word) for word in vectors.words], vectors.matrix), sum(found)


def normalized(vectors):
    """Normalize vectors to Euclidean length 1; zero vectors stay zero."""
    return Vectors(vectors.words, unit(vectors.matrix))
