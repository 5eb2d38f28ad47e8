"""Test the training loop with rnnlm's schedule, custom batches, and a hook between steps."""

import dataclasses
import math

import numpy as np
import pytest
import rnnlmcase
from common import refused
from fitcase import CONFIG, TRAIN, VALID, VOCAB, Calling, Stopping, fit, interrupted, trained
from toylm import ToyLM

from tiedtools.base.errors import Diverged
from tiedtools.cli.report import LmReport
from tiedtools.models.rnnlm.batches import OnlineLearner
from tiedtools.models.rnnlm.program import ModelFile
from tiedtools.network.optimizers import Optimizer
from tiedtools.runs.progress import Progress
from tiedtools.training import fit as fitting
from tiedtools.training.fit import Fit
from tiedtools.training.schedules import Training
from tiedtools.training.scoring import evaluate

pytestmark = pytest.mark.usefixtures("no_signals")
TRAINING = Training(epochs=100, lr=8.0, schedule="halving", eval_batch=1)


class Counting(ToyLM):
    """Batches and learner in one: each of 3 steps of 10 words adds 1 to the first parameter; records calls."""

    def batches(self, ids):
        self.calls, self.words, self.steps, self.most = [], 30, 3, 3
        return self

    def learner(self, clip):
        self.clip, self.optimizer = clip, Optimizer(self.params)
        return self

    def begin(self, epoch=None):
        if epoch is None:
            return (np.zeros((1, 1)), np.full((1, 1), self.epoch))
        self.calls.append(("begin", epoch))
        self.epoch = epoch

    def __getitem__(self, k):
        return self.epoch, k

    def step(self, batch, state, number, lr):
        assert number == 3 * batch[0] + batch[1]
        self.calls.append((*batch, float(state[0][0, 0]), lr, self.clip))
        self.params.values[0] += 1
        return 20.0, 10, 0.0, (state[0] + 1, state[1])


@pytest.fixture
def run(monkeypatch):
    """run(losses): train with these validation losses; return the Fit, parameters after each epoch, and rates."""

    def run(losses, training=TRAINING, begin=lambda run: None):
        left, model = iter(losses), Counting(VOCAB, CONFIG)
        monkeypatch.setattr(fitting, "evaluate", lambda *args: np.full(5, -next(left)))
        model.params.values[:] = 0
        seen = []
        hooks = Calling(after_epoch=lambda run: seen.append(model.params.values[0]))
        done = Fit(model, TRAIN, VALID, training, hooks=hooks)
        begin(done)
        done.go(Progress())
        return done, seen, [epoch["lr"] for epoch in done.history]

    return run


def test_small_improvements_end_training_and_worse_epochs_are_undone(run):
    done, seen, rates = run([5.0, 4.0, 3.99, 3.9, 3.8, 3.79, 1.0])
    # 4.0 -> 3.99 is the first improvement below 0.3%; from then on the rate is halved after every epoch.
    assert rates == [8, 8, 8, 4, 2, 1] and done.schedule.over and done.schedule.lr == 1
    assert seen == [3, 6, 9, 12, 15, 18]
    done, seen, rates = run([5.0, 6.0, 4.0, 4.5])
    assert seen == [3, 3, 6, 6]  # instead of 3, 6, 6, 9
    assert rates == [8, 8, 4, 2] and done.schedule.over and done.best_epoch == 3 and done.model.params.values[0] == 6
    # 4.4 improves on 4.5 but not on the best, 4.0, which is restored after one more epoch without improvement.
    done, seen, rates = run([5.0, 4.0, 4.5, 4.4, 4.39])
    assert rates == [8, 8, 8, 4, 2] and done.schedule.over and done.best_epoch == 2
    assert seen == [3, 6, 6, 9, 12] and done.model.params.values[0] == 6


@pytest.mark.parametrize("ratio, rates", [
    (1.003, [8, 8, 8, 4, 2]), (1.0, [8, 8, 8, 8, 8, 8, 4]), (0.0, [8, 8, 8, 8, 8, 8, 8]), (1.1, [8, 8, 8, 4]),
])  # fmt: skip
def test_min_improvement_is_the_threshold(run, ratio, rates):
    losses = [5.0, 4.0, 3.99, 3.7, 3.699, 3.7, 3.4]
    assert run(losses, dataclasses.replace(TRAINING, epochs=7, min_improvement=ratio))[2] == rates


def test_settings_without_validation_or_halving():
    run = Fit(Counting(VOCAB, CONFIG), TRAIN, None, dataclasses.replace(TRAINING, epochs=9))  # of constant loss
    assert [epoch["lr"] for epoch in run.go()] == [8, 8, 4] and run.best_epoch == 1
    names = [Fit(ToyLM(VOCAB, CONFIG), TRAIN, None, Training(sessions=n)).options().keys() for n in (1, 2)]
    assert not {"min_improvement", "epochs"} & names[0] and "epochs" in names[1]


