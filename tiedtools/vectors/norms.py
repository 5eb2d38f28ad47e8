"""Euclidean norms of the rows of a matrix."""

import numpy as np


def unit(matrix):
    """Normalize the rows of a matrix (V, E) to Euclidean length 1, in float32; zero rows stay zero."""
    matrix = np.asarray(matrix)
    return np.multiply(
        matrix, inverse_norms(matrix)[:, None], out=np.empty(matrix.shape, np.float32), casting="same_kind"
    )


def inverse_norms(matrix):
    """Return 1 / Euclidean length of each row, 0 for zero rows: (V, E) -> (V,) float64, as float32 may overflow."""
    norms = np.sqrt(np.einsum("ve,ve->v", matrix, matrix, dtype=np.float64))
    return np.divide(1, norms, out=np.zeros_like(norms), where=norms != 0)
