"""Test optimizers against NumPy and PyTorch; optimizercase.py records PyTorch's losses if it is run."""

import itertools
import math

import numpy as np
import pytest
from optimizercase import CASES, SHAPES, descend, in_pytorch, params, recorded, trained

from tiedtools.network.config import Optimization
from tiedtools.network.optimizers import OPTIMIZERS, SGD, optimizer
from tiedtools.network.params import Params
from tiedtools.network.threads import Team

every_case = pytest.mark.parametrize("name", CASES)

# SGD

N, DENSE = 12_000, 9_001
SEGMENTS = np.array([9_010, 11_990, 9_500]), np.array([5, 10, 40])


class Case:
    """Flat arrays with the interface of Params that SGD needs."""

    def __init__(self, dtype="float64", segments=SEGMENTS, dense=DENSE, threads=1):
        rng = np.random.default_rng(1)
        self.values, self.grads = (rng.normal(size=N).astype(dtype) for _ in range(2))
        self.trained = self.values
        self.dense, self.dtype, self.team = dense, np.dtype(dtype), Team(threads)
        self.where = tuple(np.asarray(part, np.int64) for part in segments)
        self.has = np.arange(N) < dense
        for start, size in zip(*self.where):
            self.has[start : start + size] = True
        self.grads[~self.has] = np.nan  # must not be read
        self.norm = np.linalg.norm(self.grads[self.has].astype(float))

    def segments(self):
        return self.where

    def constrain(self):
        pass

    def step(self, lr=0.1, clip=0.0, decay=0.0):
        return SGD(self, clip, decay).update(lr)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("threads, clip, decay", [(1, 0.0, 0.0), (2, 1e3, 0.01), (3, 0.5, 0.01), (1, 0.5, 0.0)])
