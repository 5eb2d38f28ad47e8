"""Test the softmax kernels against plain NumPy: blocks of rows and words, extreme scores, missing bias and targets."""

import functools
import itertools

import numpy as np
import pytest
from lmreference import cross_entropy

from tiedtools.kernels.output.softmax import WORDS
from tiedtools.network.layers import output
from tiedtools.network.network import Step
from tiedtools.network.params import Buffers, Params
from tiedtools.network.tables import Lookup
from tiedtools.network.threads import Team

team = functools.cache(Team)
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


class Case:
    """A softmax layer with N rows of input (1 sequence), with or without a bias."""

    def __init__(self, V, N, n=5, bias=True, threads=1, dtype="float64", seed=1):
        rng = np.random.default_rng(seed)
        self.params = Params(team(threads), dtype)
        self.layer = output.Softmax(self.params, Lookup(self.params, "W", V, n), "W.b" if bias else None)
        self.params.build()
        self.W, self.b = self.params["W"], self.params["W.b"] if bias else np.zeros(V)
        self.padded = Buffers(dtype)("x", N, 1, n)
        self.x = self.padded[..., :n]
        for array in (self.W, self.b, self.x)[:: 1 if bias else 2]:
            array[:] = rng.normal(size=array.shape)
        self.targets = rng.integers(0, V, (N, 1)).astype(np.int32)
        self.tolerance = TOLERANCE[dtype]

    def scores(self):
        return self.x.astype(float) @ self.W.T.astype(float) + self.b

    def loss(self, scale=0.5):
        nll, dx = self.layer.loss(self.padded, Step(None, self.targets, scale=scale))
        self.dx = dx[..., : self.x.shape[-1]]
        self.dW, self.db = (self.params.cut(self.params.grads, k) if k else None for k in ("W", self.layer.b))
        return nll.copy()

    def check(self, scale=0.5, times=1):
        """Check loss and score against NumPy, and that dW and db are `times` the gradient."""
        nll, dz = cross_entropy(self.scores(), self.targets)
        dz, close = scale * dz, functools.partial(np.testing.assert_allclose, rtol=self.tolerance, atol=self.tolerance)
        close(self.loss(scale), nll)
        close(self.dx, dz @ self.W.astype(float))
        close(self.dW, times * np.einsum("tbv,tbn->vn", dz, self.x.astype(float)), atol=self.tolerance * len(nll))
        if self.layer.b:
            close(self.db, times * dz.sum((0, 1)), atol=self.tolerance * len(nll))
        close(self.layer.score(self.padded, Step(None, self.targets)), -nll)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_vocabulary_sizes(threads, dtype):
    for V in 1, 7, WORDS - 1, WORDS, WORDS + 1, 2 * WORDS + 10, 4 * WORDS:
        for N, bias in (1, True), (13, False):
            Case(V, N, bias=bias, threads=threads, dtype=dtype).check()


@pytest.mark.parametrize("N, threads", [(7, 1), (8, 3), (9, 1), (31, 3), (33, 3)])
def test_blocks_of_rows(N, threads, monkeypatch):
    monkeypatch.setattr(output, "ROWS", 8)
    Case(130, N, threads=threads).check()
    Case(130, N, threads=threads, dtype="float32").check()


def test_more_rows_than_a_block():
    Case(20, 2 * output.ROWS + 3).check()


@pytest.mark.parametrize("N", [5, 20])
def test_gradients_accumulate(N, monkeypatch):
    monkeypatch.setattr(output, "ROWS", 8)
    case = Case(130, N)
    case.params.grads[:] = 9
    case.check()
    case.check(times=2)
    case.params.begin_step()
    case.params.gradient("W.b")[0][:] = 0  # written first, so the layer adds to it
    case.check()


def test_ignored_targets():
    case = Case(130, 12)
    case.targets[[0, 5, 11]] = -1
    case.check()
    assert case.loss()[5] == 0 and not case.dx[5].any()
    case.targets[:] = -1
    assert not case.loss().any() and not case.layer.score(case.padded, Step(None, case.targets)).any()
    case.params.begin_step()
    case.loss()
    assert not (case.dx.any() or case.dW.any() or case.db.any())


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_huge_scores(dtype):
    """Scores that exclude all words but one do not overflow."""
    case = Case(3 * WORDS, 4, n=1, dtype=dtype)
    case.x[:], case.b[:] = 1, 0
    for size, best in itertools.product([1e3, 1e10, -1e3, -1e10], [0, WORDS - 1, WORDS, 3 * WORDS - 1]):
        case.W[:] = size if size < 0 else 0
        case.W[best] = 0 if size < 0 else size
        case.targets[:, 0] = best, best, 5, -1
        nll = case.loss()[:, 0]
        np.testing.assert_allclose(nll, [0, 0, abs(size), 0], rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(case.layer.score(case.padded, Step(None, case.targets))[:, 0], -nll)
        assert all(np.isfinite(grad).all() for grad in (case.dx, case.dW, case.db))
        np.testing.assert_allclose(case.dx[2, 0], 0.5 * abs(size), rtol=1e-6)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_scores_that_rise_or_fall_along_the_vocabulary(dtype):
    """The running maximum reaches the maximum of the row at the last or at the first word."""
    for slope in 3, -3:
        case = Case(300, 4, n=1, dtype=dtype, threads=2)
        case.W[:, 0], case.x[:], case.b[:] = slope * np.arange(300), 1, 0
        case.targets[:, 0] = 0, 150, 299, 290
        nll, _ = cross_entropy(case.scores(), case.targets)
        np.testing.assert_allclose(case.loss(), nll, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_equally_huge_scores_are_equally_likely(dtype):
    for size in -1e20, 1e20:
        case = Case(200, 2, n=1, dtype=dtype)
        case.W[:], case.x[:], case.b[:] = size, 1, 0
        # log V is lost in the rounding of such a score, but the gradient must still be correct.
        assert np.isfinite(case.loss(1)).all()
        expected = np.bincount(case.targets[:, 0], minlength=200)
        np.testing.assert_allclose(case.db, 2 / 200 - expected, rtol=1e-4)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("where", ["x", "W", "b"])
def test_nonfinite_parameters_or_inputs_give_a_nan_loss(where, dtype):
    for number, word, threads in itertools.product([np.nan, np.inf], [0, 100, 199], [1, 2]):
        case = Case(200, 6, threads=threads, dtype=dtype)
        case.targets[:] = 50
        case.x[:] = abs(case.x)
        array = getattr(case, where)
        array.reshape(len(array), -1)[3 if where == "x" else word] = number
        hit = slice(3, 4) if where == "x" else slice(None)
        assert np.isnan(case.loss()[hit]).all()
        assert np.isnan(case.layer.score(case.padded, Step(None, case.targets))[hit]).all()


def test_word_of_probability_zero():
    case = Case(200, 6)
    case.b[7] = -np.inf
    case.targets[:] = 50
    nll = case.loss()
    case.b[7] = -1e4
    np.testing.assert_allclose(nll, cross_entropy(case.scores(), case.targets)[0], rtol=1e-12)
