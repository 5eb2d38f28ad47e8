"""On a terminal: vectors are printed where nothing else would keep them, or where they are asked for."""

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
    """What a command line prints to a terminal, and its errors."""
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
            except OSError:  # the end, on Linux
                pass
            errors = process.stderr.read()
        os.close(ours)
        assert process.returncode == 0, errors
        return printed.decode(), errors

    return shown


@pytest.mark.parametrize("command", TRAIN)
def test_a_saved_model_is_enough_on_a_terminal(shown, command):
    printed, errors = shown(f"{TRAIN[command]} --save-model m")
    assert printed == "" and "--output - to print them" in errors


@pytest.mark.parametrize("more", ["", "--save-model m -output -"])
def test_vectors_are_printed_where_they_are_asked_for_or_would_be_lost(shown, more):
    printed, errors = shown(f"{TRAIN['w2v']} {more}")
    assert printed.startswith("6 4\r\n") and "-output -" not in errors
