"""Test training with optimizers that have a state or average, and with windows of random lengths."""

import dataclasses
import itertools

import numpy as np
import pytest
from common import refused, rewrite
from fitcase import TRAIN, VALID, VOCAB, Calling, Stopping, fit, interrupted
from toylm import ToyLM

from tiedtools.base import interrupts
from tiedtools.base.errors import Diverged, TiedtoolsError
from tiedtools.files import modelfile
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.training import fit as fitting
from tiedtools.training.batches import RandomWindows, Windows
from tiedtools.training.fit import Fit
from tiedtools.training.schedules import Training

pytestmark = pytest.mark.usefixtures("no_signals")
AWD = LstmConfig(
    size=9, layer_widths="12,9", tying="tied", dropout_kind="locked", drop_word=0.1, drop_emb=0.2, drop_layer=0.2,
    drop_out=0.2, drop_weights=0.3, ar=0.5, tar=0.5, lr_weight_decay=1e-3, batch=3, steps=8, random_steps=True,
    init=0.3,
)  # fmt: skip
TRAINING = Training(epochs=5, lr=2.0, clip=0.5, schedule="constant", eval_batch=4)
SETTINGS = {
    "sgd": dict(l2=1e-3, weight_decay=1e-4), "asgd": {}, "nt-asgd": dict(nonmono=1), "adadelta": {},
    "adam": dict(sampled=3),
}  # fmt: skip
RATES = {"adam": 0.01, "nt-asgd": 6.0}  # at 6, validation does not always improve
every_optimizer = pytest.mark.parametrize("name", SETTINGS)


def settings(name):
    config = dataclasses.replace(AWD, optimizer=name, **SETTINGS[name])
    return config, dataclasses.replace(TRAINING, lr=RATES.get(name, TRAINING.lr))


def result(model, history):
    return model.params.values.tobytes(), [epoch["valid_ppl"] for epoch in history]


@every_optimizer
def test_a_resumed_run_is_bitwise_identical(name, tmp_path, quiet, messages):
    """Stopped in the first epoch, at its end, and after NT-ASGD has begun to average."""
    config, training = settings(name)
    model = LstmLM(VOCAB, config)
    expected = result(model, fit(model, TRAIN, VALID, training, quiet))
    assert ("the average of the parameters" in messages()) == (name == "nt-asgd")
    for after in 1, 4, 12, 22, 33, 37, 42:
        path, stopped = str(tmp_path / f"{after}"), LstmLM(VOCAB, config)
        interrupted(stopped, TRAIN, VALID, training, Stopping(after), path)
        again = LstmLM(VOCAB, config)
        assert result(again, fit(again, TRAIN, VALID, training, quiet, path, resume=True)) == expected, after


class StoppingInValidation(LstmLM):
    """Receives SIGTERM in the validation of the third epoch."""

    scored = 0

    def score(self, *args, **options):
        self.scored += 1
        if self.scored == 9:
            interrupts.handle(15, None)
        return super().score(*args, **options)


@pytest.mark.parametrize("name", ["asgd", "adam"])
def test_a_run_stopped_during_validation_resumes_from_the_raw_parameters(name, tmp_path, quiet):
    config, training = settings(name)
    model, path = LstmLM(VOCAB, config), str(tmp_path / "c")
    expected = result(model, fit(model, TRAIN, VALID, training, quiet))
    interrupted(StoppingInValidation(VOCAB, config), TRAIN, VALID, training, quiet, path)
    again = LstmLM(VOCAB, config)
    run = Fit(again, TRAIN, VALID, training, path, resume=True)
    assert 0 < run.epoch < 5 and run.steps == run.batches.steps
    assert result(again, run.go(quiet)) == expected


