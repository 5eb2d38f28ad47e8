"""Test `tiedtools lm --cell`: models of all cells are trained, saved, and read by every command that reads models."""

import numpy as np
import pytest
from common import context_of

import tiedtools
from tiedtools.cli import cli
from tiedtools.models.lm.presets import PRESETS

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


def test_presets(run, text):
    lines = run("lm", "--list-presets").stdout.splitlines()
    assert lines[::3] == list(PRESETS)
    options = lines[lines.index("rhn-ptb") + 2]
    given = context_of("lm", *options.split()).params
    given["tying"] = "tied" if given["tie"] else "untied"
    assert {name: given[name] for name in PRESETS["rhn-ptb"][1]} == PRESETS["rhn-ptb"][1]
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
