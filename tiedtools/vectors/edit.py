"""Transform word vectors: edit words, normalize, cluster by k-means, and align two spaces by an orthogonal matrix."""

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.text.sources import counted
from tiedtools.text.vocab import END
from tiedtools.vectors.formats import SPACES
from tiedtools.vectors.norms import blocks, first_rows, products, unit
from tiedtools.vectors.vectors import Vectors

BLOCK = 4096  # rows at a time
BANDS = 1, 101, 1001, 5001, 20001  # first ranks of the bands of word frequency
SCORES = 1 << 22  # maximum size of a block of scores, which limits the rows if there are many classes


def lower(vectors: Vectors, how: str) -> Vectors:
    """Lower-case the words and merge duplicates, whose counts are added, in the order of first occurrence.

    how  "first": use the vector of the first spelling; "mean": average the vectors of all spellings
    """
    index = {}
    rows = [index.setdefault(word.replace("İ", "i").lower(), len(index)) for word in vectors.words]
    if how == "first":
        matrix = vectors.matrix[np.unique(rows, return_index=True)[1]]
    else:
        sums = np.zeros((len(index), vectors.dim), np.float32)
        np.add.at(sums, rows, vectors.matrix)
        matrix = sums / np.bincount(rows)[:, None].astype(np.float32)
    merged = Vectors(list(index), matrix)
    merged.counts = None if vectors.counts is None else np.bincount(rows, vectors.counts).astype(np.int64)
    return merged


def spaces(vectors: Vectors, how: str) -> tuple[Vectors, int, int]:
    """Remove spaces, tabs, and line breaks in words; return the vectors, and how many words were changed and dropped.

    how  "skip": drop words with spaces; "_", for example: replace each space with it, and drop words that exist without
    """
    spaced = [re.search(SPACES, word) is not None for word in vectors.words]
    words, seen = [*vectors.words], {word for word, has in zip(vectors.words, spaced) if not has}
    kept = []
    for row, (word, has) in enumerate(zip(vectors.words, spaced)):
        if has and (how == "skip" or (new := re.sub(SPACES, how, word)) in seen):
            continue
        if has:
            words[row] = new
            seen.add(new)
        kept.append(row)
    replaced, dropped = Vectors(words, vectors.matrix), len(words) - len(kept)
    replaced.counts = vectors.counts
    return replaced.take(kept) if dropped else replaced, sum(spaced) - dropped, dropped


