"""How alike are two sets of vectors of the same words? Cosines of all pairs, the space they span, neighbours.

Letters in shapes: V words, E numbers in a vector, which need not be as many in both.
"""

import numpy as np

from tiedtools.errors import TiedtoolsError
from tiedtools.evaluation.neighbours import Candidates, neighbours
from tiedtools.evaluation.similarity import Z
from tiedtools.vectors.edit import unit
from tiedtools.vectors.vectors import Vectors

STEPS = 1 << 20  # that cosines from -1 to 1 are rounded to
BLOCK = 1 << 22  # numbers of a block of rows or of cosines
QUERIES = 1000
NULL = 1e-6  # of the largest singular value: what float32 cannot tell from 0


def in_common(one, two):
    """The Vectors of the words that two Vectors share, in the order of the first.

    Raises TiedtoolsError where there are fewer than two.
    """
    words = [word for word in one.index if word in two.index]
    if len(words) < 2:
        raise TiedtoolsError(f"{len(words)} words in common, too few to compare: are they of one language and case?")
    same = lambda v: v if v.words == words else Vectors(words, v.matrix[[v.index[word] for word in words]])
    return same(one), same(two)


def spearman_of_cosines(one, two, V=None):
    """Spearman's rho of the cosines of all pairs of rows, `one` (N, E) against `two` (N, E): Press and Wolf, Table 4.

    A dict of rho, low and high: where the N rows were drawn from V > N, the 95% interval of the rho of all pairs of
    these V, and else None. Its error is that of the infinitesimal jackknife over words (Efron and Tibshirani 1993,
    chapter 21), since pairs that share a word are not independent.

    Cosines within 2 / STEPS of each other may count as equal, as do those of a vector of zeros with all others. NaN
    where one matrix has all cosines equal. Two or three passes over blocks: memory does not grow with the number of
    pairs.
    """
    from tiedtools.kernels import cosines as kernels  # here, since compiled code is slow to load

    units = [unit(matrix) for matrix in (one, two)]
    counts = [np.zeros(STEPS + 1, np.int64) for _ in units]
    for _, cosines in blocks(units):
        for count, block in zip(counts, cosines):
            kernels.count(count, block, STEPS)
    ranks = [np.cumsum(count) - (count - 1) / 2 - (count.sum() + 1) / 2 for count in counts]
    sampled = V is not None and V > len(one)
    sums = [np.zeros(STEPS + 1) for _ in units]  # at each cosine, of the ranks that its pairs have in the other matrix
    for _, (x, y) in blocks(units):
        kernels.gather(sums[0], ranks[1], x, y, STEPS)
        if sampled:
            kernels.gather(sums[1], ranks[0], y, x, STEPS)
    squares = [count @ rank**2 for count, rank in zip(counts, ranks)]
    scale = np.sqrt(np.prod(squares))
    with np.errstate(invalid="ignore", divide="ignore"):
        rho = float(ranks[0] @ sums[0] / scale)
        if not sampled or np.isnan(rho):
            return {"rho": rho, **normal_interval(rho, np.nan, sampled)}
        # A pair's influence on rho: on its numerator, less half of rho times those on the two sums of squares.
        terms = [
            shifts(total) - rho / 2 * scale / square * (rank**2 + 2 * shifts(count * rank))
            for total, square, count, rank in zip(sums, squares, counts, ranks)
        ]
    influence = np.zeros(len(one))
    for start, cosines in blocks(units):
        kernels.by_row(influence[start:], *ranks, *terms, *cosines, STEPS)
    variance = len(one) * np.var(influence / scale, ddof=1) * (1 - len(one) / V)
    return {"rho": rho, **normal_interval(rho, np.sqrt(variance), sampled, -1)}


def shifts(sums):
    """What a further pair at each cosine adds to the sum of rank times value, by the ranks of the pairs above it.

    sums  the values of all pairs at each cosine, which are 0 in all
    """
    return sums / 2 - np.cumsum(sums)


