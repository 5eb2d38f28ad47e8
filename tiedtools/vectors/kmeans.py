"""Cluster word vectors into word classes by k-means, as word2vec.c's -classes."""

import numpy as np

BLOCK = 4096  # rows at a time
SCORES = 1 << 22  # maximum size of a block of scores, which limits the rows if there are many classes


def spherical_kmeans(matrix: np.ndarray, classes: int, iterations: int = 10) -> np.ndarray:
    """Cluster the rows of `matrix` [V, m] into `classes` classes by dot product with unit-length means; int64 [V].

    As in word2vec.c, row k starts in class k mod `classes`; means and assignments are updated `iterations` times.
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