def test_the_average_is_scored_and_saved_and_the_raw_parameters_are_trained(monkeypatch, quiet):
    config, training = settings("asgd")
    scored, evaluate = [], fitting.evaluate

    def evaluated(model, *args):
        scored.append(model.params.values.copy())
        return evaluate(model, *args)

    monkeypatch.setattr(fitting, "evaluate", evaluated)
    raw, after = [], []
    run = Fit(LstmLM(VOCAB, config), TRAIN, VALID, training)
    copied = lambda found: lambda run: found.append(run.model.params.values.copy())
    run.hooks = Calling(copied(raw), copied(after))
    history = run.go(quiet)
    steps = len(raw) // 5
    np.testing.assert_array_equal(raw[-1], after[-1])
    best = int(np.argmin([epoch["valid_ppl"] for epoch in history]))
    assert run.best_epoch == best + 1
    np.testing.assert_array_equal(run.model.params.values, scored[best])
    ends = [k for k in range(len(raw)) if any((raw[k] == end).all() for end in after)]
    for end, values in zip(ends, scored, strict=True):
        np.testing.assert_allclose(values, np.mean(raw[1 : end + 1], 0), atol=1e-5)
        assert np.abs(values - raw[end]).max() > 1e-3
    assert steps > 3


def test_a_run_stopped_in_the_first_epoch_holds_the_average():
    config, training = settings("asgd")
    raw, model = [], LstmLM(VOCAB, config)
    hooks = Calling(lambda run: raw.append(run.model.params.values.copy()))
    interrupted(model, TRAIN, VALID, training, Stopping(5), hooks=hooks)
    np.testing.assert_allclose(model.params.values, np.mean(raw[1:5], 0), atol=1e-6)


def test_divergence_after_averaging_has_begun_keeps_the_best_average(quiet):
    config, training = settings("nt-asgd")
    best = []

    def spoil(run):
        if run.optimizer.begun and run.optimizer.count > 3:
            best.append(run.best.copy())
            run.model.params["lstm1.W_h"][:] = np.nan

    model = LstmLM(VOCAB, config)
    run = Fit(model, TRAIN, VALID, dataclasses.replace(training, epochs=99), hooks=Calling(spoil, spoil))
    with pytest.raises(Diverged, match=r"^training diverged in epoch \d+, after \d+ steps?: the loss is nan; lower"):
        run.go(quiet)
    np.testing.assert_array_equal(model.params.values, best[-1])
    assert np.isfinite(best[-1]).all() and run.worthwhile(Diverged()) and "\n" not in run.reached


def test_checkpoints_hold_the_state_of_the_optimizer(tmp_path, quiet):
    for name, state in ("sgd", set()), ("asgd", {"average"}), ("adam", {"first", "second"}):
        path, (config, training) = str(tmp_path / name), settings(name)
        fit(LstmLM(VOCAB, config), TRAIN, VALID, dataclasses.replace(training, epochs=1), quiet, path)
        arrays = modelfile.load(path)[2]
        found = {key.removeprefix("optimizer_") for key in arrays if key.startswith("optimizer_")}
        assert found == (state | {"count"} if state else set())
        with pytest.raises(TiedtoolsError, match=f"was created with `optimizer={name}`; this run has adadelta"):
            other = dataclasses.replace(config, optimizer="adadelta")
            fit(LstmLM(VOCAB, other), TRAIN, VALID, training, quiet, path, resume=True)


@pytest.mark.parametrize("damage", [
    lambda arrays: arrays.pop("optimizer_second"), lambda arrays: arrays.pop("optimizer_count"),
    lambda arrays: arrays.update(optimizer_count=np.array([-1])),
    lambda arrays: arrays.update(optimizer_first=arrays["optimizer_first"][1:]),
    lambda arrays: arrays["optimizer_first"].__setitem__(0, np.nan),
])  # fmt: skip
def test_damaged_states_are_refused(damage, tmp_path, quiet):
    path, (config, training) = str(tmp_path / "c"), settings("adam")
    fit(LstmLM(VOCAB, config), TRAIN, VALID, dataclasses.replace(training, epochs=1), quiet, path)
    rewrite(path, lambda header, words, arrays: damage(arrays))
    refused(lambda: Fit(LstmLM(VOCAB, config), TRAIN, VALID, training, path, resume=True), "not a tiedtools")


