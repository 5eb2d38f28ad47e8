"""Test gradient descent against NumPy."""

import math

import numpy as np
import pytest

from tiedtools.kernels import descent
from tiedtools.network.threads import Team

N, DENSE = 12_000, 9_001
SEGMENTS = np.array([9_010, 11_990, 9_500]), np.array([5, 10, 40])


class Case:
    def __init__(self, dtype="float64", segments=SEGMENTS, dense=DENSE):
        rng = np.random.default_rng(1)
        self.theta, self.grad = (rng.normal(size=N).astype(dtype) for _ in range(2))
        self.dense, self.segments = dense, tuple(np.asarray(part, np.int64) for part in segments)
        self.has = np.arange(N) < dense
        for start, size in zip(*self.segments):
            self.has[start : start + size] = True
        self.grad[~self.has] = np.nan  # must not be read
        self.norm = np.linalg.norm(self.grad[self.has].astype(float))

    def step(self, lr=0.1, clip=math.inf, decay=0.0, threads=1):
        team, norm = Team(threads), np.zeros(1)
        team(
            descent.step,
            norm,
            np.zeros((threads, 8)),
            self.theta,
            self.grad,
            self.dense,
            *self.segments,
            lr,
            clip,
            decay,
        )
        return norm[0]


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("clip", [math.inf, 1e3, 0.5])
@pytest.mark.parametrize("decay", [0.0, 0.01])
def test_step_agrees_with_numpy(dtype, tolerance, threads, clip, decay):
    case = Case(dtype)
    expected = case.theta.astype(float)
    expected[case.has] -= 0.1 * min(1, clip / case.norm) * case.grad[case.has]
    expected -= decay * expected
    assert case.step(0.1, clip, decay, threads) == pytest.approx(case.norm, rel=1e-6 if dtype == "float32" else 1e-14)
    np.testing.assert_allclose(case.theta, expected, rtol=tolerance, atol=tolerance)


def test_gradient_norm_is_clipped():
    case = Case()
    start = case.theta.copy()
    case.step(lr=1.0, clip=0.25)
    assert np.linalg.norm(case.theta - start) == pytest.approx(0.25)


@pytest.mark.parametrize("segments, dense", [(([], []), N), (([], []), 0), (([3], [7]), 0), (SEGMENTS, 9_000)])
def test_fully_dense_and_fully_sparse_gradients(segments, dense):
    case = Case(segments=segments, dense=dense)
    expected = np.where(case.has, case.theta - 0.1 * case.grad, case.theta)
    assert case.step(threads=2) == pytest.approx(case.norm)
    np.testing.assert_allclose(case.theta, expected, rtol=1e-14)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", [0, DENSE - 1, 11_995])
@pytest.mark.parametrize("threads", [1, 2])
def test_nonfinite_gradient_leaves_parameters_unchanged(number, where, threads):
    case = Case("float32")
    case.grad[where] = number
    start = case.theta.copy()
    assert not math.isfinite(case.step(clip=1.0, decay=0.1, threads=threads))
    np.testing.assert_array_equal(case.theta, start)
