"""Test the kernel that finds the most probable words of a softmax."""

import itertools

import numpy as np
import pytest

from tiedtools.kernels.output.topk import WORDS, most_probable
from tiedtools.network.params import Buffers
from tiedtools.network.threads import Team

TEAMS = {threads: Team(threads) for threads in (1, 2, 3)}


def found(scores, b, K, threads=1):
    """Return (log probabilities, ids), [B, K] each, of scores [B, V]."""
    (B, V), buffers = scores.shape, Buffers(scores.dtype)
    logprobs, ids = np.empty((threads, B, K)), np.empty((threads, B, K), np.int32)
    X, W = buffers("x", B, V), buffers("w", V, V)
    X[:, :V], W[:, :V] = scores, np.eye(V)
    Z, XT, stats = buffers("z", threads * WORDS, B), buffers("xt", V, B), buffers("stats", threads, 4, B)
    stats[:] = np.nan
    TEAMS[threads](most_probable, logprobs, ids, Z, XT, stats, X, W, b)
    return logprobs[0], ids[0]


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 2e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("B, V, K", [(1, 1, 1), (1, 7, 3), (5, 64, 5), (16, 65, 1), (37, 1000, 12), (90, 3, 3)])
def test_log_probabilities_highest_first_ties_by_id(B, V, K, dtype, tolerance):
    rng = np.random.default_rng(V)
    scores, b = rng.integers(-20, 20, (B, V)).astype(dtype), rng.integers(0, 3, V).astype(dtype)
    for bias, threads in itertools.product((b, b[:0]), TEAMS):
        z = scores + bias if len(bias) else scores
        expected = z - np.log(np.exp(z.astype(float)).sum(1, keepdims=True))
        logprobs, ids = found(scores, bias, K, threads)
        assert (ids == np.argsort(-z, axis=1, kind="stable")[:, :K]).all()
        np.testing.assert_allclose(logprobs, np.take_along_axis(expected, ids, 1), rtol=tolerance, atol=tolerance)


def test_large_scores_and_peaks_that_come_late():
    scores = np.arange(300, dtype=np.float32)[None] * 100
    logprobs, ids = found(scores, scores[0, :0], 3)
    assert ids.tolist() == [[299, 298, 297]] and logprobs.tolist() == [[0, -100, -200]]


def test_numbers_that_are_never_chosen():
    scores, b = np.array([[1.0, 2.0, 1.0, 3.0], [np.nan] * 4]), np.array([-np.inf, 0, -np.inf, 0])
    logprobs, ids = found(scores, b, 3)
    assert ids.tolist() == [[3, 1, -1], [-1, -1, -1]]
    np.testing.assert_allclose(logprobs[0], [*np.log(np.exp([3, 2]) / np.exp([3, 2]).sum()), -np.inf], atol=1e-6)
