"""Orthogonal alignment of two spaces of word vectors."""

import numpy as np

from tiedtools.vectors.norms import unit


def rotation(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Return the orthogonal matrix Q, float64 [E, E], that minimizes |two Q - one| (orthogonal Procrustes problem).

    one, two  vectors of the same n words, [n, E]; Q may reflect (Schönemann 1966)
    """
    left, _, right = np.linalg.svd(two.T.astype(np.float64) @ one)
    return left @ right


def aligned_cosines(one: np.ndarray, two: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return the cosine of each word's two vectors after aligning `two` to `one`, float64 [n]; NaN for absent words.

    one, two  vectors of the same n words, [n, E]; present: whether the word has both, bool [n]. All vectors are
              normalized to length 1, and Q is fitted to the words that are present.
    """
    units = [unit(np.asarray(matrix[present], np.float32)) for matrix in (one, two)]
    cosines = np.full(len(one), np.nan)
    cosines[present] = np.einsum("ne,ne->n", units[0], units[1] @ rotation(*units))
    return np.clip(cosines, -1, 1)
