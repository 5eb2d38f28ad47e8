"""Test the files of a run, and outputs in formats of matrices."""

import json
import os
import re
import signal

import numpy as np
import pytest
import toylm
from common import refused

from tiedtools.base import interrupts
from tiedtools.base.errors import Contradiction
from tiedtools.cli.report import Report, RnnlmReport
from tiedtools.models.lm.trainer import LstmTrainer
from tiedtools.runs import files, session
from tiedtools.runs.files import is_finished
from tiedtools.training.fit import Fit
from tiedtools.vectors.vectors import Vectors, trained_format

TEXT = "".join(f"the {a} sat on the {b}\n" for a in ("cat", "dog", "owl") for b in ("mat", "box", "log")) * 40
OUTPUTS = "-output out --save-model model --log-json log"
COMMANDS = {
    "w2v": f"w2v text -threads 1 -size 6 -min-count 1 {OUTPUTS} -iter",
    "lstm": f"lstm text --threads 1 --batch 4 --steps 5 {OUTPUTS} --epochs",
    "rnnlm": f"rnnlm text -hidden 7 -class 3 -min-improvement 0 {OUTPUTS} -max-iter",
    "rnnlm -rnnlm": "rnnlm text -hidden 7 -class 3 -min-improvement 0 -rnnlm out -max-iter",
}
WILD = {"w2v": "-alpha 1e4", "lstm": "--lr 1e6 --clip 0"}


@pytest.fixture
def folder(tmp_path, monkeypatch, no_signals):
    (tmp_path / "text").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(LstmTrainer, "Model", toylm.ToyLM)
    return tmp_path


@pytest.fixture(params=COMMANDS)
def train(request, run, folder):
    """A function that runs the command for some epochs; `train.outputs` has the names of its outputs."""

    def train(epochs, *more):
        interrupts.received.clear()
        return run(*COMMANDS[request.param].split(), epochs, "--seed", epochs, *more)

    train.name, train.outputs = request.param, ["out"] if "-rnnlm" in request.param else ["out", "model"]
    return train


@pytest.fixture
def interrupted(monkeypatch):
    """A list of epochs; Ctrl-C is sent after each of them."""
    epochs = []
    for kind in Report, RnnlmReport:

        def told(self, before=kind.epoch, **figures):
            before(self, **figures)
            if figures["epoch"] in epochs:
                interrupts.handle(signal.SIGINT, None)

        monkeypatch.setattr(kind, "epoch", told)
    return epochs


def contents(folder):
    """Return the bytes of the files by name, except those written during training."""
    names = [name for name in os.listdir(folder) if not name.startswith(("log", "out.output"))]
    return {name: (folder / name).read_bytes() for name in names}


def test_interrupted_runs_keep_the_last_finished_output(train, folder, interrupted):
    assert train(1).exit_code == 0
    finished = contents(folder)
    interrupted.append(2)
    for k in range(2):
        result = train(5, *["--no-manifest"] * k)
        assert result.exit_code == 130, result.stderr
        last = result.stderr.splitlines()[-1]
        # The threads of w2v continue until they notice the signal.
        reached = "[2-5] of 5 epochs" if train.name == "w2v" else r"2 of 5 epochs \(model of epoch "
        assert re.match(f"tiedtools: interrupted after {reached}", last)
        assert f"; wrote {', '.join(sorted(train.outputs))}" in last
        for name in train.outputs:
            assert f"{name}.finished" in last or k
            assert (folder / f"{name}.finished").read_bytes() == finished[name]
            assert (folder / name).read_bytes() != finished[name]
        assert (folder / "out.finished.run.json").read_bytes() == finished["out.run.json"]
        assert json.loads((folder / "out.run.json").read_text())["stopped"] == "interrupted"
        (folder / "out.output.txt").unlink(missing_ok=True)
        if "-rnnlm" in train.name:
            break  # a second run would resume from the first
    assert len(contents(folder)) == len(finished) + len(train.outputs) + 1


def test_an_interrupted_run_without_an_earlier_output_makes_no_backup(train, folder, interrupted):
    interrupted.append(2)
    for _ in range(1 if "-rnnlm" in train.name else 2):
        assert train(5).exit_code == 130
    assert sorted(contents(folder)) == sorted(["text", *train.outputs, "out.run.json"])


def test_a_finished_run_replaces_any_output(train, folder, interrupted):
    interrupted.append(2)
    assert train(5).exit_code == 130
    before = contents(folder)
    interrupted.clear()
    result = train(6)
    assert result.exit_code == 0, result.stderr
    after = contents(folder)
    assert before.keys() == after.keys()  # including the backup made by a run with -rnnlm
    assert all(before[name] != after[name] for name in train.outputs)
    assert json.loads(after["out.run.json"])["stopped"] is None


@pytest.mark.parametrize("finished", [False, True])
def test_a_diverged_run_changes_nothing(train, folder, finished):
    if finished and "-rnnlm" not in train.name:  # it would not resume with such a rate
        train(1)
    before = contents(folder)
    result = train(3, *WILD.get(train.name, "-alpha 1e6").split())
    last = result.stderr.splitlines()[-1]
    assert result.exit_code == 1 and "training diverged" in last and last.endswith("; no output was changed")
    assert contents(folder) == before and "e+" not in result.stderr + result.stdout
    assert "--lr-linear" not in last


