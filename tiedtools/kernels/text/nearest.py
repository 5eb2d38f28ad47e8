"""The nearest of at most 256 centroids, for product quantization."""

import numpy as np

from tiedtools.kernels.base.jit import jit

CENTROIDS = 256
CODE = np.int32(CENTROIDS - 1)  # the last bits of a distance, which are replaced by the centroid's code


@jit
def nearest(codes, distances, bits, rows, centroids):
    """Write the code of the centroid nearest to each of `rows`, float32 [V, D], to codes, uint8 [V].

    distances  float32 [256], and bits, the same memory as int32: workspace
    centroids  float32 [D, 256]

    Squared distances are compared to 15 bits: as integers, whose minimum takes few instructions.
    """
    for v in range(rows.shape[0]):
        for c in range(distances.size):
            distances[c] = 0
        for d in range(rows.shape[1]):
            x, column = rows[v, d], centroids[d]
            for c in range(distances.size):
                distances[c] += (x - column[c]) * (x - column[c])
        best = np.int32(0x7FFFFFFF)
        for c in range(bits.size):
            best = min(best, bits[c] & ~CODE | np.int32(c))
        codes[v] = best & CODE
