"""Test spherical k-means against a plain version."""

import tracemalloc

import numpy as np

from tiedtools.vectors.edit import spherical_kmeans


def plain(matrix, classes, iterations=10):
    assigned = [k % classes for k in range(len(matrix))]
    for _ in range(iterations):
        centers = []
        for c in range(classes):
            members = [row for row, a in zip(matrix, assigned) if a == c]
            mean = np.sum(members, axis=0) if members else np.full(matrix.shape[1], np.nan)
            centers.append(mean / np.linalg.norm(mean))
        assigned = [int(np.nanargmax([row @ center for center in centers])) for row in matrix]
    return assigned


def test_agrees_with_plain_version(monkeypatch):
    monkeypatch.setattr("tiedtools.vectors.edit.BLOCK", 7)
    for seed in range(5):
        matrix = np.random.default_rng(seed).normal(size=(60, 5)).astype(np.float32)
        assert spherical_kmeans(matrix, 6).tolist() == plain(matrix.astype(np.float64), 6)


def test_finds_clusters():
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(4), 25))
    classes = spherical_kmeans((10 * np.eye(4)[truth] + rng.normal(size=(100, 4))).astype(np.float32), 4)
    assert len(set(zip(truth.tolist(), classes.tolist()))) == 4


def test_many_classes_take_little_memory():
    matrix = np.random.default_rng(0).normal(size=(5000, 2)).astype(np.float32)
    tracemalloc.start()
    spherical_kmeans(matrix, 5000, iterations=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6


def test_one_word_per_class():
    assert sorted(spherical_kmeans(np.eye(3, dtype=np.float32), 3).tolist()) == [0, 1, 2]