@pytest.mark.parametrize("train", ["lstm", "rnnlm", "rnnlm -rnnlm"], indirect=True)
def test_divergence_after_a_good_epoch_saves_that_epoch_separately(train, folder, monkeypatch):
    """With -rnnlm, which writes its file after each epoch, the finished file is restored."""
    assert train(1).exit_code == 0
    before = contents(folder)
    monkeypatch.setattr(Fit, "train", failing_in(3, Fit.train))
    result = train(4)
    last = result.stderr.splitlines()[-1]
    assert result.exit_code == 1 and "training diverged" in last, result.stderr
    after = contents(folder)
    assert {name: after[name] for name in before} == before
    for name in train.outputs:
        assert f"{name}.diverged" in last and after[f"{name}.diverged"] != before[name]
    assert "diverged" in json.loads(after["out.diverged.run.json"])["stopped"]
    assert len(after) == len(before) + len(train.outputs) + 1


def failing_in(epoch, train):
    def failing(self):
        if self.epoch + 1 == epoch:
            self.limit = 1e-9
        train(self)

    return failing


def epochs(path):
    return [line.get("epoch") for line in map(json.loads, path.read_text().splitlines())]


@pytest.mark.parametrize("train", ["w2v", "lstm", "rnnlm"], indirect=True)
def test_the_log_of_a_finished_run_is_kept_until_the_next_one_finishes(train, folder, interrupted):
    log, finished, diverged = (folder / name for name in ("log", "log.finished", "log.diverged"))
    assert train(1).exit_code == 0 and epochs(log) == [1, None]
    interrupted.append(2)
    for _ in range(2):
        assert "log.finished" in train(3).stderr or _
        assert epochs(finished) == [1, None] and epochs(log)[:2] == [1, 2] and None not in epochs(log)
    interrupted.clear()
    finished.unlink()
    assert train(2).exit_code == 0 and epochs(log) == [1, 2, None] and not finished.exists()
    assert train(3).exit_code == 0 and epochs(log) == [1, 2, 3, None] and not finished.exists()
    assert train(4, *WILD.get(train.name, "-alpha 1e6").split()).exit_code == 1
    assert epochs(log) == [1, 2, 3, None] and epochs(diverged) == [] and not finished.exists()


def test_a_file_is_finished_unless_its_manifest_says_otherwise(folder):
    recorded = {"stopped": "interrupted", "outputs": [{"option": "output", "sha256": "0"}]}
    (folder / "v").write_text("1 1\na 1\n")
    for text in None, "", "{}", json.dumps(recorded):
        if text is not None:
            (folder / "v.run.json").write_text(text)
        assert is_finished("v")  # no manifest, not a valid one, or one for other bytes
    (folder / "empty").touch()
    assert not is_finished("empty") and not is_finished("none")


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 2e4, -2e4])
def test_sanity(wrong):
    good = np.linspace(-1e4, 1e4, 7, dtype=np.float32)
    assert session.is_sane(good, good[:0]) and not session.is_sane(good, np.append(good, np.float32(wrong)))


CORPUS = "a b c d e f the fox jumps over the lazy dog\n" * 30
TRAINERS = {
    "w2v": ["-size", 8, "-iter", 1, "-min-count", 1],
    "rnnlm": ["-hidden", 8, "-class", 3, "--epochs", 1],
    "lstm": ["--emb", 8, "--hidden", 8, "--layers", 1, "--epochs", 1, "--batch", 2, "--steps", 5],
}


@pytest.mark.parametrize("command", TRAINERS)
def test_matrices_have_the_vectors_of_the_text(run, tmp_path, command):
    (tmp_path / "t").write_text(CORPUS)
    text = [tmp_path / "t"] if command == "w2v" else ["-train", tmp_path / "t"]
    for name in "v.txt", "n.npy", "s.safetensors":
        result = run(command, *TRAINERS[command], "--threads", 1, *text, "-output", tmp_path / name)
        assert result.exit_code == 0, result.stderr
    expected = Vectors.read(tmp_path / "v.txt")
    for name, words in ("n.npy", "n.words"), ("s.safetensors", "s.words"):
        vectors = Vectors.read(tmp_path / name)
        assert vectors.words == expected.words and isinstance(vectors.matrix.base, np.memmap)
        np.testing.assert_allclose(vectors.matrix, expected.matrix, atol=1e-6)
        recorded = json.loads((tmp_path / f"{name}.run.json").read_text())["outputs"]
        assert [output["path"] for output in recorded] == [str(tmp_path / name), str(tmp_path / words)]


def test_names_and_word_lists_of_vectors(run, tmp_path):
    assert [trained_format(name) for name in (None, "-", "v.dat", "v.npy", "v.tsv")] == [*["text"] * 3, "npy", "tsv"]
    assert trained_format("v.dat", binary=True) == "binary"
    for name in "v.npz", "folder/", str(tmp_path):
        refused(lambda: trained_format(name), kind=Contradiction)
    (tmp_path / "t").write_text(CORPUS)
    run.fails(2, "would be read as .npy", "w2v", tmp_path / "t", "-output", tmp_path / "v.npy", "-classes", 3)
    assert files.suffixed("a.txt", "finished") == "a.txt.finished"
    assert files.suffixed("a.txt.run.json", "diverged") == "a.txt.diverged.run.json"
    train = "w2v", *TRAINERS["w2v"], tmp_path / "t", "-output"
    (tmp_path / "v.words").write_text("mine\n")
    result = run(*train, tmp_path / "v.npy")
    assert result.exit_code == 1 and "v.words: exists" in result.stderr and not (tmp_path / "v.npy").exists()
    (tmp_path / "v.words").unlink()
    for _ in range(2):  # its own list is
        assert run(*train, tmp_path / "v.npy").exit_code == 0
    assert run(*train, tmp_path / "v.safetensors").exit_code == 1
    assert (tmp_path / "v.words").read_text().count("\n") == len(Vectors.read(tmp_path / "v.npy"))
