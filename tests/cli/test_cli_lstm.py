"""Test the commands `lstm` with a toy model, and `lm` with small ones of all cells."""

import gzip
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import toylm
from common import HELPERS, context_of, refused

import tiedtools
from tiedtools.cli import cli
from tiedtools.files import modelfile
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.presets import PRESETS
from tiedtools.models.lm.trainer import LstmTrainer
from tiedtools.training.scoring import evaluate
from tiedtools.vectors.vectors import Vectors

LINES = "".join(f"the {a} sat on the {b}\n" for a in ("cat", "dog", "owl") for b in ("mat", "box", "log")) * 20
QUICK = ["--epochs", 3, "--batch", 4, "--steps", 5, "--precision", "float32"]


@pytest.fixture
def made(monkeypatch):
    """Replace the real model with the toy; return the list of models made."""
    made = []

    class Toy(toylm.ToyLM):
        def __init__(self, vocab, config):
            super().__init__(vocab, config)
            made.append(self)

    monkeypatch.setattr(LstmTrainer, "Model", Toy)
    return made


@pytest.fixture
def lstm(run, made):
    return lambda *args, **options: run("lstm", *QUICK, *args, **options)


def log_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_vectors_of_one_or_several_texts(lstm, corpus, tmp_path, made):
    result = lstm(input=LINES.encode())
    assert result.exit_code == 0, result.stderr
    lines = result.stdout_bytes.split(b"\n")
    assert lines[0] == b"10 10" and lines[1].startswith(b"</s> ") and lines[-1] == b"" and len(lines) == 12
    told = result.stderr
    assert "validation: the last 126 of the text's 1,260 tokens" in told and "vocabulary of 10 words" in told
    assert "model: LSTM, untied, 2 x 200, embeddings of 200, " in told and told.count("valid ppl") == 3
    assert lstm(corpus).stdout_bytes == result.stdout_bytes
    valid, test, log, out = tmp_path / "valid.gz", tmp_path / "test", tmp_path / "log", tmp_path / "out"
    valid.write_bytes(gzip.compress(b"the cat sat on the log\n"))
    test.write_text("the owl sat on the mat\n" * 3)
    texts, sampled = ["-train", corpus, "-valid", valid, "-test", test], ["--dropout-kind", "gal", "--mc-samples", 2]
    result = lstm(*texts, *sampled, "--log-json", log, "-output", out, "--binary", 1)
    assert result.exit_code == 0 and result.stdout_bytes == b"" and len(Vectors.read(out)) == 10
    *epochs, last = log_of(log)
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3]
    assert set(epochs[0]) == {"epoch", "lr", "train_ppl", "valid_ppl", "words_per_s", "seconds"}
    assert set(last) == {"best_epoch", "test_ppl", "params", "seconds"} and last["params"] == 10 * 11
    ids = np.array([made[-1].vocab.words.index(word) for word in "the owl sat on the mat </s>".split() * 3])
    assert last["test_ppl"] == pytest.approx(np.exp(-evaluate(made[-1], ids, samples=2).mean()))
    assert f"test ppl {last['test_ppl']:.2f} on 21 tokens, model of epoch {last['best_epoch']}" in result.stderr
    assert epochs[last["best_epoch"] - 1]["valid_ppl"] == min(epoch["valid_ppl"] for epoch in epochs)


def test_options_reach_the_configuration(lstm, corpus, made):
    options = dict(
        size=12, hidden=34, layers=3, linear_dropout="both", drop_emb=0.11, drop_layer=0.22, drop_out=0.33, seed=7,
        mask_sharing="batch", augment=0.6, tau=9.0, loss_scale="sum", weight_decay=1e-6, init=0.05, init_lstm=0.02,
        init_bias="zero", forget_bias=1.0, threads=2, precision="bfloat16",
    )  # fmt: skip
    given = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    assert lstm(*given, "--tie-linear", "--linear-bias", "--no-output-bias", "--detach", corpus).exit_code == 0
    flags = dict(tying="linear", linear_bias=True, output_bias=False, detach=True)
    assert made[0].config == LstmConfig(**options, **flags, batch=4, steps=5)


