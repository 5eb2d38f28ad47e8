"""Test kernels of word2vec outside its loop: sampling, Huffman trees, storage."""

import functools
import heapq
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import reference

from tiedtools.kernels.base import scalar
from tiedtools.kernels.base.arrays import lines
from tiedtools.kernels.base.barrier import FUTEX, SLEEPERS, SLEEPS, rest, wait_for_all
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import below, exp32, log1p32, mix
from tiedtools.kernels.word2vec import sampling
from tiedtools.kernels.word2vec.store import forget, gather, merge, merge_proj, scatter
from tiedtools.models.word2vec.tables import huffman_tree, noise_probabilities, noise_table, subsampling_thresholds
from tiedtools.models.word2vec.workspaces import store


def test_random_numbers():
    # First outputs of the published generator for seed 1234567.
    stream = reference.Stream(1234567)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [stream.draw() for _ in range(3)] == expected
    assert mix(np.uint64((1234567 + reference.GOLDEN) & reference.MASK)) == expected[0]
    draws = [below(np.uint64(mix(np.uint64(k))), np.uint64(7)) for k in range(70_000)]
    assert np.bincount(draws, minlength=7) == pytest.approx(np.full(7, 10_000), rel=0.05)


def test_error_bounds():
    x = np.linspace(-86, 87, 100_001).astype(np.float32)
    fast = np.array([exp32(v) for v in x], np.float64)
    exact = np.exp(x.astype(np.float64))
    # Apart from a few ulp, the error comes from rounding x / ln 2.
    assert (np.abs(fast / exact - 1) < 3e-7 + 1.3e-7 * np.abs(x)).all()
    near = np.abs(x) <= 30
    assert np.abs(fast / exact - 1)[near].max() < 4e-6
    t = np.linspace(0, 1, 10_001).astype(np.float32)
    fast = np.array([log1p32(v) for v in t], np.float64)
    assert np.abs(fast - np.log1p(t.astype(np.float64))).max() < 4e-7


FUNCTIONS = {
    "exp": (scalar.exp, np.exp, 80),
    "sigmoid": (scalar.sigmoid, lambda x: 1 / (1 + np.exp(-x)), 1e4),
    "tanh": (scalar.tanh, np.tanh, 1e4),
}


@functools.cache
def over_array(function):
    @jit
    def kernel(out, x):
        for k in range(x.size):
            out[k] = function(x[k])

    return kernel


@pytest.mark.parametrize("name", FUNCTIONS)
def test_float32_functions_are_accurate(name):
    function, exact, reach = FUNCTIONS[name]
    x = np.concatenate([np.linspace(-80, 80, 100_001), np.linspace(-1, 1, 1001), [-reach, reach]]).astype(np.float32)
    out = np.empty_like(x)
    over_array(function)(out, x)
    with np.errstate(over="ignore"):
        expected = exact(x.astype(float))
    error = np.abs(out - expected) / (expected if name == "exp" else 1)
    assert (error <= (3e-7 + 1.3e-7 * np.abs(x) if name == "exp" else {"sigmoid": 1e-6, "tanh": 2e-6}[name])).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_at_nan_and_infinity(name, dtype):
    function, exact, _ = FUNCTIONS[name]
    x = np.array([np.nan, 0, 1, -1, np.inf, -np.inf], dtype)
    out = np.empty_like(x)
    over_array(function)(out, x)
    assert np.isnan(out[0])
    np.testing.assert_allclose(out[1:4], exact(x[1:4]), rtol=1e-5, atol=1e-6)
    if name == "exp" and dtype == np.float32:
        np.testing.assert_allclose(out[4:], np.exp([80.0, -80.0]), rtol=2e-5)
    else:
        np.testing.assert_allclose(out[4:], {"exp": (np.inf, 0), "sigmoid": (1, 0), "tanh": (1, -1)}[name], atol=1e-6)


COUNTS = np.array([400, 900, 500, 300, 200, 100, 50, 20, 5, 5, 1], np.int64)


@pytest.mark.parametrize("exponent", [0.75, 0, 1, -1, 10, -10])
def test_alias_table_represents_the_noise_distribution(exponent):
    table = noise_table(COUNTS, exponent)
    threshold = table[:, 0] / 2**32
    threshold[table[:, 0] == 0xFFFFFFFF] = 1
    p = threshold.copy()
    np.add.at(p, table[:, 1], 1 - threshold)
    np.testing.assert_allclose(p / len(p), noise_probabilities(COUNTS, exponent), atol=1e-9)


