"""Test the names of outputs that the user does not name."""

import os
import pty
import subprocess
import sys

import pytest

LSTM = "lstm --epochs 1 -size 5 -hidden 5 -threads 1"


@pytest.fixture
def on_terminal(tmp_path, monkeypatch):
    """Run a command line with standard output on a terminal; returns (lines of the terminal, messages)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus.v1.txt").write_text("a b c\nb c a\n" * 20)

    def run(line, input=None):
        leader, follower = pty.openpty()
        command = [sys.executable, "-m", "tiedtools", *line.split()]
        done = subprocess.run(command, stdout=follower, stderr=subprocess.PIPE, text=True, input=input, check=True)
        os.write(follower, b"end")
        os.close(follower)
        with os.fdopen(leader, "rb") as terminal:
            return terminal.read1().decode().splitlines()[:-1], done.stderr.splitlines()

    return run


def files(path):
    return {file.name for file in path.iterdir() if not file.name.endswith(".run.json")} - {"corpus.v1.txt"}


def test_outputs_of_runs_on_a_terminal_get_names(on_terminal, tmp_path):
    w2v = "w2v -size 5 -min-count 1 -sample 0 -threads 1 -debug 0"
    message = "the vectors will be in {}; --output FILE chooses another name"
    assert on_terminal(f"{w2v} corpus.v1.txt") == ([], [message.format("corpus.v1.vectors.txt")])
    assert on_terminal(f"{w2v} corpus.v1.txt") == ([], [message.format("corpus.v1-2.vectors.txt")])
    assert on_terminal(f"{w2v} -binary 1", "a b\n") == ([], [message.format("stdin.vectors.bin")])
    assert (tmp_path / "corpus.v1.vectors.txt").read_text().startswith("4 5\n</s> ")
    message = "the model will be in corpus.v1.{}.npz; --save-model FILE chooses another name"
    assert on_terminal(f"{LSTM} -debug 0 corpus.v1.txt") == ([], [message.format("lstm")])
    assert on_terminal("rnnlm --doc-dim 5 -max-iter 1 -debug 0 corpus.v1.txt") == ([], [message.format("rnnlm")])
    written = {"corpus.v1.vectors.txt", "corpus.v1-2.vectors.txt", "stdin.vectors.bin"}
    assert files(tmp_path) == written | {"corpus.v1.lstm.npz", "corpus.v1.rnnlm.npz"}
    assert on_terminal("rerun corpus.v1.lstm.npz.run.json")[0][0] == (
        f"same bytes: {tmp_path}/corpus.v1.lstm.npz.rerun/corpus.v1.lstm.npz"
    )
    assert on_terminal(f"{LSTM} corpus.v1.txt -output -")[0][0] == "4 5"
    assert on_terminal(f"{LSTM} corpus.v1.txt --save-model m")[0] == []


@pytest.mark.parametrize("options, told", [("", True), ("--save-model m", False)])
def test_elsewhere_vectors_go_to_standard_output_and_a_message_says_that_no_model_is_kept(
    options, told, on_terminal, run
):
    done = run(*f"{LSTM} corpus.v1.txt {options}".split())
    assert done.stdout_bytes.startswith(b"4 5\n")
    assert ("the model itself will not be kept; --save-model FILE keeps it" in done.stderr) == told
