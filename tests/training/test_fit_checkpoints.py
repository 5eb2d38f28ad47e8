"""Test training checkpoints: a run stopped at any step resumes bitwise identically."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from common import HELPERS, refused, rewrite, save
from fitcase import CONFIG, TRAIN, TRAINING, VALID, VOCAB, Stopping, V, fit, interrupted, text, trained
from toylm import ToyLM

from tiedtools.base import interrupts
from tiedtools.base.errors import TiedtoolsError
from tiedtools.cli import cli
from tiedtools.cli.options import SHORTCUTS, spelled
from tiedtools.files import modelfile
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.word2vec.config import Config
from tiedtools.runs import checkpoints
from tiedtools.runs.checkpoints import Checkpoint
from tiedtools.runs.progress import Progress
from tiedtools.text.vocab import Vocab
from tiedtools.training import fit as fitting
from tiedtools.training.fit import Fit
from tiedtools.training.schedules import Training

pytestmark = pytest.mark.usefixtures("no_signals")


class StoppingInValidation(ToyLM):
    scored = 0

    def score(self, *args):
        self.scored += 1
        if self.scored == 3:
            interrupts.handle(signal.SIGINT, None)
        return super().score(*args)


def test_a_run_is_reproducible_and_can_be_extended(tmp_path):
    values, history = trained()
    assert history[-1]["valid_ppl"] < history[0]["valid_ppl"] < V
    assert trained()[0].tobytes() == values.tobytes()
    path = str(tmp_path / "c")
    values, _ = trained(dataclasses.replace(TRAINING, epochs=2), checkpoint=path)
    again, history = trained(dataclasses.replace(TRAINING, epochs=2), checkpoint=path, resume=True)
    assert again.tobytes() == values.tobytes() and len(history) == 2
    longer, history = trained(checkpoint=path, resume=True)
    assert longer.tobytes() == trained()[0].tobytes() and len(history) == 4
    threads = dataclasses.replace(CONFIG, threads=16)
    assert trained(config=threads, checkpoint=path, resume=True)[0].tobytes() == longer.tobytes()


FIGURES = ("epoch", "lr", "train_ppl", "valid_ppl")


@pytest.mark.parametrize("after", [1, 7, 14, 15, 40, 56])
@pytest.mark.parametrize("schedule", ["plateau", "decay"])
def test_resumed_run_is_bitwise_identical(tmp_path, after, schedule):
    training = dataclasses.replace(TRAINING, schedule=schedule, decay=1.5)
    path = str(tmp_path / "c")
    values, history = trained(training)
    model = ToyLM(VOCAB, CONFIG)
    assert interrupted(model, TRAIN, VALID, training, Stopping(after), path).args == (signal.SIGTERM,)
    run = Fit(ToyLM(VOCAB, CONFIG), TRAIN, VALID, training, path, resume=True)
    assert run.epoch * run.batches.steps + run.steps == after
    again, figures = trained(training, checkpoint=path, resume=True)
    assert again.tobytes() == values.tobytes()
    assert [[e[k] for k in FIGURES] for e in figures] == [[e[k] for k in FIGURES] for e in history]


def test_a_stopped_run_holds_the_best_model_and_resumes(tmp_path, quiet):
    path = str(tmp_path / "c")
    config = dataclasses.replace(CONFIG, steps=2)
    values, _ = trained(config=config)
    interrupted(StoppingInValidation(VOCAB, config), TRAIN, VALID, TRAINING, Progress(), path)
    again, history = trained(config=config, checkpoint=path, resume=True)
    assert again.tobytes() == values.tobytes() and len(history) == 4
    model, stopped = ToyLM(VOCAB, CONFIG), ToyLM(VOCAB, CONFIG)
    fit(model, TRAIN, VALID, dataclasses.replace(TRAINING, epochs=1), quiet)
    interrupted(stopped, TRAIN, VALID, TRAINING, Stopping(20))
    np.testing.assert_array_equal(stopped.params.values, model.params.values)


def test_resumed_progress_is_reported(tmp_path):
    path, two = str(tmp_path / "c"), dataclasses.replace(TRAINING, epochs=2)
    trained(two, checkpoint=path)
    standing = lambda training: Fit(ToyLM(VOCAB, CONFIG), TRAIN, VALID, training, path, resume=True).standing
    assert standing(two) == "already complete (2 epochs); raise `epochs` to continue"
    assert standing(dataclasses.replace(TRAINING, epochs=1)) == standing(two)
    assert standing(TRAINING).startswith("epoch 3, 0 of 14 steps")
    rnnlms = dataclasses.replace(TRAINING, schedule="halving", min_improvement=100.0)
    os.unlink(path)
    trained(rnnlms, checkpoint=path)
    assert standing(rnnlms) == "already complete (3 epochs)"
    assert standing(dataclasses.replace(rnnlms, epochs=3)) == "already complete (3 epochs)"


def test_an_infinite_perplexity_does_not_prevent_resuming(tmp_path, monkeypatch):
    path = str(tmp_path / "c")
    with monkeypatch.context() as lost:
        lost.setattr(fitting, "evaluate", lambda *args: np.full(5, -1e4))
        trained(dataclasses.replace(TRAINING, epochs=1), checkpoint=path)
    _, history = trained(checkpoint=path, resume=True)
    assert len(history) == 4 and history[0]["valid_ppl"] is None


def test_checkpoints_contain_only_data_and_are_written_within_an_epoch(tmp_path, monkeypatch):
    path = str(tmp_path / "c")
    trained(checkpoint=path)
    header, words, arrays = modelfile.load(path)
    assert header["kind"] == "checkpoint" and words == VOCAB.words and json.dumps(header["config"])
    assert set(arrays) == {"values", "best", "state_0", "counts"} and os.listdir(tmp_path) == ["c"]
    written = []
    monkeypatch.setattr(Checkpoint, "write", lambda self, progress, arrays: written.append(progress["steps"]))
    trained(dataclasses.replace(TRAINING, epochs=1), checkpoint="c", minutes=1e-12)
    assert written[:4] == [0, 1, 2, 3] and written[-1] == 0
    written.clear()
    trained(dataclasses.replace(TRAINING, epochs=2), checkpoint="c")
    assert written == [0, 0, 0]


def test_a_full_disk_is_reported_and_training_continues(tmp_path, monkeypatch, messages):
    path, write = str(tmp_path / "c"), Checkpoint.write

    def fails(self, *contents):
        if os.path.exists(path):
            raise TiedtoolsError("c: cannot be written: No space left on device")
        write(self, *contents)

    monkeypatch.setattr(Checkpoint, "write", fails)
    values, _ = trained(checkpoint=path)
    assert values.tobytes() == trained()[0].tobytes()
    assert messages().count("checkpoint not written: c: cannot be written: No space left") == 4
    refused(lambda: trained(checkpoint=str(tmp_path / "nowhere" / "c")), "cannot be written")
    late = Checkpoint(str(tmp_path / "nowhere" / "c"), {}, VOCAB, 1, [])
    assert [late.due for late.written in (time.monotonic() - 59, time.monotonic() - 61)] == [False, True]
    late.attempt({}, {})
    assert not late.due


DAMAGES = [
    lambda progress, arrays: progress.pop("epoch"),
    lambda progress, arrays: progress.update(epoch=-1),
    lambda progress, arrays: progress.update(steps=10**6),
    lambda progress, arrays: progress.update(lr="1"),
    lambda progress, arrays: progress.update(load=1),
    lambda progress, arrays: progress.update(history=progress["history"] * 2),
    lambda progress, arrays: progress["history"].__setitem__(0, {}),
    lambda progress, arrays: progress["history"][0].update(train_ppl="7"),
    lambda progress, arrays: arrays.pop("values"),
    lambda progress, arrays: arrays.pop("state_0"),
    lambda progress, arrays: arrays.update(state_0=np.array(["x"])),
    lambda progress, arrays: arrays.update(state_0=arrays["state_0"][:, :-1]),
    lambda progress, arrays: arrays["state_0"].__setitem__((0, 0), np.nan),
    lambda progress, arrays: arrays["best"].__setitem__(0, np.inf),
    lambda progress, arrays: arrays.update(values=arrays["values"][:1]),
    lambda progress, arrays: arrays.update(values=arrays["values"].astype(int)),
]


# Settings, and those without an option or whose option cannot differ alone.
SETTINGS = {
    "w2v": [Config], "lm": [LstmConfig, Training], "lstm": [LstmConfig, Training], "rnnlm": [RnnlmConfig, Training],
}  # fmt: skip
SCHEDULE = set("min_gain epochs sessions restart keep clip schedule decay decay_after eval_batch".split())
WITHOUT_OPTION = {
    "w2v": set(),
    "lm": {"dtype", "min_improvement"},
    "lstm": {"cell", "depth", "transform_bias", "dtype", "min_improvement"},
    "rnnlm": {"dtype", "learn_start", "shuffle", *SCHEDULE},
}


@pytest.mark.parametrize("command, kinds", SETTINGS.items())
def test_errors_name_settings_by_their_options(command, kinds):
    settings = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    options = {option.name: option.opts[0] for option in cli.get_command(None, command).params}
    for name in settings & options.keys():
        assert spelled(f"with `{name}=5`", cli.get_command(None, command)) == f"with {options[name]} 5"
    assert settings - options.keys() - {name for name, _ in SHORTCUTS.values()} <= WITHOUT_OPTION[command]


def test_incompatible_checkpoints_are_rejected(tmp_path, monkeypatch, quiet):
    path = str(tmp_path / "c")
    trained(checkpoint=path)

    def differs(match, train=TRAIN, valid=VALID, training=TRAINING, config=CONFIG, vocab=VOCAB):
        refused(lambda: fit(ToyLM(vocab, config), train, valid, training, quiet, path, resume=True), f"c: {match}")

    differs("was created with a different training text", train=text(212, 5))
    differs("was created with a different validation text", valid=None)
    differs("was created with a validation text; ", valid=None, training=dataclasses.replace(TRAINING, lr=6.0))
    differs("was created with a different vocabulary", vocab=Vocab(["</s>", *"abcdeg"], VOCAB.counts))
    differs("was created with `lr=5.0`; this run has 6.0", training=dataclasses.replace(TRAINING, lr=6.0))
    differs("was created with `drop_out=0.3`; this run has 0.2", config=dataclasses.replace(CONFIG, drop_out=0.2))
    differs("was created with `sessions=1`; this run has 2", training=dataclasses.replace(TRAINING, sessions=2))
    whole = Path(path).read_bytes()
    for damage in DAMAGES:
        Path(path).write_bytes(whole)
        rewrite(path, lambda header, words, arrays: damage(header["config"]["progress"], arrays))
        differs("not a tiedtools checkpoint, or corrupt")
    Path(path).write_bytes(whole)
    monkeypatch.setattr(checkpoints, "__version__", "9.9")
    differs("written by tiedtools ")
    save(ToyLM(VOCAB, CONFIG), path)
    differs("is a model (toy), not a checkpoint")
    Path(path).write_bytes(b"PK")
    differs("not a tiedtools checkpoint, or corrupt")


KILLED = """
import sys
sys.path.insert(0, {tests!r})
from fitcase import *
fit(ToyLM(VOCAB, CONFIG), TRAIN, VALID, Training(epochs=10**6), Progress(), {path!r}, 1e-12)
"""


def test_a_killed_run_leaves_a_complete_checkpoint(tmp_path):
    path = tmp_path / "c"
    code = KILLED.format(tests=str(HELPERS), path=str(path))
    for wait in (0.0, 0.013):
        with subprocess.Popen([sys.executable, "-c", code]) as process:
            while not path.exists() and process.poll() is None:
                time.sleep(0.01)
            time.sleep(0.2 + wait)
            process.kill()
        header, _, arrays = modelfile.load(str(path))
        assert header["kind"] == "checkpoint" and np.isfinite(arrays["values"]).all()
        path.unlink()
