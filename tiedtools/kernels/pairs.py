"""Cosines of pairs, rounded to whole steps, and their ranks.

cosines  float32 [R, N], of R rows with themselves and the N - R behind them; pairs are those with a column > the row
n        steps from -1 to 1
"""

from tiedtools.kernels.jit import jit


@jit
def count(counts, cosines, n):
    """Add to counts [n + 1] how many pairs have each cosine."""
    for i in range(cosines.shape[0]):
        for j in range(i + 1, cosines.shape[1]):
            counts[step(cosines[i, j], n)] += 1


@jit
def product(ranks, others, cosines, other_cosines, n):
    """The sum over pairs of the product of the ranks, float64 [n + 1], that their cosines have in both."""
    total = 0.0
    for i in range(cosines.shape[0]):
        for j in range(i + 1, cosines.shape[1]):
            total += ranks[step(cosines[i, j], n)] * others[step(other_cosines[i, j], n)]
    return total


@jit
def step(cosine, n):
    return min(max(int((cosine + 1) * (n / 2) + 0.5), 0), n)
