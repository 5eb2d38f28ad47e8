"""Test that vectors are printed on a terminal only if requested or not saved otherwise."""

import os
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
TEXT = "the cat sat on the mat\n" * 200
TRAIN = {
    "w2v": "w2v text -size 4 -iter 1 -threads 1",
    "lstm": "lstm text --size 4 --epochs 1 --threads 1",
    "rnnlm": "rnnlm text -hidden 4 -max-iter 1",
}


@pytest.fixture
def shown(tmp_path):
    """A function that runs a command line on a terminal; returns (stdout, stderr)."""
    (tmp_path / "text").write_text(TEXT)

    def shown(line):
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "tiedtools", *line.split()],
            cwd=tmp_path, stdout=theirs, stderr=subprocess.PIPE, text=True,
        ) as process:  # fmt: skip
            os.close(theirs)
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


@pytest.mark.parametrize("command", TRAIN)
def test_vectors_are_not_printed_if_the_model_is_saved(shown, command):
    printed, errors = shown(f"{TRAIN[command]} --save-model m")
    assert printed == "" and "--output - to print them" in errors


@pytest.mark.parametrize("more", ["", "--save-model m -output -"])
def test_vectors_are_printed_if_requested_or_not_saved(shown, more):
    printed, errors = shown(f"{TRAIN['w2v']} {more}")
    assert printed.startswith("6 4\r\n") and "-output -" not in errors