# Windows of random lengths


def lengths(windows):
    return [len(windows[k].ids) for k in range(windows.steps)]


def test_random_windows():
    ids = np.arange(20_001, dtype=np.int32)
    windows, fixed = RandomWindows(ids, 70, 2, 3, True), Windows(ids, 70, 2)
    assert windows.words == fixed.words and windows.steps <= windows.most
    for part in "ids", "targets":
        whole = np.concatenate([getattr(windows[k], part) for k in range(windows.steps)])
        np.testing.assert_array_equal(whole, np.concatenate([getattr(fixed[k], part) for k in range(fixed.steps)]))
    for k, length in enumerate(lengths(windows)):
        assert windows[k].lr_factor == length / 70
    assert {fixed[k].lr_factor for k in range(fixed.steps)} == {1.0}
    windows = RandomWindows(np.zeros(1_000_000, np.int32), 70, 1, 3, False)
    found = np.array(lengths(windows)[:-1])
    long, short = found[found > 52], found[found <= 52]
    assert long.mean() == pytest.approx(69.5, abs=0.2) and long.std() == pytest.approx(5, abs=0.2)
    assert short.mean() == pytest.approx(34.5, abs=0.7) and short.size / found.size == pytest.approx(0.05, abs=0.01)
    assert found.max() < RandomWindows.longest(70) and windows[0].lr_factor == 1.0
    few = RandomWindows(np.zeros(10_000, np.int32), 4, 1, 3, True)
    assert min(lengths(few)[:-1]) == 5 and few.steps <= few.most
    ids = np.zeros(3000, np.int32)
    windows, other = RandomWindows(ids, 10, 3, 1, True), RandomWindows(ids, 10, 3, 2, True)
    first = lengths(windows)
    windows.begin(1)
    second = lengths(windows)
    windows.begin(0)
    assert first == lengths(windows) != second != lengths(other) != first


@pytest.mark.parametrize("n", [2, 3, 5, 6, 7, 30])
def test_windows_longer_than_the_text(n):
    windows = RandomWindows(np.arange(n, dtype=np.int32), 70, 1, 1, True)
    assert sum(lengths(windows)) == n - 1 == windows.words and windows.steps <= windows.most


class Recorder(ToyLM):
    def train_step(self, ids, targets, state, number):
        self.numbers = [*getattr(self, "numbers", []), number]
        return super().train_step(ids, targets, state, number)

    def batches(self, ids):
        return RandomWindows(ids, 8, 3, 1, True)


def test_steps_have_unique_numbers_and_sessions_new_optimizers(quiet, monkeypatch):
    model = Recorder(VOCAB, dataclasses.replace(AWD, drop_word=0.0))
    fit(model, TRAIN, VALID, TRAINING, quiet)
    assert len(model.numbers) > 20 and all(a < b for a, b in itertools.pairwise(model.numbers))
    config, training = settings("adam")
    restarts = []
    run = Fit(LstmLM(VOCAB, config), TRAIN, VALID, dataclasses.replace(training, epochs=2, sessions=2))
    monkeypatch.setattr(run.optimizer, "restart", lambda: restarts.append(run.epoch))
    run.go(quiet)
    assert restarts == [2]
    type(run.optimizer).restart(run.optimizer)
    assert not any(array.any() for array in run.optimizer.states.values())


@pytest.mark.parametrize("scale, expected", [("mean", True), ("sum", False)])
def test_the_learning_rate_is_scaled_for_the_mean_over_a_window(scale, expected, monkeypatch):
    model = LstmLM(VOCAB, dataclasses.replace(AWD, loss_scale=scale))
    windows, learner, rates = model.batches(TRAIN), model.learner(0.0), []
    monkeypatch.setattr(learner.optimizer, "update", lambda lr: rates.append(lr) or 0.0)
    state = learner.begin()
    for k in range(3):
        learner.step(windows[k], state, k, 2.0)
    assert rates == ([length / 4 for length in lengths(windows)[:3]] if expected else [2.0] * 3)
