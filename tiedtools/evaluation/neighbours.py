"""Nearest neighbours of words by cosine."""

import numpy as np

# Queries are taken in blocks whose scores number about this many: 64 MB, however large the vocabulary.
BLOCK = 1 << 24


def neighbours(vectors, words, top=10, restrict=None):
    """The `top` words nearest to each of `words`, the word itself left out.

    Only the first `restrict` rows of `vectors` are candidates (None: all); a query may be any word. Returns, for
    each query, a list of (word, cosine), nearest first and equal cosines by row, or None for an unknown word.
    A vector of zeros has cosine 0 with everything; vectors that are not finite are nobody's neighbours.
    """
    candidates = vectors.matrix[:restrict]
    candidate_scale = inverse_norms(candidates)
    known = [word for word in dict.fromkeys(words) if word in vectors.index]
    answers = {}
    block = max(1, BLOCK // max(len(candidates), 1))
    for start in range(0, len(known), block):
        rows = [vectors.index[word] for word in known[start : start + block]]
        queries = vectors.matrix[rows]
        queries = queries * inverse_norms(queries)[:, None]
        # Scaling the scores spares a normalised copy of the whole matrix.
        with np.errstate(invalid="ignore"):
            scores = (queries @ candidates.T) * candidate_scale
        for row, cosines in zip(rows, scores):
            if row < len(candidates):
                cosines[row] = -np.inf
            answers[vectors.words[row]] = [(vectors.words[i], float(cosines[i])) for i in largest(cosines, top)]
    return [answers.get(word) for word in words]


def inverse_norms(matrix):
    """1 / Euclidean length of each row, 0 for a row of zeros: (V, E) -> (V,)."""
    norms = np.sqrt(np.einsum("ve,ve->v", matrix, matrix, dtype=np.float64))
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms != 0).astype(np.float32)


def largest(values, top):
    """Places of the `top` largest finite values of `values` (V,), largest first, equal ones by place."""
    places = np.argpartition(-values, top - 1)[:top] if top < len(values) else np.arange(len(values))
    places = places[np.lexsort((places, -values[places]))]
    return places[np.isfinite(values[places])]