def spherical_kmeans(matrix: np.ndarray, classes: int, iterations: int = 10) -> np.ndarray:
    """Cluster the rows of `matrix` [V, m] into `classes` classes by dot product with unit-length means; int64 [V].

    As by word2vec.c's -classes, row k starts in class k mod `classes`; means and assignments are updated `iterations`
    times.
    """
    assigned = np.arange(len(matrix)) % classes
    block = max(1, min(BLOCK, SCORES // classes))
    for _ in range(iterations):
        centers = np.zeros((classes, matrix.shape[1]), np.float64)
        np.add.at(centers, assigned, matrix)
        norms = np.linalg.norm(centers, axis=1, keepdims=True)
        centers = (centers / np.where(norms > 0, norms, 1)).astype(np.float32)
        # An empty class stays empty.
        bias = np.where(norms[:, 0] > 0, 0, -np.inf).astype(np.float32)
        for start in range(0, len(matrix), block):
            assigned[start : start + block] = np.argmax(matrix[start : start + block] @ centers.T + bias, axis=1)
    return assigned


def rotation(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Return the orthogonal matrix Q, float64 [E, E], that minimizes |two Q - one| (orthogonal Procrustes problem).

    one, two  vectors of the same n words, [n, E]; Q may reflect (Schönemann 1966)
    """
    return orthogonal(products(two, one))


def orthogonal(matrix: np.ndarray) -> np.ndarray:
    """Return the orthogonal matrix nearest to a square matrix."""
    left, _, right = np.linalg.svd(matrix)
    return left @ right


def refuse_dimensions(one: int, two: int) -> None:
    """Raise TiedtoolsError for two different dimensions."""
    if one != two:
        raise TiedtoolsError(f"vectors of {one} and of {two} dimensions cannot be compared; train both with one size")


def aligned_cosines(one: np.ndarray, two: np.ndarray, present: np.ndarray, align: bool = True) -> np.ndarray:
    """Return the cosine of each word's two vectors, after aligning `two` to `one`, float64 [n]; NaN for absent words.

    one, two  vectors of the same n words, [n, E]; present: whether the word has both, bool [n]. All vectors are
              normalized to length 1, and Q is fitted to the words that are present.
    """
    units = [unit(np.asarray(matrix[present], np.float32)) for matrix in (one, two)]
    cosines = np.full(len(one), np.nan)
    cosines[present] = np.einsum("ne,ne->n", units[0], units[1] @ rotation(*units) if align else units[1])
    return np.clip(cosines, -1, 1)


def common(one: list[str], two: list[str]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the words of both lists, in the order of the first, and the rows of their first vectors in each.

    Raises TiedtoolsError for fewer than two words.
    """
    index = first_rows(two)
    rows = [(row, index.pop(word)) for row, word in enumerate(one) if word in index and word != END]
    if len(rows) < 2:
        shared = counted(len(rows), "word")
        raise TiedtoolsError(f"{shared} in common, too few to align; are language and case the same?")
    first, second = np.array(rows).T
    return [one[row] for row in first], first, second


def align(one: Vectors, two: Vectors, center: bool = False, normalize: bool = True) -> tuple[Vectors, list[Any]]:
    """Return all vectors of `two` in the space of `one`, and how well the common words agree, a dict for each band.

    center     subtract the mean of the common words on each side, and add that of `one` after the rotation
    normalize  fit to vectors of length 1; the vectors returned keep their lengths

    Each dict has ranks, in the order of `one`; words; cosine: the mean cosine of a word's two vectors; and low, high:
    its 5 and 95 percentiles over words. Raises TiedtoolsError for different dimensions.
    """
    refuse_dimensions(one.dim, two.dim)
    _, rows, other_rows = common(one.words, two.words)
    n, E = len(rows), one.dim

    def pairs(matrix: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for part in (slice(start, start + BLOCK) for start in range(0, n, BLOCK)):
            yield one.matrix[rows[part]].astype(np.float64), matrix[other_rows[part]].astype(np.float64)

    product, sums, scaled_sums = np.zeros((E, E)), np.zeros((2, E)), np.zeros((2, E))
    for sides in pairs(two.matrix):
        scaled = [unit(side).astype(np.float64) if normalize else side for side in sides]
        product += scaled[1].T @ scaled[0]
        sums += [side.sum(0) for side in sides]
        scaled_sums += [side.sum(0) for side in scaled]
    Q = orthogonal(product - center * np.outer(scaled_sums[1], scaled_sums[0]) / n)
    means, aligned = center * sums / n, np.empty((len(two), E), np.float32)
    for start, block in blocks(two.matrix):
        aligned[start : start + len(block)] = (block - means[1]) @ Q + means[0]
    cosines = np.concatenate([(unit(first) * unit(second)).sum(1) for first, second in pairs(aligned)])
    lines, end = [], one.index.get(END, len(one))
    positions, most = rows + (rows < end), len(one) - (end < len(one))  # without `</s>`, from 1
    for first, after in zip(BANDS, (*BANDS[1:], most + 1)):
        if len(band := cosines[(first <= positions) & (positions < after)]):
            low, high = np.percentile(band, [5, 95]).tolist()
            ranks = f"{first:,} to {min(after - 1, most):,}"
            lines.append(dict(ranks=ranks, words=len(band), cosine=float(band.mean()), low=low, high=high))
    return Vectors(two.words, aligned), lines