def test_hooks_batches_and_learner_are_called(run):
    done, _, _ = run([5.0, 4.0], dataclasses.replace(TRAINING, epochs=2, clip=0.5))
    steps = lambda epoch: [(epoch, k, k, 8.0, 0.5) for k in range(3)]
    assert done.model.calls == [("begin", 0), *steps(0), ("begin", 1), *steps(1), ("begin", 2)]
    assert [epoch["train_ppl"] for epoch in done.history] == pytest.approx([math.exp(2)] * 2)
    seen = []
    look = lambda run: seen.append((run.epoch, run.steps, run.done))
    hooks = Calling(after_step=look, after_epoch=look)
    fit(Counting(VOCAB, CONFIG), TRAIN, None, dataclasses.replace(TRAINING, epochs=2), Progress(), hooks=hooks)
    assert seen == [(0, 1, 10), (0, 2, 20), (0, 3, 30), (1, 0, 30), (1, 1, 40), (1, 2, 50), (1, 3, 60), (2, 0, 60)]


# Continuing a trained model, from what rnnlm's model file records


def recorded(loss, **progress):
    """Return a function that continues a Fit after 7 epochs, the last with this validation loss."""

    def begin(run):
        run.model.progress = dict(iter=7, alpha=0.5, train="t", llogp=-loss * len(VALID) / math.log(10), **progress)
        ModelFile("m", False, 0, train="t").begin(run, None, False)

    return begin


def test_continuing_a_recorded_run(run):
    done, _, rates = run([3.99], begin=recorded(4.0, halving=1))
    assert rates == [0.5] and done.history[0]["epoch"] == 8 and done.schedule.over
    done, _, rates = run([3.99, 3.0, 2.999], begin=recorded(4.0, halving=0))
    assert rates == [0.5, 0.25, 0.125] and done.model.calls[:3] == [("begin", 0), ("begin", 7), (7, 0, 0, 0.5, 0.25)]
    done, seen, _ = run([4.1, 4.2], begin=recorded(4.0))
    assert seen == [0, 0] and done.model.params.values[0] == 0 and done.best_epoch == 7
    done, _, _ = run([4.0, 4.0, 4.0], begin=recorded(3.0, position=21))
    assert done.model.calls[2][:2] == (7, 2) and done.best_epoch == 8


# Checkpoints


@pytest.mark.parametrize("after", [4, 14, 20, 35, 52])
def test_resumed_run_is_bitwise_identical(tmp_path, after):
    path, training = str(tmp_path / "c"), dataclasses.replace(TRAINING, epochs=8, min_improvement=1.05)
    values, history = trained(training)
    rates = [epoch["lr"] for epoch in history]
    assert 3 < len(history) < 8 and rates[-1] < 8  # the rate was halved, and training stopped early
    interrupted(ToyLM(VOCAB, CONFIG), TRAIN, VALID, training, Stopping(after), path)
    again, figures = trained(training, checkpoint=path, resume=True)
    assert again.tobytes() == values.tobytes() and [epoch["lr"] for epoch in figures] == rates
    again, figures = trained(training, checkpoint=path, resume=True)  # a finished run stays finished
    assert again.tobytes() == values.tobytes() and len(figures) == len(rates)


def test_batches_begin_the_resumed_epoch(tmp_path):
    path, training = str(tmp_path / "c"), dataclasses.replace(TRAINING, epochs=2)
    interrupted(Counting(VOCAB, CONFIG), TRAIN, None, training, Stopping(5), path)
    model = Counting(VOCAB, CONFIG)
    fit(model, TRAIN, None, training, Progress(), path, resume=True)
    assert model.calls == [("begin", 0), ("begin", 1), (1, 2, 2.0, 8.0, 0.25), ("begin", 2)]


# Messages


def test_messages_of_rnnlms_schedule(monkeypatch, messages):
    model = Counting(VOCAB, CONFIG)
    model.step = lambda batch, state, number, lr: (math.nan, 10, 0.0, state)
    for options, named in (rnnlmcase.DOC, "`cutoff`, or `doc_lr`"), ({}, "`lr` or `cutoff`"):
        model.remedy = OnlineLearner(rnnlmcase.model(**options)).remedy
        refused(lambda: fit(model, TRAIN, None, TRAINING, Progress()), "in epoch 1, after 0", named, kind=Diverged)
    monkeypatch.setattr("tiedtools.cli.report.LINE_EVERY", 0)
    fit(Counting(VOCAB, CONFIG), TRAIN, None, dataclasses.replace(TRAINING, epochs=2), LmReport(2))
    told = [line.split()[0] for line in messages().splitlines() if "ETA" in line]
    assert told == ["33.3%", "66.7%", "100.0%"] * 2


# Out-of-vocabulary words


def test_oov_words_are_read_but_not_scored():
    class Recorder(ToyLM):
        def score(self, ids, targets, state):
            self.read = ids.T.tolist()
            return super().score(np.maximum(ids, 0), targets, state)

    model = Recorder(VOCAB, dataclasses.replace(CONFIG, steps=100))
    assert evaluate(model, np.array([1, -1, 2, 0, 3], np.int32), 2).shape == (4,)
    assert model.read == [[0, 1, -1], [0, 0, 3]]
