"""Changes of a matrix that several processes train, and their combination."""

import math

import numpy as np

from tiedtools.kernels.base.bfloat16 import halves, pair
from tiedtools.kernels.base.jit import jit

NEARLY_ONE = 1 - 1e-6


@jit
def take_changes(changes, ranks, matrix, base):
    """changes = matrix - base [rows, P]; ranks[i] is 1 if row i has changed, otherwise 0."""
    for i in range(matrix.shape[0]):
        touched = np.float32(0)
        for d in range(matrix.shape[1]):
            change = matrix[i, d] - base[i, d]
            changes[i, d] = change
            touched = max(touched, abs(change))
        ranks[i] = touched > 0


@jit
def combine(matrix, base, changes, total, ranks, occurrences):
    """Replace this rank's changes of each row by a share of `total` [rows, P], the sum of the changes of all ranks.

    ranks        float32 [rows], number of ranks that changed the row
    occurrences  float64 [rows], of the row's word in the texts of all ranks since the last exchange, in saturations

    One rank's updates move a row a fraction 1 - q toward its optimum, with q = exp(-occurrences). n ranks one after
    the other would move it 1 - q^n; the sum of n changes from the same start is n (1 - q). Changes of rare rows are
    thus added, and changes of frequent rows averaged.
    """
    for i in range(matrix.shape[0]):
        q, n, part = math.exp(-occurrences[i]), ranks[i], 1.0
        if n > 1 and q < NEARLY_ONE:
            part = (1 - q**n) / (n * (1 - q))
        for d in range(matrix.shape[1]):
            # Exactly 0 in a row that was not trained since `take_changes`, so that it then has no change.
            since = (matrix[i, d] - base[i, d]) - changes[i, d]
            base[i, d] += np.float32(part) * total[i, d]
            matrix[i, d] = base[i, d] + since


@jit
def narrow(packed, floats):
    """Round float32 [n] to bfloat16, two in each uint32 [n / 2]; `floats` becomes the rounded numbers."""
    for i in range(packed.size):
        packed[i] = pair(floats[2 * i], floats[2 * i + 1])
        floats[2 * i], floats[2 * i + 1] = halves(packed[i])


@jit
def widen(floats, packed):
    """Inverse of `narrow`."""
    for i in range(packed.size):
        floats[2 * i], floats[2 * i + 1] = halves(packed[i])


@jit
def add_narrow(into, other):
    """Add bfloat16 numbers in pairs, uint32 [n]."""
    for i in range(into.size):
        a, b = halves(into[i])
        c, d = halves(other[i])
        into[i] = pair(a + c, b + d)
