"""Test the outputs of training runs on a terminal: vectors are printed only if requested, and outputs get names."""

import os
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
SAMPLE = "the cat sat on the mat\n" * 200
W2V = "w2v -size 4 -sample 0 -threads 1 -debug 0"
LSTM = "lstm --size 4 --hidden 4 --epochs 1 --threads 1 -debug 0"
RNNLM = "rnnlm --doc-dim 4 -hidden 4 -max-iter 1 -debug 0"


@pytest.fixture
def shown(tmp_path):
    """A function that runs a command line on a terminal; returns (stdout, stderr)."""
    (tmp_path / "corpus.v1.txt").write_text(SAMPLE)

    def shown(line, input=None):
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "tiedtools", *line.split()],
            cwd=tmp_path, stdin=subprocess.PIPE, stdout=theirs, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            os.close(theirs)
            process.stdin.write(input or "")
            process.stdin.close()
            printed = b""
            try:
                while part := os.read(ours, 1 << 16):
                    printed += part
            except OSError:  # end of file, on Linux
                pass
            errors = process.stderr.read()
        os.close(ours)
        assert process.returncode == 0, errors
        return printed.decode(), errors

    return shown


@pytest.mark.parametrize("line, name", [
    (f"{W2V} corpus.v1.txt", "corpus.v1.vectors.txt"), (f"{W2V} -binary 1", "stdin.vectors.bin"),
    (f"{LSTM} corpus.v1.txt", "corpus.v1.lstm.npz"), (f"{RNNLM} -train corpus.v1.txt", "corpus.v1.rnnlm.npz"),
])  # fmt: skip
def test_outputs_without_a_name_get_one(shown, tmp_path, line, name):
    kind, option = ("vectors", "output") if "vectors" in name else ("model", "save-model")
    names = [name, name.replace("v1.", "v1-2.").replace("stdin.", "stdin-2.")]
    for written in names:
        printed, errors = shown(line, SAMPLE)
        assert printed == "" and errors == f"the {kind} will be in {written}; --{option} FILE chooses another name\n"
    assert {path.name for path in tmp_path.iterdir()} == {"corpus.v1.txt", *names, *(f"{n}.run.json" for n in names)}
    if "stdin" not in name:
        assert shown(f"rerun {name}.run.json")[0].startswith("same bytes: ")


@pytest.mark.parametrize("line", [W2V, LSTM, RNNLM])
def test_vectors_are_printed_only_if_requested(shown, line):
    assert shown(f"{line} corpus.v1.txt --save-model m") == ("", "")
    assert shown(f"{line} corpus.v1.txt --save-model m -output -")[0].startswith("6 4\r\n")


@pytest.mark.parametrize("more, told", [("", True), ("--save-model m", False)])
def test_a_message_says_that_no_model_is_kept(run, tmp_path, monkeypatch, more, told):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(SAMPLE)
    done = run(*f"{LSTM} -debug 1 text {more}".split())
    assert done.stdout_bytes.startswith(b"6 4\n")
    assert ("the model itself will not be kept; --save-model FILE keeps it" in done.stderr) == told