def blocks(units):
    """(start, cosines) of unit vectors as the kernels want them, a block of rows at a time, the same of each matrix."""
    V = len(units[0])
    rows = max(1, BLOCK // V)
    for start in range(0, V, rows):
        yield start, [u[start : start + rows] @ u[start:].T for u in units]


def normal_interval(value, error, sampled, least=0):
    """A dict of low and high, the 95% interval by a standard error, within `least`..1; None where all were counted."""
    ends = np.clip([value - Z * error, value + Z * error], least, 1).tolist()
    return dict(zip(("low", "high"), ends if sampled else (None, None)))


def subspace_distance(one, two):
    """The distance of the spaces that the columns of two matrices span (Inan et al. 2017, appendix B), as a dict.

    distance        d with d^2 = 1 - |U'Q|^2 / C: U and Q are orthonormal bases, C is the smaller of their ranks. 0:
                    one space holds the other; 1: they are orthogonal
    rank, rank_other  of the two matrices
    random          the root mean square of d of random spaces of these ranks
    """
    bases = basis(products(one, one)), basis(products(two, two))
    ranks = [base.shape[1] for base in bases]
    C = min(ranks)
    shared = np.square(bases[0].T @ products(one, two) @ bases[1]).sum() / C if C else np.nan
    return {
        "distance": float(np.sqrt(np.maximum(0, 1 - shared))),
        "rank": ranks[0],
        "rank_other": ranks[1],
        "random": float(np.sqrt(max(0, 1 - max(ranks) / len(one)))),
    }


def basis(squares):
    """B (E, rank), so that matrix @ B has orthonormal columns with the span of matrix, of which `squares` is M'M."""
    lengths = np.sqrt(np.diag(squares))
    scale = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)  # or rounding would hide short columns
    variances, directions = np.linalg.eigh(squares * np.outer(scale, scale))
    kept = variances > variances.max() * NULL**2
    return scale[:, None] * directions[:, kept] / np.sqrt(variances[kept])


def products(one, two):
    """one' two in float64, by blocks of rows."""
    rows = max(1, BLOCK // max(one.shape[1], two.shape[1]))
    parts = (one[k : k + rows].astype(float).T @ two[k : k + rows].astype(float) for k in range(0, len(one), rows))
    return sum(parts)


def shared_neighbours(one, two, queries, top=10):
    """What the `top` nearest neighbours of the words `queries` in two Vectors of the same words have in common.

    A dict of share, the mean part of them that is the same, and jaccard, the mean part of their union, each a dict of
    value and, where not all words are queries, of low and high, the 95% interval of the mean over all words.
    """
    sets = [[{word for word, _ in found} for found in neighbours(Candidates(v), queries, top)] for v in (one, two)]
    both = np.array([[len(a & b), max(len(a), len(b), 1), max(len(a | b), 1)] for a, b in zip(*sets)])
    N, V = len(queries), len(one)
    found = {}
    for name, parts in ("share", both[:, 0] / both[:, 1]), ("jaccard", both[:, 0] / both[:, 2]):
        value, error = float(parts.mean()), np.sqrt(np.var(parts, ddof=min(N - 1, 1)) / N * (1 - N / V))
        found[name] = {"value": value, **normal_interval(value, error, N < V)}
    return found


def compare(one, two, limit=10_000, top=10, seed=1):
    """All measures of two Vectors, as a dict: rho on at most `limit` words, neighbours of at most QUERIES of those.

    Raises TiedtoolsError where fewer than two words are common.
    """
    counts = {"words": len(one), "words_other": len(two)}
    one, two = in_common(one, two)
    V = len(one)
    drawn = np.random.default_rng(seed).permutation(V)[:limit]
    rows, queries = np.sort(drawn), [one.words[row] for row in np.sort(drawn[:QUERIES])]
    return {
        **counts,
        "common": V,
        "cosines": {
            "words": len(rows),
            "pairs": len(rows) * (len(rows) - 1) // 2,
            **spearman_of_cosines(one.matrix[rows], two.matrix[rows], V),
        },
        "subspaces": subspace_distance(one.matrix, two.matrix),
        "neighbours": {"words": len(queries), "top": top, **shared_neighbours(one, two, queries, top)},
    }
