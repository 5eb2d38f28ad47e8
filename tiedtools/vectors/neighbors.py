"""Find the nearest neighbors of words by cosine similarity. Shapes: V words, C candidates, E dimensions."""

import copy
import unicodedata

import numpy as np

from tiedtools.vectors.norms import blocks, inverse_norms, unit

FEW = 8  # vectors whose products with a block take less time than BLAS takes to synchronize its threads
BLOCK = 1 << 24  # scores in a block: 64 MB, whatever the size of the vocabulary


class Candidates:
    """The words that can be answers: the first `restrict` words of `vectors`; None: all words.

    counts  counts of the words of `vectors`, int [V], at least `least` for an answer; None: unknown

    Of a repeated word, only the first vector counts. A zero vector has cosine 0 with every vector. A word whose vector
    is not finite is never an answer.
    """

    def __init__(self, vectors, restrict=None, counts=None, least=0):
        index = vectors.index
        if len(index) < len(vectors):  # otherwise a repeated word would be its own neighbor
            rows = list(index.values())
            vectors = type(vectors)(list(index), vectors.matrix[rows])
            counts = None if counts is None else counts[rows]
        self.vectors, self.counts = vectors, counts
        self.matrix = vectors.matrix[:restrict]
        # Scaling the cosines avoids a normalized copy of the matrix, unless scales or products exceed float32's range.
        scale = inverse_norms(self.matrix)
        if ((scale > 1e30) | (scale > 0) & (scale < 1e-38)).any():
            self.matrix, scale = unit(self.matrix), scale > 0
        self.scale = scale.astype(np.float32)
        if counts is not None:
            self.scale[counts[: len(self.scale)] < least] = np.nan

    def __len__(self):
        return len(self.matrix)

    def knowing(self, vectors):
        """Return the same candidates with more `vectors`, whose words may be in questions but are never answers."""
        extended = copy.copy(self)
        extended.vectors = self.vectors.joined(vectors)
        return extended

    def units(self, rows):
        """Return n rows of the vectors, normalized to length 1: (n, E)."""
        return unit(self.vectors.matrix[rows])

    def cosines(self, units, part=slice(None)):
        """Return the cosines of n unit vectors with the candidates in the slice `part`, float32 [n, C]."""
        with np.errstate(invalid="ignore"):
            matrix = self.matrix[part]
            cosines = np.empty((len(units), len(matrix)), np.float32)
            half = matrix.dtype == np.float16
            for start, rows in blocks(matrix, None if half else matrix.size):
                out = cosines[:, start : start + len(rows)]
                if half and len(units) <= FEW:
                    np.einsum("ne,ve->nv", units, rows, out=out)
                else:
                    np.matmul(units, rows.T, out=out)
            cosines *= self.scale[part]
        return cosines

    def best(self, scores, banned, top):
        """List the `top` largest of `scores` [C] as (word, score), ties by row. Modifies `scores`.

        banned  rows excluded from the answers; they may lie beyond the candidates
        """
        scores[[row for row in banned if row < len(self)]] = -np.inf
        return [(self.vectors.words[i], float(scores[i])) for i in largest(scores, top)]

    def count(self, word):
        """Return the count of a word; None: unknown."""
        return None if self.counts is None else int(self.counts[self.vectors.index[word]])


def neighbors(candidates, questions, top=10):
    """Find the `top` candidates nearest to each of `questions`, which are words or sums of words (see `summands`).

    A question may contain any word of the vectors; its own words are not among its answers. Returns for each question a
    list of (word, cosine), nearest first, ties by row, or None if a word is unknown.
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
        np.clip(cosines, -1, 1, out=cosines)  # rounding can exceed 1
        for question, row, line in zip(part, rows, cosines):
            answers[question] = candidates.best(line, row, top)
    return [answers.get(question) for question in questions]


def summands(question, index):
    """Return the terms (word, sign) of a sum: the question itself if it is a word, otherwise its words between spaces.

    A separate `-` before a word subtracts it; a separate `+`, or neither, adds it. As in word2vec's `distance` and
    gensim's `most_similar`, the vectors of the sum have unit length.
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


def spellings(unknown, words):
    """Return {unknown word: the first of `words` that differs from it only in case}; words without one are absent."""
    first = dict.fromkeys(map(folded, unknown))
    for word in words if unknown else ():
        if (key := folded(word)) in first and first[key] is None:
            first[key] = word
    return {word: first[folded(word)] for word in unknown if first[folded(word)]}


def folded(word):
    """Fold the case of a word, for comparisons; an i with a combining dot above, the lower case of İ, is i."""
    return word.lower() if word.isascii() else unicodedata.normalize("NFKD", word.casefold()).replace("i\u0307", "i")


def largest(values, top):
    """Return the indices of the `top` largest finite elements of `values` (V,), largest first, ties by index."""
    indices = np.arange(len(values))
    if top < len(values):
        # Not argpartition, which chooses arbitrarily among values equal to the smallest one selected.
        indices = np.flatnonzero(~(-values > np.partition(-values, top - 1)[top - 1]))
    indices = indices[np.lexsort((indices, -values[indices]))][:top]
    return indices[np.isfinite(values[indices])]
