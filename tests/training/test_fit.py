"""Test the training loop, batches of sentence pairs, and lock-free threads."""

import dataclasses
import io
import itertools
import json
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from common import refused
from fitcase import CONFIG, TRAIN, TRAINING, VALID, VOCAB, Calling, Stopping, V, fit, interrupted, text
from toylm import ToyLM

from tiedtools.base.errors import Diverged
from tiedtools.cli.report import LmReport
from tiedtools.files import modelfile
from tiedtools.runs.progress import Callbacks, EpochLog
from tiedtools.training import fit as fitting
from tiedtools.training import hogwild
from tiedtools.training.batches import Batch, Pairs, by_length, streams
from tiedtools.training.fit import Fit
from tiedtools.training.schedules import SCHEDULES, Training
from tiedtools.training.scoring import evaluate

pytestmark = pytest.mark.usefixtures("no_signals")

# Batches


def test_streams_and_windows_of_an_epoch(quiet):
    assert streams(np.arange(11, dtype=np.int32), 3).T.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    refused(lambda: streams(np.arange(5, dtype=np.int32), 3), "5 tokens are too few for batch size 3; lower `batch` or")
    model = Recorder(VOCAB, dataclasses.replace(CONFIG, batch=2, steps=3))
    ids = np.arange(17, dtype=np.int32) % V
    fit(model, ids, None, Training(epochs=2, lr=1.0), quiet)
    # Two streams of 8 words, of which 7 are predicted, in windows of 3, 3, and 1.
    assert [len(ids[0]) for ids, *_ in model.seen] == [3, 3, 1] * 2
    assert model.seen[0][:2] == ([[0, 1, 2], [1, 2, 3]], [[1, 2, 3], [2, 3, 4]])
    assert model.seen[2][:2] == ([[6], [0]], [[0], [1]])
    assert [step for *_, step, _ in model.seen] == list(range(6))
    for k, (_, _, state, _, _) in enumerate(model.seen):
        expected = model.start(2) if k in (0, 3) else model.seen[k - 1][4]
        np.testing.assert_array_equal(state, expected)


class Recorder(ToyLM):
    def __init__(self, *args):
        super().__init__(*args)
        self.seen = []

    def train_step(self, ids, targets, state, step):
        assert ids.dtype == targets.dtype == np.int32
        self.seen.append((ids.T.tolist(), targets.T.tolist(), state, step))
        result = super().train_step(ids, targets, state, step)
        self.seen[-1] += (result[2],)
        return result


# Evaluation


