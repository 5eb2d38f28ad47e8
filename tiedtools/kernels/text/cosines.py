"""Histograms and rank sums of pairwise cosines, rounded to n + 1 values from -1 to 1.

cosines  float32 [R, N], of R rows with themselves and the N - R rows after them; pairs have column > row
n        number of steps from -1 to 1
"""

from tiedtools.kernels.base.jit import jit


@jit
def count(counts, cosines, n):
    """Add the histogram of the pairs' cosines to counts [n + 1]."""
    for i in range(cosines.shape[0]):
        for j in range(i + 1, cosines.shape[1]):
            counts[step(cosines[i, j], n)] += 1


@jit
def gather(sums, ranks, cosines, others, n):
    """Add the rank, float64 [n + 1], of each pair's cosine in `others` to sums [n + 1] at its cosine in `cosines`."""
    for i in range(cosines.shape[0]):
        for j in range(i + 1, cosines.shape[1]):
            sums[step(cosines[i, j], n)] += ranks[step(others[i, j], n)]


@jit
def by_row(sums, ranks, other_ranks, terms, other_terms, cosines, others, n):
    """Add the product of a pair's two ranks plus its two terms, float64 [n + 1], to sums [N] at both of its rows."""
    for i in range(cosines.shape[0]):
        for j in range(i + 1, cosines.shape[1]):
            x, y = step(cosines[i, j], n), step(others[i, j], n)
            value = ranks[x] * other_ranks[y] + terms[x] + other_terms[y]
            sums[i] += value
            sums[j] += value


@jit
def step(cosine, n):
    """Return the histogram index 0 .. n of a cosine."""
    return min(max(int((cosine + 1) * (n / 2) + 0.5), 0), n)