def test_sgd_agrees_with_numpy(dtype, tolerance, threads, clip, decay):
    case = Case(dtype, threads=threads)
    expected = case.values.astype(float)
    expected[case.has] -= 0.1 * min(1, (clip or math.inf) / case.norm) * case.grads[case.has]
    expected -= decay * expected
    assert case.step(0.1, clip, decay) == pytest.approx(case.norm, rel=1e-6 if dtype == "float32" else 1e-14)
    np.testing.assert_allclose(case.values, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("segments, dense", [(([], []), N), (([], []), 0), (([3], [7]), 0), (SEGMENTS, 9_000)])
def test_fully_dense_and_fully_sparse_gradients(segments, dense):
    case = Case(segments=segments, dense=dense, threads=2)
    expected = np.where(case.has, case.values - 0.1 * case.grads, case.values)
    assert case.step() == pytest.approx(case.norm)
    np.testing.assert_allclose(case.values, expected, rtol=1e-14)


@pytest.mark.parametrize("threads", [1, 2])
def test_nonfinite_gradient_leaves_parameters_unchanged(threads):
    for number, where in itertools.product([math.nan, math.inf, -math.inf], [0, DENSE - 1, 11_995]):
        case = Case("float32", threads=threads)
        case.grads[where] = number
        start = case.values.copy()
        assert not math.isfinite(case.step(clip=1.0, decay=0.1))
        np.testing.assert_array_equal(case.values, start)


# All optimizers


@every_case
def test_training_matches_pytorch(name):
    np.testing.assert_allclose(trained(name)[1], recorded()[name], rtol=1e-7)
    assert recorded().keys() == CASES.keys() and len({losses[-1] for losses in recorded().values()}) == len(CASES)
    pytest.importorskip("torch")
    (p, losses), (theirs, expected) = trained(name), in_pytorch(name)
    np.testing.assert_allclose(losses, expected, rtol=1e-7 if "asgd" in name else 1e-10)
    np.testing.assert_allclose(expected, recorded()[name], rtol=1e-7)
    for parameter, values in theirs.items():
        np.testing.assert_allclose(p[parameter], values, rtol=1e-9, atol=1e-11)


@every_case
def test_threads_dense_gradients_and_precision(name):
    p, losses = trained(name)
    for options in dict(threads=3), dict(by_rows=False):
        other, again = trained(name, **options)
        np.testing.assert_allclose(losses, again, rtol=1e-12)
        for parameter in SHAPES:
            np.testing.assert_allclose(p[parameter], other[parameter], rtol=1e-11)
    assert not p.padded("W")[:, 5:].any() and not p.padded("E")[:, 3:].any()
    p, losses = trained(name, dtype="float32", threads=2)
    assert p.values.dtype == np.float32
    np.testing.assert_allclose(losses, recorded()[name], rtol=1e-4)


@every_case
@pytest.mark.parametrize("by_rows", [True, False])
def test_frozen_arrays_neither_change_nor_count(name, by_rows):
    """Training with E frozen equals training without E, and has the same gradient norms."""
    settings, lr, clip, *_ = CASES[name]
    both, alone = params(by_rows=by_rows, frozen=["E"]), Params(Team(1), "float64")
    alone.add("W", SHAPES["W"])
    alone.build()
    alone["W"][:], start = both["W"], both["E"].copy()
    updates = [optimizer(p, Optimization(**settings), clip) for p in (both, alone)]
    for k in range(20):
        descend(both, k)
        alone.begin_step()
        alone.gradient("W")[0][:] = both.cut(both.grads, "W", padded=True)
        assert updates[0].update(lr) == updates[1].update(lr) > 0
    with updates[0].averaged(), updates[1].averaged():
        np.testing.assert_array_equal(both["W"], alone["W"])
        np.testing.assert_array_equal(both["E"], start)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_nothing_changes_if_the_gradient_is_not_finite(name):
    p = params()
    update = optimizer(p, Optimization(optimizer=name, l2=0.1, weight_decay=0.1, lr_weight_decay=0.1), 1.0)
    descend(p, 0)
    update.update(0.1)
    before = {array: values.copy() for array, values in update.arrays().items()}
    descend(p, 1)
    p.cut(p.grads, "W")[3, 2] = np.nan
    assert math.isnan(update.update(0.1))
    for array, values in update.arrays().items():
        np.testing.assert_array_equal(values, before[array])


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("steps", [0, 3])
def test_state_is_restored(name, steps):
    """Ten steps in one go and interrupted give the same bytes."""
    config, results = Optimization(optimizer=name, l2=0.01, lr_weight_decay=0.01), []
    for interrupted in False, True:
        p = params()
        update = optimizer(p, config, 1.0)
        update.epoch([1.0] * 6 + [2.0])  # NT-ASGD begins to average
        for k in range(10):
            if k == steps and interrupted:
                saved = {array: values.copy() for array, values in update.arrays().items()}
                p = params()
                update = optimizer(p, config, 1.0)
                assert set(update.check(saved)) == saved.keys() - {"optimizer_count"}
                update.restore(saved)
                update.epoch([1.0] * 6 + [2.0])
            descend(p, k)
            update.update(0.1)
        with update.averaged():
            results.append((p.values.tobytes(), b"".join(a.tobytes() for a in update.arrays().values())))
    assert results[0] == results[1]


def test_damaged_counts_are_refused():
    update = optimizer(params(), Optimization(optimizer="adam"), 0.0)
    for count in np.array([-1]), np.array([1.0]), np.array([1, 2]):
        with pytest.raises(ValueError, match="optimizer_count is not a count"):
            update.check({"optimizer_count": count})


# Averages


def test_the_average_is_the_mean_of_the_parameters_after_each_update():
    p = params()
    update, seen = optimizer(p, Optimization(optimizer="asgd"), 0.0), []
    with update.averaged():  # nothing yet
        np.testing.assert_array_equal(p.values, params().values)
    for k in range(6):
        descend(p, k)
        update.update(0.3)
        seen.append(p.values.copy())
        with update.averaged():
            np.testing.assert_allclose(p.values, np.mean(seen[1:] or seen, 0), rtol=1e-12, atol=1e-15)
            np.testing.assert_array_equal(update.arrays()["values"], seen[-1])  # what training continues from
        np.testing.assert_array_equal(p.values, seen[-1])
    version = p.version
    with update.averaged():
        assert p.version > version, "packed weights of the version before are outdated"


@pytest.mark.parametrize(
    "losses, begins",
    [
        ([5, 4, 3, 2, 1, 1, 1, 1, 1], None),  # never above the best before
        ([5, 4, 3, 2, 1, 2, 2, 2, 2, 2], None),
        ([5, 4, 3, 2, 1, 2, 2, 2, 2, 2, 2], 11),
        ([3, 9, 9, 9, 9, 9], None),
        ([3, 9, 9, 9, 9, 9, 4, 1], 7),
        ([3, 9, 9, 9, 9, 9, 3, 1, 1, 1, 1, 1], None),
        ([3, 9, 9, 9, 9, 9, math.inf], 7),
    ],
)
def test_nt_asgd_begins_once_when_validation_no_longer_improves(losses, begins):
    """Counted by hand from awd-lstm-lm's main.py: losses before an epoch, without the last five of them."""
    update = optimizer(params(), Optimization(optimizer="nt-asgd"), 0.0)
    changes = [k for k in range(1, len(losses) + 1) if update.epoch(losses[:k])]
    assert changes == [begins] * (begins is not None) and update.begun == (begins is not None)


def test_nt_asgd_is_sgd_until_it_begins():
    update = optimizer(params(), Optimization(optimizer="nt-asgd", nonmono=2), 0.0)
    assert [update.epoch([1, 2, 3, 4][:k]) for k in range(1, 5)] == [False, False, False, True]
    for after, begins in (2, 2), (6, 4), (0, 4):
        update = optimizer(params(), Optimization(optimizer="nt-asgd", nonmono=2, average_after=after), 0.0)
        assert [k for k in range(1, 7) if update.epoch([3, 2, 1, 9, 9, 9][:k])] == [begins]
    both = []
    for name in "sgd", "nt-asgd":
        p = params()
        update = optimizer(p, Optimization(optimizer=name), 1.0)
        for k in range(5):
            descend(p, k)
            update.update(0.3)
        with update.averaged():
            both.append(p.values.tobytes())
    assert both[0] == both[1]
