"""Test training of translation models from texts: learning, validation by BLEU, checkpoints, and bad input."""

import dataclasses
import json
import signal
from pathlib import Path

import numpy as np
import pytest
from common import refused

from tiedtools.base import interrupts
from tiedtools.base.errors import Contradiction
from tiedtools.base.settings import Files
from tiedtools.files.modelfile import load_model
from tiedtools.models.translation import trainer
from tiedtools.models.translation.config import PRESETS, configure
from tiedtools.models.translation.trainer import TranslationTrainer, evaluate
from tiedtools.runs.progress import Progress

pytestmark = pytest.mark.usefixtures("no_signals")
SMALL = dict(size=12, hidden=14, batch=5, threads=1, epochs=3, dropout=0.1, lr=0.01)


@pytest.fixture
def texts(tmp_path):
    """Write a bitext whose target is the source in reverse order with other words; returns paths as strings."""
    rng, paths = np.random.default_rng(1), {}
    for name, lines in ("train", 60), ("valid", 20):
        sources = [rng.integers(0, 7, rng.integers(1, 6)) for _ in range(lines)]
        for side, shown in ("source", lambda ids: ids), ("target", lambda ids: ids[::-1]):
            path = tmp_path / f"{name}.{side}"
            path.write_text("".join(" ".join(f"{side[0]}{k}" for k in shown(ids)) + "\n" for ids in sources))
            paths[f"{name}_{side}"] = [str(path)]
    return paths


def made(texts, files=(), valid=True, **settings):
    config, schedule, reading = configure(**{**SMALL, **settings})
    if valid:
        reading |= {f"valid_{side}": texts[f"valid_{side}"] for side in ("source", "target")}
    sides = [texts["train_source"], texts["train_target"]]
    return TranslationTrainer(config, schedule, sides, Files(no_manifest=True, **dict(files)), **reading)


def bleus(monkeypatch, *values):
    """Replace BLEU by these values, one for each epoch."""
    given = iter(values)
    monkeypatch.setattr(trainer, "text_bleu", lambda *args: next(given))
    monkeypatch.setattr(trainer.bleu, "bleu", lambda *args: None)


