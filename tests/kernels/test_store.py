"""Test row updates of synchronized threads, and the barrier between their rounds."""

import threading
import time

import numpy as np
import pytest

from tiedtools.kernels.base.arrays import lines
from tiedtools.kernels.base.barrier import wait_for_all
from tiedtools.kernels.word2vec.store import forget, gather, merge, merge_proj, scatter, scatter_product
from tiedtools.models.word2vec.workspaces import store

V, P, MOST = 9, 16, 7  # fewer changed rows per round than words


def integers(rng, *shape):
    """Return random integers, whose sums are exact in any order."""
    return rng.integers(-9, 10, shape).astype(np.float32)


def gathered(shared, words, thread):
    out = np.full((len(words), P), np.nan, np.float32)
    gather(out, *shared[:2], np.array(words, np.int32), thread)
    return out


def add(shared, words, change, thread, product):
    """Add changes to rows, as they are or as the product I^T change of 8 rows."""
    if product:
        scatter_product(shared, words, change.copy(), np.eye(8, dtype=np.float32), change, 1, 8, 8, 8, 0, thread)
    else:
        scatter(*shared, words, change, thread)


@pytest.mark.parametrize("product", [False, True])
def test_single_thread_applies_changes_immediately(product):
    rng = np.random.default_rng(0)
    matrix = integers(rng, V, P)
    expected, shared = matrix.copy(), store(matrix, 1, 5)
    for _ in range(20):
        words, change = rng.integers(V, size=8).astype(np.int32), integers(rng, 8, P)
        add(shared, words, change, 0, product)
        np.add.at(expected, words, change)
        np.testing.assert_array_equal(matrix, expected)
        np.testing.assert_array_equal(gathered(shared, words, 0), expected[words])


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_synchronized_threads_see_only_their_own_changes_until_merged(threads):
    rng = np.random.default_rng(threads)
    matrix = integers(rng, V, P)
    shared, everything = store(matrix, threads, MOST), list(range(V))
    assert shared[1][1].shape == (threads, MOST, P)
    for _ in range(30):
        start = matrix.copy()
        seen, movers = [start.copy() for _ in range(threads)], np.zeros((threads, V), bool)
        for _ in range(4):
            for t in rng.permutation(threads):
                # From MOST words, different ones for each thread, with repetitions.
                words = ((t + rng.integers(MOST, size=6)) % V).astype(np.int32)
                change = integers(rng, len(words), P)
                scatter(*shared, words, change, t)
                np.add.at(seen[t], words, change)
                movers[t, words] = True
                np.testing.assert_array_equal(gathered(shared, everything, t), seen[t])
        np.testing.assert_array_equal(matrix, start)
        for t in rng.permutation(threads):
            merge(*shared[:2], t)
        for t in range(threads):
            forget(shared[1], t)
            change = sum(s - start for s in seen) / np.maximum(movers.sum(0) - 1, 1)[:, None]
            np.testing.assert_allclose(gathered(shared, everything, t), start + change, atol=1e-4)
        matrix[:] = np.round(matrix)


@pytest.mark.parametrize("threads, product", [(1, False), (1, True), (2, True)])
def test_frozen_rows_are_never_changed(threads, product):
    rng, frozen = np.random.default_rng(0), np.zeros(V, np.uint8)
    frozen[[2, 5]] = 1
    matrix = integers(rng, V, P)
    expected, shared = matrix.copy(), store(matrix, threads, MOST, frozen)
    words = np.array([1, 2, 2, 5, 0, 5, 2, 5], np.int32)
    change = integers(rng, len(words), P)
    add(shared, words, change, 0, product)
    np.add.at(expected, words[[0, 4]], change[[0, 4]])
    np.testing.assert_array_equal(gathered(shared, list(range(V)), 0), expected)


def test_changes_are_merged_in_thread_order():
    """Rounding is then reproducible: (1 + 2**24) - 2**24 is 0, but (1 - 2**24) + 2**24 is 1."""
    results = []
    for first, second in [(2**24, -(2**24)), (-(2**24), 2**24)]:
        matrix = np.ones((V, P), np.float32)
        shared = store(matrix, 2, 1)
        for t in (1, 0):
            scatter(*shared, np.zeros(1, np.int32), np.full((1, P), [first, second][t], np.float32), t)
        merge(*shared[:2], 0)
        merge(*shared[:2], 1)
        results.append(set(matrix[0]))
    assert results == [{0}, {1}]


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_merge_proj(threads):
    rng = np.random.default_rng(0)
    proj, local = integers(rng, P, P), integers(rng, threads, P, P)
    expected = proj + (local - proj).sum(0) / max(threads - 1, 1)
    for t in rng.permutation(threads):
        merge_proj(proj, local, t)
    np.testing.assert_allclose(proj, expected, atol=1e-5)


def in_threads(count, work):
    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.parametrize("threads, rounds", [(1, 100), (2, 3000), (7, 300)])
def test_no_thread_passes_the_barrier_before_all_arrive(threads, rounds):
    gate, stop = lines(16, np.int64), np.zeros(1, np.uint8)
    arrived, early = [0] * threads, []

    def work(number):
        for k in range(1, rounds + 1):
            arrived[number] = k
            if not wait_for_all(gate, threads, stop) or min(arrived) < k:
                early.append((number, k))
            if number == k % threads and k % 100 == 0:
                time.sleep(0.001)  # different threads arrive late in different rounds

    wait_for_all(lines(16, np.int64), 1, stop)  # compile
    in_threads(threads, work)
    assert not early and arrived == [rounds] * threads


def test_stop_flag_releases_threads_at_the_barrier():
    gate, stop = lines(16, np.int64), np.zeros(1, np.uint8)
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(wait_for_all(gate, 2, stop)), daemon=True)
    waiting.start()
    time.sleep(0.2)
    assert waiting.is_alive() and not answers, "the other thread has not arrived"
    stop[0] = 1
    waiting.join(10)
    assert answers == [False]
