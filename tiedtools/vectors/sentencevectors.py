"""Sentence vectors: means of word vectors, plain or with smooth inverse frequency weights (SIF; Arora et al. 2017).

SIF weighs a word by a / (a + p(w)) and removes the common component, the first right singular vector u of the matrix of
the weighted means. Both are linear, so the means of the word vectors (I - u u^T) a / (a + p(w)) v_w are SIF vectors.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tiedtools.base.processor import available_cores
from tiedtools.kernels.text import means as kernel


def means(matrix, rows, bounds, weights, common):
    """Return the weighted means, float32 [N, E], of rows of a matrix, without their projections on `common`.

    rows, bounds     int32 [n] and int64 [N + 1]: sentence k has the words rows[bounds[k] : bounds[k + 1]]
    weights, common  float32 [V] and [E], as from `sif`
    """
    N, threads = len(bounds) - 1, available_cores()
    out = np.empty((N, matrix.shape[1]), np.float32)
    cuts = np.linspace(0, N, threads + 1).astype(int)

    def run(first, last):
        kernel.means(out[first:last], matrix, weights, rows, bounds[first : last + 1])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, cuts[:-1], cuts[1:]))
    return without(out, common)


def without(vectors, common):
    """Subtract the projections of vectors [N, E] on a unit vector or zero, [E], in place, and return them."""
    vectors -= (vectors @ common)[:, None] * common
    return vectors


def sif(matrix, rows, bounds, a):
    """Return the weights of words and the common component, float32 [V] and [E], estimated on documents.

    a  smoothing constant; None: plain means, with weights of 1 and no common component
    """
    V, E = matrix.shape
    none = np.zeros(E, np.float32)
    if a is None:
        return np.ones(V, np.float32), none
    counts = np.bincount(rows[: bounds[-1]], minlength=V)
    weights = (a / (a + counts / max(counts.sum(), 1))).astype(np.float32)
    vectors = means(matrix, rows, bounds, weights, none)
    return weights, np.linalg.eigh((vectors.T @ vectors).astype(float))[1][:, -1].astype(np.float32)
