"""Test output layers and dropout."""

import functools
import itertools

import numpy as np
import pytest
from lmreference import cross_entropy
from scipy.special import log_softmax

from tiedtools.kernels.output.softmax import WORDS
from tiedtools.network.layers import output
from tiedtools.network.layers.output import SampledSoftmax
from tiedtools.network.layers.regularization import Dropout
from tiedtools.network.network import Step
from tiedtools.network.params import Buffers, Params, stride
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
        self.layer.buffers("parts", threads, 50, n)[:] = np.nan  # arbitrary, as after a batch of another size
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


def test_blocks_of_rows_and_ignored_targets():
    Case(20, 2 * output.ROWS + 3).check()
    case = Case(130, 12)
    case.targets[[0, 5, 11]] = -1
    case.check()
    assert case.loss()[5] == 0 and not case.dx[5].any()
    case.targets[:] = -1
    assert not case.loss().any() and not case.layer.score(case.padded, Step(None, case.targets)).any()
    case.params.begin_step()
    case.loss()
    assert not (case.dx.any() or case.dW.any() or case.db.any())


def test_small_probabilities_of_many_words():
    case = Case(300_000, 2, n=2, dtype="float32")
    case.b[:] -= np.log(np.arange(3, 300_003))
    logp = np.take_along_axis(log_softmax(case.scores(), 2), case.targets[..., None], 2)[..., 0]
    np.testing.assert_allclose(case.layer.score(case.padded, Step(None, case.targets)), logp, rtol=2e-5)


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
    # The running maximum reaches the maximum of the row at the last or at the first word.
    for slope in 3, -3:
        case = Case(300, 4, n=1, dtype=dtype, threads=2)
        case.W[:, 0], case.x[:], case.b[:] = slope * np.arange(300), 1, 0
        case.targets[:, 0] = 0, 150, 299, 290
        nll, _ = cross_entropy(case.scores(), case.targets)
        np.testing.assert_allclose(case.loss(), nll, rtol=1e-5, atol=1e-6)
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


V = 40
COUNTS = np.random.default_rng(1).permutation(V) + 1  # distinct, in random order


def layer(samples):
    params = Params(Team(1))
    return SampledSoftmax(params, Lookup(params, "W", V, 3), samples, COUNTS)


def test_log_uniform_by_rank():
    p = layer(5).probability(np.argsort(-COUNTS))
    assert p.sum() == pytest.approx(1) and (np.diff(p) < 0).all()
    np.testing.assert_allclose(np.cumsum(p), np.log(np.arange(2, V + 2)) / np.log(V + 1))


@pytest.mark.parametrize("samples", [1, 10, 30, V - 1])
def test_samples_are_distinct_with_the_expected_frequencies(samples):
    sampled, N = layer(samples), 3000
    seen, expected = np.zeros(V), np.zeros(V)
    for seed in range(N):
        words, often = sampled.draw(seed)
        assert len(words) == samples == len(set(words.tolist()))
        seen[words] += 1 / N
        expected += often(np.arange(V)) / N
    # The expected counts treat the number of draws as fixed, which is inaccurate if most words are drawn.
    assert abs(seen - expected).max() < (0.03 if samples <= 10 else 0.08)
    by_rank = np.argsort(-COUNTS)
    assert seen[by_rank[0]] > seen[by_rank[-1]]


def test_draws_depend_on_the_seed_and_are_limited_to_the_vocabulary():
    first, again, other = (layer(10).draw(seed)[0].tolist() for seed in (5, 5, 6))
    assert first == again != other and layer(1000).samples == V - 1


T, B, n = 10, 20, 45


def mask(drop=0.3, same=(), seed=1, threads=1, shape=(T, B, n)):
    drawn = Dropout(Params(Team(threads), "float32"), "site", drop, same).draw(
        Step(None, seed=lambda site: seed), *shape
    )
    return drawn[..., : shape[2]].copy()


@pytest.mark.parametrize("drop", [0.1, 0.5, 0.8])
def test_dropout_rate_and_scale(drop):
    drawn = mask(drop, shape=(40, 50, 50))
    assert set(np.unique(drawn)) == {0, np.float32(1 / (1 - drop))}
    N = drawn.size
    assert abs((drawn == 0).mean() - drop) < 4 * np.sqrt(drop * (1 - drop) / N)
    for axis in range(3):  # the rate is uniform along each axis
        rate = (drawn == 0).mean(tuple({0, 1, 2} - {axis}))
        assert abs(rate - drop).max() < 5 * np.sqrt(drop * (1 - drop) / (N / drawn.shape[axis]))


@pytest.mark.parametrize("same, shape", [
    ((), (T, B, n)), (("steps",), (1, B, n)), (("steps", "sequences"), (1, 1, n)), (("sequences",), (T, 1, n)),
])  # fmt: skip
def test_masks_are_shared_only_along_the_given_axes(same, shape):
    drawn = mask(same=same)
    assert drawn.shape == shape
    rows = drawn.reshape(-1, n)
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_masks_depend_only_on_the_seed():
    first = mask()
    for threads in 1, 2, 3:
        assert (mask(threads=threads) == first).all()
    others = [mask(seed=seed) for seed in (2, 3, 2**63)]
    for other in others:
        # Independent masks agree in .3^2 + .7^2 = 58% of all elements.
        assert abs((other == first).mean() - 0.58) < 0.03
    assert stride(n, np.float32) != n, "n must need padding"
    x = np.ones((T, B, n), np.float32)
    layer = Dropout(Params(Team(1)), "site", 0.5)
    assert layer.forward(x, Step(None)) is x and layer.backward(x) is x
    layer.forward(x, Step(None, seed=lambda site: 1))
    layer.forward(x, Step(None))
    assert layer.backward(x) is x and (x == 1).all(), "the previous mask was applied"
