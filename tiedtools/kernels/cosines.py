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
def gather(sums, ranks, cosines, others, n):
    """Add to sums [n + 1], at each pair's cosine, the rank, float64 [n + 1], that its cosine in `others` has."""
    for i in range(cosines.shape[0]):
        for j in range(i + 1, cosines.shape[1]):
            sums[step(cosines[i, j], n)] += ranks[step(others[i, j], n)]


@jit
def by_row(sums, ranks, other_ranks, terms, other_terms, cosines, others, n):
    """Add to sums [N], at both rows of each pair, the product of its two ranks and its two terms, float64 [n + 1]."""
    for i in range(cosines.shape[0]):
        for j in range(i + 1, cosines.shape[1]):
            x, y = step(cosines[i, j], n), step(others[i, j], n)
            value = ranks[x] * other_ranks[y] + terms[x] + other_terms[y]
            sums[i] += value
            sums[j] += value


@jit
def step(cosine, n):
    return min(max(int((cosine + 1) * (n / 2) + 0.5), 0), n)