@pytest.mark.parametrize("native, precision", [(True, "bfloat16"), (False, "float32")])
def test_the_default_precision_is_fast_and_kept_when_resuming(tmp_path, native, precision, monkeypatch):
    monkeypatch.setattr("tiedtools.runs.trainer.FAST_BFLOAT16", native)
    (tmp_path / "text").write_text(LINES)
    settings = dict(size=8, hidden=8, batch=4, steps=5, threads=1)
    train = lambda epochs, file, **more: tiedtools.LanguageModel("lstm", epochs=epochs, **settings, **more).fit(
        str(tmp_path / "text"), checkpoint=str(tmp_path / file), resume=True
    )
    whole, _ = train(2, "whole"), train(1, "parts")
    assert whole.model.config.precision == precision
    monkeypatch.setattr("tiedtools.runs.trainer.FAST_BFLOAT16", not native)
    parts = train(2, "parts")
    assert parts.model.config == whole.model.config
    assert np.array_equal(parts.model.params.values, whole.model.params.values)
    other = {"bfloat16": "float32", "float32": "bfloat16"}[precision]
    refused(lambda: train(2, "parts", precision=other), f"created with `precision={precision}`; this run has {other}")
    assert train(1, "wide", dtype="float64").model.config.precision == "float32"


def test_a_preset_is_reported_and_options_override_it(run, corpus, made):
    few = ["--batch", 3, "--epochs", 1, "--hidden", 300, "--drop-out", 0.1]
    result = run("lstm", "--preset", "gulordava-600-400", "--tie-linear", *few, corpus)
    assert result.exit_code == 0, result.stderr
    config = made[0].config
    assert (config.hidden, config.size, config.batch, config.tying) == (300, 400, 3, "linear")
    assert (config.drop_emb, config.drop_layer, config.drop_out) == (0.5, 0.5, 0.1)
    told = result.stderr.splitlines()[0]
    assert told.startswith("preset gulordava-600-400: --size 400 ") and "--lr 20" in told
    assert told.endswith("; changed: --hidden 300 --drop-out 0.1 --epochs 1 --batch 3")


@pytest.mark.parametrize("args", [["--list-presets"], ["--preset", "help"]])
@pytest.mark.parametrize("command", ["lstm", "lm"])
def test_presets_are_listed_with_valid_options(run, command, args):
    result = run(command, *args)
    lines = result.stdout.splitlines()
    assert result.exit_code == 0 and result.stderr == "" and "--hidden 600 --size 400" in result.stdout
    assert lines[::3] == [name for name, (_, values) in PRESETS.items() if command == "lm" or "cell" not in values]
    for name, options in zip(lines[::3], lines[2::3], strict=True):
        given = context_of(command, *options.split()).params
        values = dict(PRESETS[name][1])
        assert given["tie"] == (values.pop("tying", "untied") == "tied")
        for option, value in values.items():
            assert given[option] == value


def test_checkpoint_and_resume(lstm, corpus, tmp_path, made):
    checkpoint, log, model = tmp_path / "c", tmp_path / "log", tmp_path / "m.npz"
    expected = lstm("--seed", 3, corpus).stdout_bytes
    args = ["--seed", 3, "--checkpoint", checkpoint, "--log-json", log, corpus]
    assert lstm(*args, "--epochs", 2, "--resume").exit_code == 0
    refused = lstm(*args)
    assert refused.exit_code == 1 and "c: already exists; add --resume to continue from it" in refused.stderr
    assert len(log_of(log)) == 3
    other = lstm(*args, "--resume", "--lr", 7)
    assert other.exit_code == 1 and "c: was created with --lr 20.0; this run has 7.0" in other.stderr
    assert len(log_of(log)) == 3
    result = lstm(*args, "--resume", "--save-model", model)
    assert result.stdout_bytes == expected and "resumed: epoch 3, 0 of 57 steps done" in result.stderr
    assert [line.get("epoch") for line in log_of(log)] == [1, 2, 3, None]
    np.testing.assert_array_equal(modelfile.load(str(model))[2]["values"], made[-1].params.values)


