"""Weighted sums of rows of a matrix, such as the vectors of the words of a sentence."""

import numpy as np

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch

AHEAD = 8  # rows that are prefetched


@jit(relaxed=True)
def means(out, matrix, weights, rows, bounds):
    """Set out[k], float32 [N, E], to the mean of rows[bounds[k] : bounds[k + 1]] of a matrix [V, E]; zeros of none.

    weights  float32 [V], which multiply the rows
    """
    for k in range(len(out)):
        n = bounds[k + 1] - bounds[k]
        total = out[k]
        total[:] = 0
        for i in range(bounds[k], bounds[k + 1]):
            if i + AHEAD < rows.size:
                prefetch(matrix, rows[i + AHEAD])
            row, weight = matrix[rows[i]], weights[rows[i]]
            for e in range(total.size):
                total[e] += weight * row[e]
        scale = np.float32(1 / max(n, 1))
        for e in range(total.size):
            total[e] *= scale