@pytest.mark.parametrize("n, batch", [(1, 4), (2, 1), (9, 4), (83, 1), (83, 4)])
def test_every_token_is_predicted_for_any_window_and_batch_size(n, batch):
    ids = text(n, 2) if n > 1 else np.array([3], np.int32)
    results = []
    for steps in (1, 4, 100):
        model = ToyLM(VOCAB, dataclasses.replace(CONFIG, steps=steps, init=2.0))
        results.append(evaluate(model, ids, batch))
        assert results[-1].shape == (n,) and (results[-1] < 0).all()
        np.testing.assert_allclose(results[-1], results[0], rtol=1e-5)
    # By hand, stream by stream.
    length = -(-n // batch)
    for start in range(0, n, length):
        part = ids[start : start + length]
        inputs = np.concatenate([[0], part[:-1]]).astype(np.int32)
        logs, _ = model.score(inputs[:, None], part[:, None], model.start(1))
        np.testing.assert_allclose(results[0][start : start + length], logs[:, 0], rtol=1e-5)


@pytest.mark.filterwarnings("error")
def test_a_diverged_model_scores_nan():
    model = ToyLM(VOCAB, CONFIG)
    model.params.values[:] = np.nan
    assert np.isnan(evaluate(model, VALID)).all()


def test_monte_carlo_averages_probabilities():
    model = ToyLM(VOCAB, dataclasses.replace(CONFIG, init=2.0))
    inputs = np.concatenate([[0], VALID[:-1]]).astype(np.int32)[:, None]
    draws = [model.score(inputs, VALID[:, None], model.start(1), sample=k)[0][:, 0] for k in range(3)]
    np.testing.assert_allclose(evaluate(model, VALID, samples=3), np.log(np.mean(np.exp(draws), 0)), rtol=1e-5)


# Schedules


def test_learning_rates_follow_epochs_or_the_perplexity(monkeypatch, quiet):
    """As for Zaremba's small model, whose code first lowers the rate after epoch 5."""
    training = Training(schedule="decay", lr=1.0, decay=2.0, decay_after=5)
    schedule = SCHEDULES["decay"](training)
    rates = [schedule.lr]
    for epoch in range(1, 8):
        assert not schedule.next(epoch, None, False)
        rates.append(schedule.lr)
    assert rates == [1, 1, 1, 1, 1, 1 / 2, 1 / 4, 1 / 8]
    assert not schedule.next(2000, None, False) and schedule.lr == 0
    schedule = SCHEDULES["plateau"](Training(epochs=2, sessions=2, lr=8.0, decay=2.0, min_gain=1.0))
    assert [schedule.next(epoch, np.log(ppl), True) for epoch, ppl in enumerate((9, 8, 7.5), 1)] == [False, True, False]
    assert schedule.lr == 8  # no gain is required of the first epoch after the return to the best model
    losses = iter([3.0, 2.0, 2.0, 1.5, 1.6, 1.4])
    monkeypatch.setattr(fitting, "evaluate", lambda *args: np.full(5, -next(losses)))
    history = fit(ToyLM(VOCAB, CONFIG), TRAIN, VALID, Training(epochs=6, lr=8.0, decay=4.0), quiet)
    assert [epoch["lr"] for epoch in history] == [8, 8, 8, 2, 2, 0.5]
    assert [epoch["valid_ppl"] for epoch in history] == pytest.approx(np.exp([3, 2, 2, 1.5, 1.6, 1.4]))
    perplexities = [90.0, 80.0, 79.1, 77.0, 78.0, 70.0]
    losses = iter(np.log(perplexities))
    monkeypatch.setattr(fitting, "evaluate", lambda *args: np.full(5, -next(losses)))
    training = Training(epochs=6, lr=8.0, decay=2.0, min_gain=1.0)
    history = fit(ToyLM(VOCAB, CONFIG), TRAIN, VALID, training, quiet)
    assert [epoch["lr"] for epoch in history] == [8, 8, 8, 4, 4, 2]


def test_the_best_epoch_or_the_last_is_kept(monkeypatch, quiet):
    losses, snapshots = iter([3.0, 1.0, 2.0, 2.0]), []

    def evaluated(model, *args):
        snapshots.append(model.params.values.copy())
        return np.full(5, -next(losses))

    monkeypatch.setattr(fitting, "evaluate", evaluated)
    model = ToyLM(VOCAB, CONFIG)
    run = Fit(model, TRAIN, VALID, TRAINING)
    run.go(quiet)
    assert run.best_epoch == 2
    np.testing.assert_array_equal(model.params.values, snapshots[1])
    assert not np.array_equal(model.params.values, snapshots[3])
    model = ToyLM(VOCAB, CONFIG)
    run = Fit(model, TRAIN, np.zeros(0, np.int32), TRAINING)
    history = run.go(quiet)
    assert run.best_epoch == 4 and [epoch["valid_ppl"] for epoch in history] == [None] * 4
    assert history[-1]["train_ppl"] < history[0]["train_ppl"]
    refused(lambda: Training(sessions=2, keep="last"), "use `restart='last'`")
    refused(lambda: Training(schedule="halving", sessions=2), "set `sessions=1`")
    refused(lambda: Training(schedule="halving", keep="last"), "use `keep='best'`")


@pytest.mark.parametrize("restart", ["best", "last"])
def test_sessions_restart_from_the_best_or_last_model_at_the_initial_rate(monkeypatch, quiet, restart):
    losses = iter([1.0, 2.0, 3.0, 3.0])
    monkeypatch.setattr(fitting, "evaluate", lambda *args: np.full(5, -next(losses)))
    training = Training(epochs=2, sessions=2, restart=restart, schedule="decay", decay=2.0, lr=4.0)
    model = Recorder(VOCAB, CONFIG)
    starts = []
    model.start = lambda batch: starts.append(model.params.values.copy()) or ToyLM.start(model, batch)
    history = fit(model, TRAIN, VALID, training, quiet)
    assert [epoch["lr"] for epoch in history] == [4, 2, 4, 2]
    assert np.array_equal(starts[2], starts[1]) == (restart == "best")  # `starts[1]` is the best, of the first epoch
    assert not np.array_equal(starts[3], starts[2])
    np.testing.assert_array_equal(model.params.values, starts[1])  # the best model is kept in any case


@pytest.mark.parametrize("schedule", ["plateau", "decay"])
def test_the_last_model_is_kept_on_request(monkeypatch, quiet, schedule):
    rates = {}
    for keep in "best", "last":
        losses = iter([2.0, 1.0, 3.0, 4.0])
        monkeypatch.setattr(fitting, "evaluate", lambda *args, losses=losses: np.full(5, -next(losses)))
        model = Recorder(VOCAB, CONFIG)
        run = Fit(model, TRAIN, VALID, Training(epochs=4, keep=keep, schedule=schedule, decay=2.0, lr=4.0))
        states, finish = [], run.finish_epoch
        run.finish_epoch = lambda: (states.append(model.params.values.copy()), finish())
        rates[keep] = [epoch["lr"] for epoch in run.go(quiet)]
        assert run.best_epoch == (2 if keep == "best" else 4)
        np.testing.assert_array_equal(model.params.values, states[run.best_epoch - 1])
    assert rates["best"] == rates["last"]  # rates depend on validation, not on `keep`


# Divergence


class Diverging(ToyLM):
    """Diverges at step `at`: in the "loss", or only in the gradient "norm"."""

    what, at = "loss", 20

    def train_step(self, ids, targets, state, step):
        nll, predicted, state = super().train_step(ids, targets, state, step)
        if step == self.at:
            self.params.grads[3] = np.nan
            nll = np.nan if self.what == "loss" else nll
            self.before = self.params.values.copy()
        return nll, predicted, state


@pytest.mark.parametrize("what, word", [("loss", "loss is nan"), ("norm", "gradient norm is nan")])
@pytest.mark.parametrize("at", [5, 20])
def test_divergence_leaves_the_last_good_state(tmp_path, quiet, what, word, at):
    model = Diverging(VOCAB, CONFIG)
    model.what, model.at = what, at
    path = str(tmp_path / "c")
    run = Fit(model, TRAIN, VALID, TRAINING, path)
    epoch, window = divmod(at, run.batches.steps)
    with pytest.raises(Diverged, match=rf"in epoch {epoch + 1}, after {window} steps?: the {word}; lower `lr`") as stop:
        run.go(quiet)
    assert run.worthwhile(stop.value) == (epoch > 0)
    np.testing.assert_array_equal(model.params.values, run.best if epoch else model.before)
    assert np.isfinite(modelfile.load(path)[2]["values"]).all()


@pytest.mark.parametrize("broken", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("epoch", [1, 2])
def test_nonfinite_parameters_after_the_last_step_are_detected(quiet, epoch, broken):
    """Without validation, no loss reveals them."""
    model = ToyLM(VOCAB, CONFIG)
    run = Fit(model, TRAIN, None, TRAINING)

    def breaks(run):
        if run.epoch == epoch - 1 and run.steps == run.batches.steps:
            model.params.values[3] = broken

    run.hooks = Calling(breaks)
    with pytest.raises(Diverged, match=f"in epoch {epoch}, after 14 steps: a parameter is not finite") as stop:
        run.go(quiet)
    assert run.worthwhile(stop.value) == (epoch == 2)


# Report


def test_report_and_log(messages, monkeypatch, tmp_path):
    monkeypatch.setattr("tiedtools.cli.report.LINE_EVERY", 0)
    monkeypatch.setattr(fitting, "time", SimpleNamespace(monotonic=itertools.count().__next__))  # a second per step
    log, path = io.StringIO(), str(tmp_path / "c")
    interrupted(ToyLM(VOCAB, CONFIG), TRAIN, VALID, TRAINING, Stopping(30), path)
    fit(ToyLM(VOCAB, CONFIG), TRAIN, VALID, TRAINING, EpochLog(log, LmReport(2)), path, resume=True)
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
    assert set(lines[0]) == {"epoch", "lr", "train_ppl", "valid_ppl", "words_per_s", "seconds"}
    assert [a["seconds"] < b["seconds"] for a, b in itertools.pairwise(lines)] == [True] * 3
    assert {line["words_per_s"] for line in lines} == {14.8}  # 207 words in 14 steps
    told = messages().splitlines()
    epochs, progress = ([line for line in told if part in line] for part in ("epoch ", "ETA"))
    assert len(epochs) == 2 and epochs[0].startswith("epoch 3: lr 5, train ppl ") and "valid ppl" in epochs[0]
    assert progress[0].startswith(" 55.4%") and "words/s" in progress[0] and "  ppl " in progress[0]
    monkeypatch.setattr("tiedtools.runs.progress.time", SimpleNamespace(monotonic=iter([10, 12, 20, 24]).__next__))
    callbacks = Callbacks(None, (told := []).append, 0.0)
    callbacks.begin(1000, 400), callbacks.update(600, 1.0, 0.1), callbacks.restart(), callbacks.update(80, 1.0, 0.1)
    assert [figures["words_per_s"] for figures in told] == [100, 20]  # of this run, and of this epoch


RNG = np.random.default_rng(1)
N = 230
LENGTHS = RNG.integers(1, 12, (2, N))
# Pair k has the words k + 1 on both sides.
SOURCE, TARGET = (
    np.concatenate([np.append(np.full(n, k + 1), 0) for k, n in enumerate(lengths)]).astype(np.int32)
    for lengths in LENGTHS
)


def columns(batch):
    """Return the pairs of a batch, and check their ends and padding."""
    found = batch.ids[0]
    assert batch.ids.dtype == batch.targets.dtype == np.int32
    for side, lengths in zip(batch, LENGTHS):
        for b, k in enumerate(found - 1):
            n = lengths[k]
            assert (side[:n, b] == k + 1).all() and side[n, b] == 0 and (side[n + 1 :, b] == -1).all()
        assert (side >= 0).any(1).all()
    return (found - 1).tolist()


def epoch(pairs, number):
    pairs.begin(number)
    return [columns(pairs[k]) for k in range(pairs.steps)]


def test_an_epoch_has_each_pair_once_with_little_padding():
    pairs = Pairs(SOURCE, TARGET, 8, 5)
    first, second = epoch(pairs, 0), epoch(pairs, 1)
    for batches in first, second:
        assert sorted(k for rows in batches for k in rows) == list(range(N))
        assert sorted(map(len, batches)) == [N % 8] + [8] * (N // 8)
    assert first != second and epoch(pairs, 0) == first == epoch(Pairs(SOURCE, TARGET, 8, 5), 0)
    assert epoch(Pairs(SOURCE, TARGET, 8, 6), 0) != first
    assert pairs.words == LENGTHS[1].sum() + N and pairs.most == pairs.steps == len(first)
    pairs = Pairs(SOURCE, TARGET, 8, 5)
    spread = [np.ptp(LENGTHS[1][rows]) for rows in epoch(pairs, 3)]
    assert np.mean(spread) < 1.5 and np.ptp([LENGTHS[1][rows].mean() for rows in epoch(pairs, 3)[:5]]) > 1
    found = []
    for rows in by_length(np.maximum(pairs.source.lengths, pairs.target.lengths), 16, 64):
        batch = Batch(pairs.source.padded(rows), pairs.target.padded(rows))
        assert columns(batch) == rows.tolist()
        assert max(batch.ids.size, batch.targets.size) <= 64
        found += rows.tolist()
    assert sorted(found) == list(range(N))


def test_pairs_left_out_and_by_length(messages):
    source = np.array([1, 0, 0, 2, 2, 2, 0, 3, 0], np.int32)
    target = np.array([1, 0, 2, 0, 2, 0, 0], np.int32)
    pairs = Pairs(source, target, 2, 1, longest=3)
    assert pairs.steps == 1 and pairs[0].ids.tolist() == [[1], [0]]
    assert messages().splitlines() == [
        "not trained on: 2 sentence pairs empty on one side",
        "not trained on: 1 sentence pair longer than 2 words or symbols",
    ]
    assert len(Pairs(source, target, 2, 1, longest=4).rows) == 2
    refused(lambda: Pairs(source, target, 2, 1, longest=1), "no sentence pair to train on")
    lengths = [3, 9, 1, 9, 2, 30]
    assert [rows.tolist() for rows in by_length(lengths, 2, 18)] == [[5], [1, 3], [0, 4], [2]]
    assert [rows.tolist() for rows in by_length(lengths, 9, 20)] == [[5], [1, 3], [0, 4, 2]]
    assert list(by_length([], 2, 9)) == []


def test_every_job_is_done_once_or_none_after_an_error():
    for threads in (1, 4):
        done, lock = [], threading.Lock()

        def work(thread, job):
            with lock:
                done.append((job, thread))

        hogwild.run(work, range(100), threads, lambda: None)
        jobs = [job for job, _ in done]
        assert sorted(jobs) == list(range(100)) and {t for _, t in done} <= set(range(threads))
        assert threads > 1 or jobs == list(range(100))
    stopped, done = [], []

    def work(thread, job):
        done.append(job)
        if job == 3:
            raise ValueError("job 3")
        time.sleep(0.001)

    with pytest.raises(ValueError, match="job 3"):
        hogwild.run(work, range(10_000), 2, lambda: stopped.append(True))
    assert stopped and len(done) < 100


def test_interrupts_and_failures_to_start_threads(monkeypatch):
    stop, left = threading.Event(), []

    def work(thread, job):
        stop.wait(60)
        left.append(thread)

    def tick():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hogwild.run(work, range(10), 3, stop.set, tick, every=0.01)
    assert sorted(left) == [0, 1, 2]
    stop, start = threading.Event(), threading.Thread.start
    starts = iter([start, start])

    def limited(thread):
        if (begin := next(starts, None)) is None:
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    refused(lambda: hogwild.run(lambda thread, job: stop.wait(60), range(10), 3, stop.set), "could start only 2 of 3")
    assert stop.is_set()