MAIN = f"""
import sys
sys.path.insert(0, {str(HELPERS)!r})
import toylm
from tiedtools.models.lm.trainer import LstmTrainer
LstmTrainer.Model = toylm.ToyLM
from tiedtools.__main__ import main
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_and_resumed_run_gives_the_same_bytes(lstm, corpus, tmp_path, number):
    out, checkpoint, many = tmp_path / "out", tmp_path / "c", 60
    expected = lstm("--epochs", many, corpus).stdout_bytes
    args = [*QUICK, "--epochs", many, "--checkpoint", checkpoint, "--resume", "-output", out, corpus]
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "lstm", *map(str, args)], stderr=subprocess.PIPE, text=True
    ) as process:
        for line in process.stderr:
            if line.startswith("epoch 2"):
                break
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number and f"interrupted after 2 of {many} epochs" in errors
    assert "Traceback" not in errors
    assert len(Vectors.read(out)) == 10 and sorted(os.listdir(tmp_path)) == ["c", "corpus.txt", "out", "out.run.json"]
    result = lstm(*args)
    assert "resumed: epoch " in result.stderr and f"epoch {many}:" in result.stderr and "epoch 2:" not in result.stderr
    assert out.read_bytes() == expected


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_divergence_writes_the_best_model_so_far(lstm, corpus, tmp_path, monkeypatch):
    out, step = tmp_path / "out", toylm.ToyLM.train_step
    breaks = lambda model, ids, targets, state, n: (
        (np.nan, 1, state) if n == at else step(model, ids, targets, state, n)
    )
    monkeypatch.setattr(toylm.ToyLM, "train_step", breaks)
    at = 70
    result = lstm("-output", out, corpus)
    assert result.exit_code == 1 and "diverged in epoch 2" in result.stderr.splitlines()[-1]
    assert not out.exists() and len(Vectors.read(f"{out}.diverged")) == 10 and "test ppl" not in result.stderr
    result = lstm("-output", out, "--save-model", "/dev/full", corpus)
    *_, diverged = result.stderr.splitlines()
    assert result.exit_code == 1 and "loss is nan" in diverged and "/dev/full" not in diverged


def test_vocabulary_options_and_training_without_validation(lstm, corpus, tmp_path):
    saved = tmp_path / "vocab"
    assert lstm("-min-count", 55, "-save-vocab", saved, corpus).exit_code == 0
    assert saved.read_text().startswith("</s> 162\n<unk> 324\nthe 324\n")
    assert lstm("--max-vocab", 4, corpus).stdout_bytes.startswith(b"4 4\n")
    assert lstm("-read-vocab", saved, corpus).stdout_bytes.startswith(b"5 5\n")
    log = tmp_path / "log"
    result = lstm("--valid-share", 0, "--log-json", log, corpus)
    assert result.exit_code == 0 and "valid" not in result.stderr
    *epochs, last = log_of(log)
    assert [epoch["valid_ppl"] for epoch in epochs] == [None] * 3 and last["test_ppl"] is None


TEXT = "the cat sat on the mat .\nthe dog sat on the log .\na cat and a dog met .\n" * 40
SMALL = ["-size", 8, "-epochs", 2, "-batch", 4, "-steps", 6, "-threads", 1, "-lr", 2, "-valid-share", 0.2]
SMALL += ["-precision", "float32"]
CELLS = {"lstm": [], "gru": [], "rhn": ["--depth", 2, "--transform-bias", -1]}


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(TEXT)
    (tmp_path / "nbest").write_text("0 ||| the cat sat ||| 0\n0 ||| cat the on ||| 0\n")
    return tmp_path


@pytest.mark.parametrize("cell", CELLS)
def test_models_of_all_cells_are_read_by_all_commands(run, text, cell):
    options = "--cell", cell, *CELLS[cell], *SMALL, "--tie", "-save-model", "m.npz", "-output", "v.txt"
    result = run("lm", *options, "--dropout-kind", "gal", "--dropout", 0.1, "text")
    assert result.exit_code == 0, result.stderr
    named = f"{cell.upper()}{' of depth 2' * (cell == 'rhn')}, tied, 2 x 8"
    assert f"model: {named}" in result.stderr and "epoch 2: " in result.stderr
    for line in (
        "ppl m.npz text", "ppl m.npz text --independent", "generate m.npz -words 9", "nn m.npz cat", "nn v.txt cat",
        "convert m.npz out.txt", "convert m.npz:out out.txt", "check v.txt", "nbest m.npz nbest", "compare m.npz v.txt",
    ):  # fmt: skip
        result = run(*line.split())
        assert result.exit_code == 0 and (result.stdout or line.startswith("convert")), (line, result.stderr)
    assert f"| <s> ) \t= [{cell}] " in run("ppl", "m.npz", "-debug", 2, "text").stdout
    assert run("predict", "m.npz", input=b"the cat\n").stdout
    model = tiedtools.load("m.npz", threads=2)
    assert model.model.config.cell == cell and model.perplexity("text") < 14
    assert model.next_words("the", 3) and model.score([["the", "cat", "sat"]])[0] < 0
    assert run("rerun", "v.txt.run.json").exit_code == 0, "the same bytes"


def test_lstm_is_lm_with_the_cell_lstm(run, text):
    names = "m.npz", "v.txt", "c"
    outputs = [[f"{name}-{file}" for file in names] for name in ("lstm", "lm")]
    for command, (model, vectors, checkpoint) in zip((["lstm"], ["lm", "--cell", "lstm"]), outputs):
        options = *SMALL, "-save-model", model, "-output", vectors, "-checkpoint", checkpoint
        assert run(*command, *options, "text").exit_code == 0
    assert (text / "lstm-v.txt").read_bytes() == (text / "lm-v.txt").read_bytes()
    ours, theirs = (np.load(f"{name}-m.npz") for name in ("lstm", "lm"))
    assert ours.files == theirs.files and all(ours[key].tobytes() == theirs[key].tobytes() for key in ours.files)
    assert b"depth" not in ours["header"].tobytes() and b"transform_bias" not in ours["header"].tobytes()
    resumed = run("lm", *SMALL, "-epochs", 3, "-checkpoint", "lstm-c", "--resume", "-output", "w", "text")
    assert resumed.exit_code == 0 and "epoch 3: " in resumed.stderr and "epoch 1: " not in resumed.stderr
    lstm, lm = ({option.name: option.opts for option in cli.get_command(None, name).params} for name in ("lstm", "lm"))
    assert lm == {name: lm[name] for name in lm if name in lstm or name in ("cell", "depth", "transform_bias")}
    assert len(lm) == len(lstm) + 3 and all(lm[name] == opts for name, opts in lstm.items())


def test_presets_of_other_cells(run, text):
    run.fails(2, "'rhn-ptb' is not one of", "lstm", "--preset", "rhn-ptb", "text")
    small = "--hidden", 8, "--depth", 1, "--debug", 2
    result = run("lm", "--preset", "rhn-ptb", *SMALL, *small, "-lr", 0.1, "text")
    assert result.exit_code == 0 and "RHN of depth 1, tied, 1 x 8" in result.stderr
    assert "changed: --depth 1 --size 8 --hidden 8" in result.stderr


@pytest.mark.parametrize("options, named", [
    ([], "tied, 6,8"), (["--no-tie"], "untied, 6,8"), (["--tie-linear"], "tied+L, 6,8"),
    (["--subwords", "chars", "--highways", 1], "chars, reuse all, L, 6,8"),
])  # fmt: skip
def test_tying_of_a_preset_is_overridden(run, text, options, named):
    """Composed embeddings are tied by --reuse, so --subwords also replaces --tie of a preset."""
    small = *SMALL, "--layer-widths", "6,8", "--epochs", 1, "--debug", 2, "-output", "v.txt"
    result = run("lm", "--preset", "day", *small, *options, "text")
    assert result.exit_code == 0 and f"model: LSTM, {named}" in result.stderr, result.stderr
    assert run("rerun", "v.txt.run.json").exit_code == 0


@pytest.mark.parametrize("cell", ["gru", "rhn"])
def test_divergence_is_one_line(run, text, cell):
    result = run("lm", "--cell", cell, *SMALL, "-lr", 1e20, "--clip", 0, "-debug", 0, "-output", "v.txt", "text")
    assert result.exit_code == 1 and result.stderr.count("\n") == 1
    assert "training diverged in epoch 1" in result.stderr and not (text / "v.txt").exists()
