"""Compare two sets of vectors of the same words: cosines of all pairs, column spaces, neighbors; principal components.

Shapes: V words, E dimensions, which may differ between the two sets.
"""

import pkgutil
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation.similarity import Z
from tiedtools.text.sources import counted
from tiedtools.vectors import norms
from tiedtools.vectors.neighbors import Candidates, neighbors
from tiedtools.vectors.norms import products, unit
from tiedtools.vectors.vectors import Vectors

STEPS = 1 << 20  # cosines are rounded to this many steps from -1 to 1
BLOCK = 1 << 22  # numbers in a block of rows or cosines
QUERIES = 1000  # maximum number of words whose neighbors are compared
PROJECTIONS = {"pca": "", "tsne": "sklearn.manifold:TSNE", "umap": "umap:UMAP"}
SHARES = 0.5, 0.75, 0.9, 0.95, 0.99  # of the variance, retained by principal components
NULL = 1e-6  # singular values below this fraction of the largest are float32 rounding errors


def in_common(one: Vectors, two: Vectors) -> list[Vectors]:
    """Restrict two Vectors to their common words, in the order of the first.

    Raises TiedtoolsError if they have fewer than two words in common.
    """
    words = [word for word in one.index if word in two.index]
    if len(words) < 2:
        raise TiedtoolsError(f"{counted(len(words), 'word')} in common, too few; are language and case the same?")
    return [vectors if vectors.words == words else vectors.restrict(words) for vectors in (one, two)]


def spearman_of_cosines(one: np.ndarray, two: np.ndarray, V: Any = None) -> dict[str, Any]:
    """Return Spearman's rho between the cosines of all row pairs in `one` and `two` (N, E): Press and Wolf, Table 4.

    Returns a dict of rho, low, and high. If the N rows are a sample of V > N, low and high are the 95% interval for the
    rho of all V rows, otherwise None. The standard error is from the infinitesimal jackknife over words (Efron and
    Tibshirani 1993, chapter 21), since pairs that share a word are not independent.

    Cosines within 2 / STEPS of each other may be ties; a zero vector has cosine 0 with all others. rho is NaN if all
    cosines of a matrix are equal. Works block by block, in two or three passes: memory does not grow with the number
    of pairs.
    """
    from tiedtools.kernels.text import cosines as kernels  # deferred: compiled code is slow to load

    units = [unit(matrix) for matrix in (one, two)]
    counts = [np.zeros(STEPS + 1, np.int64) for _ in units]
    for _, cosines in blocks(units):
        for count, block in zip(counts, cosines):
            kernels.count(count, block, STEPS)
    ranks = [np.cumsum(count) - (count - 1) / 2 - (count.sum() + 1) / 2 for count in counts]
    sampled = V is not None and V > len(one)
    sums = [np.zeros(STEPS + 1) for _ in units]  # per cosine, the sum of its pairs' ranks in the other matrix
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
        # Influence of a pair on rho = influence on the numerator - rho / 2 * influence on each sum of squares.
        terms = [
            shifts(total) - rho / 2 * scale / square * (rank**2 + 2 * shifts(count * rank))
            for total, square, count, rank in zip(sums, squares, counts, ranks)
        ]
    influence = np.zeros(len(one))
    for start, cosines in blocks(units):
        kernels.by_row(influence[start:], *ranks, *terms, *cosines, STEPS)
    variance = len(one) * np.var(influence / scale, ddof=1) * (1 - len(one) / V)
    return {"rho": rho, **normal_interval(rho, np.sqrt(variance), sampled, -1)}


def shifts(sums: np.ndarray) -> np.ndarray:
    """Return the change in the sum of rank times value if a pair is added at each cosine, which shifts the ranks above.

    sums  sum of the values of the pairs at each cosine; the total must be 0
    """
    return sums / 2 - np.cumsum(sums)


