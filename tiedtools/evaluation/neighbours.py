"""Nearest neighbours of words by cosine. Letters in shapes: V words, C candidates, E numbers a vector."""

import numpy as np

# Scores are computed in blocks of about this many: 64 MB, however large the vocabulary.
BLOCK = 1 << 24


class Candidates:
    """The words that can be answers: the first `restrict` of `vectors`, or all of them (None).

    vectors  a Vectors; a vector of zeros has cosine 0 with everything, and one that is not finite is nobody's answer
    """

    def __init__(self, vectors, restrict=None):
        self.vectors = vectors
        self.matrix = vectors.matrix[:restrict]
        self.scale = inverse_norms(self.matrix)

    def __len__(self):
        return len(self.matrix)

    def cosines(self, rows, part=slice(None)):
        """Cosines float32 [n, C] of the vectors in n `rows` with the candidates, or with the slice `part` of them."""
        queries = self.vectors.matrix[rows]
        queries = queries * inverse_norms(queries)[:, None]
        # Scaling the cosines spares a normalised copy of the whole matrix.
        with np.errstate(invalid="ignore"):
            cosines = queries @ self.matrix[part].T
            cosines *= self.scale[part]
        return cosines

    def best(self, scores, banned, top):
        """The `top` largest of `scores` [C], which are spoilt: list of (word, score), equal ones by row.

        banned  rows that are no answers; those of no candidate do not matter
        """
        scores[[row for row in banned if row < len(self)]] = -np.inf
        return [(self.vectors.words[i], float(scores[i])) for i in largest(scores, top)]


def neighbours(candidates, words, top=10):
    """The `top` candidates nearest to each of `words`, the word itself left out.

    A query may be any word of the vectors. Returns, for each, a list of (word, cosine), nearest first and equal
    cosines by row, or None for an unknown word.
    """
    index = candidates.vectors.index
    known = [word for word in dict.fromkeys(words) if word in index]
    answers = {}
    block = max(1, BLOCK // max(len(candidates), 1))
    for start in range(0, len(known), block):
        queries = known[start : start + block]
        rows = [index[word] for word in queries]
        for word, row, cosines in zip(queries, rows, candidates.cosines(rows)):
            answers[word] = candidates.best(cosines, [row], top)
    return [answers.get(word) for word in words]


def inverse_norms(matrix):
    """1 / Euclidean length of each row, 0 for a row of zeros: (V, E) -> (V,)."""
    norms = np.sqrt(np.einsum("ve,ve->v", matrix, matrix, dtype=np.float64))
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms != 0).astype(np.float32)


def largest(values, top):
    """Places of the `top` largest finite values of `values` (V,), largest first, equal ones by place."""
    places = np.arange(len(values))
    if top < len(values):
        # Not argpartition, which takes any of the values that are equal to the last one.
        places = np.flatnonzero(~(-values > np.partition(-values, top - 1)[top - 1]))
    places = places[np.lexsort((places, -values[places]))][:top]
    return places[np.isfinite(values[places])]
