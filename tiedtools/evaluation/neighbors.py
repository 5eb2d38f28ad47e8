"""Nearest neighbors of words by cosine. Letters in shapes: V words, C candidates, E numbers a vector."""

import numpy as np

from tiedtools.vectors.edit import inverse_norms, unit
from tiedtools.vectors.vectors import Vectors

# Scores are computed in blocks of about this many: 64 MB, however large the vocabulary.
BLOCK = 1 << 24


class Candidates:
    """The words that can be answers: the first `restrict` of `vectors`, or all of them (None).

    vectors  a Vectors, of whose repeated words only the first counts; a vector of zeros has cosine 0 with everything,
             and one that is not finite is nobody's answer
    """

    def __init__(self, vectors, restrict=None):
        index = vectors.index
        if len(index) < len(vectors):  # or a word would be its own neighbor
            vectors = Vectors(list(index), vectors.matrix[list(index.values())])
        self.vectors = vectors
        self.matrix = vectors.matrix[:restrict]
        # Scaling the cosines spares a normalised copy of the whole matrix, where float32 holds the scales and the sums.
        scale = inverse_norms(self.matrix)
        if ((scale > 1e30) | (scale > 0) & (scale < 1e-38)).any():
            self.matrix, scale = unit(self.matrix), scale > 0
        self.scale = scale.astype(np.float32)

    def __len__(self):
        return len(self.matrix)

    def units(self, rows):
        """The vectors in n `rows` of `vectors`, of length 1: (n, E)."""
        return unit(self.vectors.matrix[rows])

    def cosines(self, units, part=slice(None)):
        """Cosines float32 [n, C] of n vectors of length 1 with the candidates, or with the slice `part` of them."""
        with np.errstate(invalid="ignore"):
            cosines = units @ self.matrix[part].T
            cosines *= self.scale[part]
        return cosines

    def best(self, scores, banned, top):
        """The `top` largest of `scores` [C], which are spoilt: list of (word, score), equal ones by row.

        banned  rows that are no answers; those of no candidate do not matter
        """
        scores[[row for row in banned if row < len(self)]] = -np.inf
        return [(self.vectors.words[i], float(scores[i])) for i in largest(scores, top)]


def neighbors(candidates, questions, top=10):
    """The `top` candidates nearest to each of `questions`, words or sums of words (`summands`), which are left out.

    A query may be any word of the vectors. Returns, for each, a list of (word, cosine), nearest first and equal
    cosines by row, or None where a word is unknown.
    """
    index = candidates.vectors.index
    sums = {question: summands(question, index) for question in dict.fromkeys(questions)}
    known = [question for question, parts in sums.items() if all(word in index for word, _ in parts)]
    answers = {}
    block = max(1, BLOCK // max(len(candidates), 1))
    for start in range(0, len(known), block):
        part = known[start : start + block]
        rows = [[index[word] for word, _ in sums[question]] for question in part]
        signs = [np.array([sign for _, sign in sums[question]], np.float32) for question in part]
        totals = np.stack([sign @ candidates.units(row) for sign, row in zip(signs, rows)])
        cosines = candidates.cosines(unit(totals))
        np.clip(cosines, -1, 1, out=cosines)  # rounding leads beyond
        for question, row, line in zip(part, rows, cosines):
            answers[question] = candidates.best(line, row, top)
    return [answers.get(question) for question in questions]


def summands(question, index):
    """(word, sign) of the words of a sum: of the question, where it is a word, else of what stands between its blanks.

    A lone `-` before a word subtracts it, a lone `+` or none adds it; with all vectors at length 1, as word2vec's
    distance and gensim's most_similar do.
    """
    if question in index or " " not in question:
        return [(question, 1)]
    terms, sign = [], 1
    for field in filter(None, question.split(" ")):
        if field in ("+", "-"):
            sign = -1 if field == "-" else 1
        else:
            terms.append((field, sign))
            sign = 1
    return terms or [(question, 1)]


def largest(values, top):
    """Indices of the `top` largest finite values of `values` (V,), largest first, equal ones by index."""
    found = np.arange(len(values))
    if top < len(values):
        # Not argpartition, which takes any of the values that are equal to the last one.
        found = np.flatnonzero(~(-values > np.partition(-values, top - 1)[top - 1]))
    found = found[np.lexsort((found, -values[found]))][:top]
    return found[np.isfinite(values[found])]
