"""Principal components: how much of their variance vectors keep in fewer dimensions, and where they lie in two.

Letters in shapes: V words, E numbers in a vector.
"""

import numpy as np

from tiedtools.errors import TiedtoolsError
from tiedtools.vectors.edit import unit

SHARES = (0.5, 0.75, 0.9, 0.95, 0.99)
BLOCK = 1 << 22  # numbers of a block of rows


def retained_variance(matrix):
    """The share of the variance of the rows of (V, E) that the first k components keep, k = 1 .. E: float64 (E,).

    Assylbekov and Takhanov 2018, Figure 3. NaN where all rows are equal.
    """
    mean = matrix.mean(0, dtype=np.float64)
    rows = max(1, BLOCK // matrix.shape[1])
    parts = (matrix[k : k + rows] - mean for k in range(0, len(matrix), rows))
    variances = np.linalg.eigvalsh(sum(part.T @ part for part in parts))[::-1].clip(0)
    with np.errstate(invalid="ignore"):
        return np.cumsum(variances) / variances.sum()


def components_for(retained, shares=SHARES):
    """The least number of components that keeps each of `shares` of the variance; None where variance is undefined."""
    if np.isnan(retained).any():
        return [None] * len(shares)
    return [int(np.searchsorted(retained, share * (1 - 1e-12))) + 1 for share in shares]


def word_map(vectors, rows, method="pca", seed=1):
    """Points (R, 2) for the words of `rows`, by their vectors at unit length, and names for the two axes.

    method  "pca": the first two principal components; "tsne": t-SNE (van der Maaten and Hinton 2008) of scikit-learn

    Raises TiedtoolsError for fewer than three words, and where scikit-learn is wanted and not installed.
    """
    if len(rows) < 3:
        raise TiedtoolsError(f"{len(rows)} words make no map: name three or more")
    matrix = unit(vectors.matrix[rows]).astype(np.float64)
    points, shares = plane(matrix)
    if method == "pca":
        return points, [
            f"{name} principal component, {s:.0%} of the variance" for name, s in zip(("1st", "2nd"), shares)
        ]
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        raise TiedtoolsError("t-SNE needs scikit-learn: pip install scikit-learn; or draw `method='pca'`") from None
    perplexity = min(30, (len(matrix) - 1) / 3)
    start = 1e-4 * points / max(points[:, 0].std(), np.finfo(float).tiny)
    tsne = TSNE(perplexity=perplexity, init=start, random_state=seed)
    return tsne.fit_transform(matrix), (f"t-SNE, perplexity {perplexity:g}: only who is near whom counts", "")


def plane(matrix):
    """Rows (V, E) as points (V, 2) by their first two principal components, and the share of variance of each.

    The largest entry of each component is positive, since either direction would do.
    """
    centred = np.pad(matrix - matrix.mean(0), ((0, 0), (0, 1)))  # two components even where E is 1
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    axes = axes[:2] * np.sign(axes[np.arange(2), np.abs(axes[:2]).argmax(1)])[:, None]
    return centred @ axes.T, sizes[:2] ** 2 / max((sizes**2).sum(), np.finfo(float).tiny)