@pytest.mark.parametrize("exponent", [0.75, 0, 0.5, 1, -1, 10, -10.0])
def test_noise_probabilities(exponent):
    """The probability of `</s>` is spread over all other words that occur; words with count 0 are never drawn."""
    for line_ends, rare in (400, 1), (400, 0), (0, 1), (0, 0):
        counts = np.array([line_ends, *COUNTS[1:-1], rare])
        power = np.array([float(n) ** exponent if n else 0 for n in counts])
        power /= power.sum()
        p = noise_probabilities(counts, exponent)
        assert p[0] == 0 and p.sum() == pytest.approx(1) and (p >= 0).all()
        seen = counts[1:] > 0
        np.testing.assert_allclose(p[1:], power[1:] + seen * power[0] / seen.sum(), rtol=1e-12)


def subsampled(ids, keep, seed=5):
    """Return (tokens, begins, ends) after subsampling."""
    tokens, begins, ends = np.full((3, len(ids) + 1), -1, np.int32)
    n = sampling.subsample(tokens, begins, ends, np.array(ids, np.int32), keep, np.uint64(seed))
    assert (begins[n:] == -1).all() and (ends[n:] == -1).all()
    return tokens[:n], begins[:n], ends[:n]


def test_subsampling_keeps_given_proportions_and_splits_long_sentences():
    rng = np.random.default_rng(0)
    ids = rng.integers(1, 3, 200_000)
    keep = np.array([0, 0xFFFFFFFF, 0xFFFFFFFF // 4], np.uint32)
    tokens, begins, ends = subsampled(ids, keep)
    assert np.count_nonzero(tokens == 1) == np.count_nonzero(ids == 1)
    assert np.count_nonzero(tokens == 2) / np.count_nonzero(ids == 2) == pytest.approx(0.25, abs=0.01)
    longest = sampling.LONGEST_SENTENCE
    at = np.arange(len(tokens))
    assert (begins == at // longest * longest).all()
    assert (ends == np.minimum(begins + longest, len(tokens))).all() and len(tokens) % longest > 1
    assert subsampled(ids, keep, seed=6)[0].size != len(tokens)
    keep = np.array([0] + [0xFFFFFFFF] * 6 + [0], np.uint32)
    assert [a.tolist() for a in subsampled([1, 0, 0, 2, 3, 0, 4, 0, 7, 5, 7, 0, 5, 7, 6], keep)] == [
        [2, 3, 5, 6], [0, 0, 2, 2], [2, 2, 4, 4]
    ]  # fmt: skip
    assert subsampled([1, 0, 2, 0, 3], keep)[0].size == subsampled([], keep)[0].size == 0
    tokens, _, ends = subsampled([1] * (sampling.LONGEST_SENTENCE + 1) + [0, 2, 3], keep)
    assert len(tokens) == sampling.LONGEST_SENTENCE + 2 == ends[-1], "the one-word rest of a split sentence"
    keep = subsampling_thresholds(COUNTS, 1e-2) / 0xFFFFFFFF
    f = COUNTS / COUNTS.sum()
    np.testing.assert_allclose(keep, np.minimum((np.sqrt(f / 1e-2) + 1) * 1e-2 / f, 1), rtol=1e-6)
    assert (subsampling_thresholds(COUNTS, 0) == 0xFFFFFFFF).all()


@pytest.mark.parametrize("seed", range(5))
def test_huffman_codes_are_optimal_and_prefix_free(seed):
    counts = np.sort(np.random.default_rng(seed).integers(1, 1000, 50))[::-1].astype(np.int64)
    nodes, codes, starts = huffman_tree(counts)
    words = ["".join(map(str, codes[starts[k] : starts[k + 1]])) for k in range(50)]
    assert not any(a != b and b.startswith(a) for a in words for b in words)
    heap, best = counts.tolist(), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        best += joined
        heapq.heappush(heap, joined)
    assert sum(c * len(w) for c, w in zip(counts, words)) == best
    assert (nodes[starts[:-1]] == 48).all(), "every path begins at the root, the last inner node"
    # Each node corresponds to one prefix.
    prefix_of = {}
    for k in range(50):
        for i in range(starts[k], starts[k + 1]):
            assert prefix_of.setdefault(nodes[i], words[k][: i - starts[k]]) == words[k][: i - starts[k]]
    assert len(prefix_of) == 49


def test_huffman_codes_of_few_and_of_absent_words():
    of_word2vec = [[0, 0], [1, 0], [0, 1, 2]], [[1, 1, 0, 1, 0], [1, 0, 1, 0, 0], [0, 1, 3, 5]]  # nodes, codes, starts
    assert [[*map(list, huffman_tree(np.array(counts)))] for counts in ([7, 3], [2, 1, 1])] == [*of_word2vec]
    assert np.diff(huffman_tree(np.array([9] + [0] * 1000))[2]).max() <= 11


V, P, MOST = 9, 16, 7  # fewer changed rows per round than words


def integers(rng, *shape):
    """Return random integers, whose sums are exact in any order."""
    return rng.integers(-9, 10, shape).astype(np.float32)


def gathered(shared, words, thread):
    out = np.full((len(words), P), np.nan, np.float32)
    gather(out, *shared[:2], np.array(words, np.int32), thread)
    return out


def test_changes_are_merged_in_thread_order():
    rng = np.random.default_rng(0)
    matrix = integers(rng, V, P)
    expected, shared = matrix.copy(), store(matrix, 1, 5)
    for _ in range(20):
        words, change = rng.integers(V, size=5).astype(np.int32), integers(rng, 5, P)
        scatter(*shared, words, change, 0)
        np.add.at(expected, words, change)
        np.testing.assert_array_equal(matrix, expected)
        np.testing.assert_array_equal(gathered(shared, words, 0), expected[words])
    # Rounding is then reproducible: (1 + 2**24) - 2**24 is 0, but (1 - 2**24) + 2**24 is 1.
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


@pytest.mark.parametrize("threads", [1, 2])
def test_frozen_rows_are_never_changed(threads):
    rng, frozen = np.random.default_rng(0), np.zeros(V, np.uint8)
    frozen[[2, 5]] = 1
    matrix = integers(rng, V, P)
    expected, shared = matrix.copy(), store(matrix, threads, MOST, frozen)
    words = np.array([1, 2, 2, 5, 0], np.int32)
    change = integers(rng, len(words), P)
    scatter(*shared, words, change, 0)
    np.add.at(expected, words[[0, 4]], change[[0, 4]])
    np.testing.assert_array_equal(gathered(shared, list(range(V)), 0), expected)


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


@pytest.mark.parametrize("threads, rounds, sleeps", [(1, 100, 0), (2, 3000, 0), (7, 300, 0), (2, 16_000, 1 << 40)])
def test_no_thread_passes_the_barrier_before_all_arrive(threads, rounds, sleeps):
    """Also if in each round a thread sleeps, from which it is woken: the timeouts of all rounds would take 100 s."""
    gate, stop = lines(16, np.int64), np.zeros(1, np.uint8)
    gate[SLEEPS], arrived, early = sleeps, [0] * threads, []

    def work(number):
        for k in range(1, rounds + 1):
            arrived[number] = k
            while sleeps and number == k % threads and not gate[SLEEPERS]:
                time.sleep(0)
            if not wait_for_all(gate, threads, stop) or min(arrived) < k:
                early.append((number, k))
            if number == k % threads and k % 100 == 0:
                time.sleep(0.001)  # different threads arrive late in different rounds

    wait_for_all(lines(16, np.int64), 1, stop)  # compile
    in_threads(threads, work)
    assert not early and arrived == [rounds] * threads and not gate[SLEEPERS]
    assert not sleeps or sleeps - gate[SLEEPS] >= rounds


@pytest.mark.skipif(not FUTEX, reason="needs Linux")
def test_threads_that_wait_sleep_beside_another_process():
    """A yield to a process on the same core takes a time slice; after that, threads sleep instead."""
    cores, gate = os.sched_getaffinity(0), lines(16, np.int64)
    rest(gate, 8, 0)  # compile
    os.sched_setaffinity(0, list(cores)[:1])
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            deadline = time.monotonic() + 20
            while gate[SLEEPS] < 2 and time.monotonic() < deadline:
                rest(gate, 8, 0)
            found = gate[SLEEPS]
        finally:
            os.sched_setaffinity(0, cores)
            busy.kill()
    rest(gate, 8, 0)
    assert gate[SLEEPS] == found - 1 > 0 and gate[SLEEPERS] == 0


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