def history(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("tie", ["none", "all"])
def test_learns(texts, tmp_path, tie, monkeypatch):
    log, saved = tmp_path / "log", tmp_path / "model.npz"
    bleus(monkeypatch, *range(25))
    made(texts, dict(log_json=str(log), save_model=str(saved)), tie=tie, epochs=25).train()
    *epochs, end = history(log)
    assert [epoch["valid_bleu"] for epoch in epochs] == [*range(25)] and end["best_epoch"] == 25
    assert epochs[0]["valid_ppl"] > 6 and epochs[-1]["valid_ppl"] < 0.6 * epochs[0]["valid_ppl"]
    model = load_model(str(saved), 1)
    assert (model.source_vocab is model.target_vocab) == (tie == "all")
    assert len(model.target_vocab) == (16 if tie == "all" else 9)


def test_best_epoch_has_the_highest_bleu(texts, tmp_path, monkeypatch):
    log, saved = tmp_path / "log", tmp_path / "model.npz"
    bleus(monkeypatch, 10.0, 30.0, 20.0)
    trained = made(texts, dict(log_json=str(log), save_model=str(saved)))
    trained.train()
    assert history(log)[-1]["best_epoch"] == 2 and trained.record.figures["valid_bleu"] == 30.0
    rates = [epoch["lr"] for epoch in history(log)[:-1]]
    assert rates == [0.01] * 3, "the loss fell, so that the schedule kept the rate"
    bleus(monkeypatch, 0.0, 0.0, 0.0)
    made(texts, dict(log_json=str(tmp_path / "equal"))).train()
    assert history(tmp_path / "equal")[-1]["best_epoch"] == 3
    bleus(monkeypatch)
    made(texts, dict(log_json=str(tmp_path / "plain")), bleu=False).train()
    *epochs, end = history(tmp_path / "plain")
    losses = [epoch["valid_ppl"] for epoch in epochs]
    assert "valid_bleu" not in epochs[0] and end["best_epoch"] == 1 + int(np.argmin(losses))


def test_validation_covers_each_word_once(texts):
    made_up = made(texts)
    text, _ = made_up.read()
    model, pair = made_up.make(text), text.valid
    for batch in 1, 3, 50:
        logs = evaluate(model, pair, batch)
        assert len(logs) == len(pair.target)
        assert logs.sum() == pytest.approx(evaluate(model, pair, 7).sum(), rel=1e-4)


class Stop(Progress):
    """A listener that receives SIGTERM after some updates."""

    def __init__(self, after):
        self.left = after

    def update(self, *figures):
        self.left -= 1
        if not self.left:
            interrupts.handle(signal.SIGTERM, None)


@pytest.mark.parametrize("optimizer", ["adam", "adadelta"])
def test_resumed_run_is_identical(texts, tmp_path, monkeypatch, optimizer):
    whole, parts, checkpoint = tmp_path / "whole.npz", tmp_path / "parts.npz", str(tmp_path / "checkpoint")
    bleus(monkeypatch, 3, 1, 2)
    made(texts, dict(save_model=str(whole)), optimizer=optimizer, keep="last").train()
    files = dict(save_model=str(parts), checkpoint=checkpoint, resume=True)
    bleus(monkeypatch, 3, 1, 2)
    with pytest.raises(KeyboardInterrupt):
        made(texts, files, optimizer=optimizer, keep="last").train(Stop(17))
    interrupts.received.clear()
    resumed = made(texts, files, optimizer=optimizer, keep="last")
    resumed.train()
    assert whole.read_bytes() == parts.read_bytes()
    same = lambda **settings: made(texts, files, optimizer=optimizer, keep="last", **settings).train()
    refused(lambda: same(hidden=15), "was created with `hidden=14`")
    refused(lambda: same(bleu=False), "was created with `bleu=True`")
    for name in "train_source", "valid_source":
        source = Path(texts[name][0])
        source.write_text(source.read_text().replace("s3", "t3"))  # the same IDs
    refused(lambda: same(), "different source vocabulary")


@pytest.mark.parametrize("name", PRESETS)
def test_presets(name):
    config, schedule, _ = configure(preset=name)
    assert all(value == getattr(config, key, getattr(schedule, key, None)) for key, value in PRESETS[name][1].items())


def test_settings_and_bad_input(texts, tmp_path):
    rate = lambda **settings: configure(**settings)[1].lr
    assert rate() == 0.001 and rate(optimizer="adadelta") == rate(optimizer="sgd") == 1.0
    assert rate(preset="press-wolf-nmt", optimizer="adam") == 0.001 and rate(preset="press-wolf-nmt", lr=0.5) == 0.5
    assert configure()[1].schedule == "plateau" and configure(optimizer="nt-asgd")[1].schedule == "constant"
    assert configure()[0].drop_out == 0.3 and configure(preset="press-wolf-nmt")[0].drop_out == 0
    config, _, reading = configure(dropout=0.3, drop_out=0.2, bpe=100, preset="multi30k")
    assert (config.drop_emb, config.drop_annotation, config.drop_out, reading) == (0.3, 0.3, 0.2, {"bpe": 100})
    with pytest.raises(Contradiction, match="requires `dtype='float32'`"):
        dataclasses.replace(config, precision="bfloat16", dtype="float64")
    refused(lambda: configure(tie="some"), "tie", kind=Contradiction)
    with pytest.raises(Contradiction, match="both `valid_source` and `valid_target`"):
        TranslationTrainer(*configure(**SMALL)[:2], [["a"], ["b"]], Files(), valid_source=["a"])
    with pytest.raises(Contradiction, match="each vector twice"):
        made(texts, dict(output=str(tmp_path / "out"), write="concat"), tie="decoder")
    texts["train_target"] = texts["valid_target"]
    refused(lambda: made(texts, bleu=False).train(), "20 lines, but ", " has 60")