def blocks(units: Sequence[np.ndarray]) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Yield (start, cosines) for the kernels, one block of rows at a time, the same rows of each matrix in `units`."""
    V = len(units[0])
    rows = max(1, BLOCK // V)
    for start in range(0, V, rows):
        yield start, [u[start : start + rows] @ u[start:].T for u in units]


def normal_interval(value: float, error: float, sampled: bool, least: int = 0) -> dict[str, float | None]:
    """Return the normal 95% interval, a dict of low and high clipped to `least`..1; both None unless `sampled`."""
    ends = np.clip([value - Z * error, value + Z * error], least, 1).tolist()
    return dict(zip(("low", "high"), ends if sampled else (None, None)))


def subspace_distance(one: np.ndarray, two: np.ndarray) -> dict[str, Any]:
    """Return the distance between the column spaces of two matrices (Inan et al. 2017, appendix B), as a dict.

    distance          d with d^2 = 1 - |U'Q|^2 / C, where U and Q are orthonormal bases and C is the smaller rank;
                      0: one space contains the other; 1: they are orthogonal
    rank, rank_other  ranks of the two matrices
    random            root mean square of d between random spaces of these ranks
    """
    bases = basis(products(one, one)), basis(products(two, two))
    ranks = [base.shape[1] for base in bases]
    C = min(ranks)
    shared = np.square(bases[0].T @ products(one, two) @ bases[1]).sum() / C if C else np.nan
    distance, random = np.sqrt(np.maximum(0, 1 - shared)), np.sqrt(max(0, 1 - max(ranks) / len(one)))
    return dict(distance=float(distance), rank=ranks[0], rank_other=ranks[1], random=float(random))


def basis(squares: np.ndarray) -> np.ndarray:
    """Return B (E, rank) such that the columns of M @ B are an orthonormal basis of M's column space; squares = M'M."""
    lengths = np.sqrt(np.diag(squares))
    # Scale columns to length 1; otherwise rounding would hide short columns.
    scale = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    variances, directions = np.linalg.eigh(squares * np.outer(scale, scale))
    nonzero = variances > variances.max() * NULL**2
    return scale[:, None] * directions[:, nonzero] / np.sqrt(variances[nonzero])


def shared_neighbors(one: Vectors, two: Vectors, queries: Sequence[str], top: int = 10) -> dict[str, Any]:
    """Measure the overlap of the `top` nearest neighbors of the words `queries` in two Vectors of the same words.

    Returns a dict of share, the mean proportion of neighbors in common, and jaccard, the mean Jaccard index. Each is a
    dict of value, low, and high. If the queries are a sample of the words, low and high are the 95% interval for the
    mean over all words, otherwise None.
    """
    sets = [[{word for word, _ in nearest} for nearest in neighbors(Candidates(v), queries, top)] for v in (one, two)]
    both = np.array([[len(a & b), max(len(a), len(b), 1), max(len(a | b), 1)] for a, b in zip(*sets)])
    N, V = len(queries), len(one)
    overlaps = {}
    for name, values in ("share", both[:, 0] / both[:, 1]), ("jaccard", both[:, 0] / both[:, 2]):
        value, error = float(values.mean()), np.sqrt(np.var(values, ddof=min(N - 1, 1)) / N * (1 - N / V))
        overlaps[name] = {"value": value, **normal_interval(value, error, N < V)}
    return overlaps


def compare(one: Vectors, two: Vectors, limit: int = 10_000, top: int = 10, seed: int = 1) -> dict[str, Any]:
    """Compute all measures for two Vectors: rho on at most `limit` words, neighbors of at most QUERIES of these words.

    Returns a dict. Raises TiedtoolsError if they have fewer than two words in common.
    """
    counts = {"words": len(one), "words_other": len(two)}
    one, two = in_common(one, two)
    V = len(one)
    drawn = np.random.default_rng(seed).permutation(V)[:limit]
    rows, queries = np.sort(drawn), [one.words[row] for row in np.sort(drawn[:QUERIES])]
    pairs, rho = len(rows) * (len(rows) - 1) // 2, spearman_of_cosines(one.matrix[rows], two.matrix[rows], V)
    cosines = {"words": len(rows), "pairs": pairs, **rho}
    shared = {"words": len(queries), "top": top, **shared_neighbors(one, two, queries, top)}
    spaces = subspace_distance(one.matrix, two.matrix)
    return {**counts, "common": V, "cosines": cosines, "subspaces": spaces, "neighbors": shared}


def retained_variance(matrix: np.ndarray) -> np.ndarray:
    """Return the proportion of variance retained by the first k principal components of matrix (V, E), k = 1..E: (E,).

    As in Assylbekov and Takhanov 2018, Figure 3. NaN if all rows are equal.
    """
    matrix = np.asarray(matrix)
    mean = matrix.mean(0, dtype=np.float64)
    parts = (rows - mean for _, rows in norms.blocks(matrix))
    variances = np.linalg.eigvalsh(sum(part.T @ part for part in parts))[::-1].clip(0)
    with np.errstate(invalid="ignore"):
        return np.cumsum(variances) / variances.sum()


def components_for(retained: np.ndarray, shares: Sequence[float] = SHARES) -> list[int | None]:
    """Return the smallest number of components for each of `shares` of the variance; None if `retained` has NaN."""
    if np.isnan(retained).any():
        return [None] * len(shares)
    return [int(np.searchsorted(retained, share * (1 - 1e-12))) + 1 for share in shares]


def word_map(matrix: Any, method: str = "pca", seed: int = 1) -> tuple[np.ndarray, Sequence[str]]:
    """Project the vectors of R words (R, E), scaled to unit length, to points (R, 2); also return the axes' names.

    method  "pca": the first two principal components; "tsne": scikit-learn's t-SNE (van der Maaten and Hinton 2008);
            "umap": umap-learn's UMAP (McInnes et al. 2018)

    Raises TiedtoolsError for fewer than three words, and if the package of t-SNE or UMAP is not installed.
    """
    if len(matrix) < 3:
        raise TiedtoolsError(f"a map needs three words or more, not {len(matrix)}; name further words")
    matrix = unit(matrix).astype(np.float64)
    points, shares = plane(matrix)
    if method == "pca":
        return points, [f"{k} principal component, {s:.0%} of the variance" for k, s in zip(("1st", "2nd"), shares)]
    tsne, start = method == "tsne", points / max(points[:, 0].std(), np.finfo(float).tiny)
    try:
        kind = pkgutil.resolve_name(PROJECTIONS[method])
    except ImportError:
        needed = "t-SNE needs scikit-learn" if tsne else "UMAP needs umap-learn"
        raise TiedtoolsError(f"{needed}: pip install {needed.split()[-1]}, or choose pca") from None
    if tsne:
        size = min(30, (len(matrix) - 1) / 3)
        projection, of = kind(perplexity=size, init=1e-4 * start, random_state=seed), f"t-SNE, perplexity {size:g}"
    else:
        size = min(15, len(matrix) - 1)
        projection, of = kind(n_neighbors=size, init=start, random_state=seed, n_jobs=1), f"UMAP, {size} neighbors"
    return projection.fit_transform(matrix), (f"{of}: only neighborhoods are meaningful", "")


def plane(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Project rows (V, E) to points (V, 2) on the first two principal components; also return their variance shares.

    The sign of a component is arbitrary; its entry of largest magnitude is made positive.
    """
    centered = np.pad(matrix - matrix.mean(0), ((0, 0), (0, 1)))  # at least two columns, hence two components
    _, sizes, axes = np.linalg.svd(centered, full_matrices=False)
    axes = axes[:2] * np.sign(axes[np.arange(2), np.abs(axes[:2]).argmax(1)])[:, None]
    return centered @ axes.T, sizes[:2] ** 2 / max((sizes**2).sum(), np.finfo(float).tiny)
