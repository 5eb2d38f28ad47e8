"""Principal components of word vectors: retained variance, and two-dimensional maps.

Shapes: V words, E dimensions.
"""

from collections.abc import Sequence

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.vectors.norms import blocks, unit
from tiedtools.vectors.vectors import Vectors

SHARES = (0.5, 0.75, 0.9, 0.95, 0.99)


def retained_variance(matrix: np.ndarray) -> np.ndarray:
    """Return the proportion of variance retained by the first k principal components of matrix (V, E), k = 1..E: (E,).

    As in Assylbekov and Takhanov 2018, Figure 3. NaN if all rows are equal.
    """
    matrix = np.asarray(matrix)
    mean = matrix.mean(0, dtype=np.float64)
    parts = (rows - mean for _, rows in blocks(matrix))
    variances = np.linalg.eigvalsh(sum(part.T @ part for part in parts))[::-1].clip(0)
    with np.errstate(invalid="ignore"):
        return np.cumsum(variances) / variances.sum()


def components_for(retained: np.ndarray, shares: Sequence[float] = SHARES) -> list[int | None]:
    """Return the smallest number of components for each of `shares` of the variance; None if `retained` has NaN."""
    if np.isnan(retained).any():
        return [None] * len(shares)
    return [int(np.searchsorted(retained, share * (1 - 1e-12))) + 1 for share in shares]


def word_map(
    vectors: Vectors, rows: Sequence[int] | np.ndarray, method: str = "pca", seed: int = 1
) -> tuple[np.ndarray, Sequence[str]]:
    """Project the unit-length vectors of R words to points (R, 2); return the points and the names of the two axes.

    rows    rows of the words
    method  "pca": the first two principal components; "tsne": scikit-learn's t-SNE (van der Maaten and Hinton 2008)

    Raises TiedtoolsError for fewer than three words, and for t-SNE if scikit-learn is not installed.
    """
    if len(rows) < 3:
        raise TiedtoolsError(f"{len(rows)} words are too few for a map; name at least three")
    matrix = unit(vectors.matrix[rows]).astype(np.float64)
    points, shares = plane(matrix)
    if method == "pca":
        return points, [f"{k} principal component, {s:.0%} of the variance" for k, s in zip(("1st", "2nd"), shares)]
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        raise TiedtoolsError("t-SNE needs scikit-learn: pip install scikit-learn; or use `method='pca'`") from None
    perplexity = min(30, (len(matrix) - 1) / 3)
    start = 1e-4 * points / max(points[:, 0].std(), np.finfo(float).tiny)
    tsne = TSNE(perplexity=perplexity, init=start, random_state=seed)
    return tsne.fit_transform(matrix), (f"t-SNE, perplexity {perplexity:g}: only neighborhoods are meaningful", "")


def plane(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Project rows (V, E) to points (V, 2) on the first two principal components; also return their variance shares.

    The sign of a component is arbitrary; its entry of largest magnitude is made positive.
    """
    centered = np.pad(matrix - matrix.mean(0), ((0, 0), (0, 1)))  # at least two columns, hence two components
    _, sizes, axes = np.linalg.svd(centered, full_matrices=False)
    axes = axes[:2] * np.sign(axes[np.arange(2), np.abs(axes[:2]).argmax(1)])[:, None]
    return centered @ axes.T, sizes[:2] ** 2 / max((sizes**2).sum(), np.finfo(float).tiny)
