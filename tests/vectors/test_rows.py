"""Test skipping of lines and rows that cannot be read, in every format and every command that reads vectors."""

import numpy as np
import pytest
from refusals import refused

from tiedtools.vectors import norms, streams
from tiedtools.vectors.vectors import Vectors

ROW = np.float32([1.5, -2.25]).tobytes()
NAN = np.float32([1, np.nan]).tobytes()
LINES = b"a 1.5 -2.25\n\nb 1\nc 1 x\n\xff 1 2\nd 1 nan\n 1 2\ne f 1.5 -2.25\ng 1.5 -2.25 1\nh 1.5 -2.25\n\n"
SEVEN = ":{}: is empty", ["a", "e f", "h"], 7
CASES = {
    "text": ({"v.txt": b"9 2\n" + LINES}, SEVEN, 3),
    "glove": ({"v.txt": LINES}, SEVEN, 2),
    "glove, first": (
        {"v.txt": b"x\ny 1 2 3\na 1.5 -2.25\nb 1.5 -2.25\n"},
        (":1: expected 2 numbers", ["a", "b"], 2),
        0,
    ),
    "starspace": ({"v.tsv": LINES.replace(b" ", b"\t").replace(b"e\tf", b"e f")}, SEVEN, 2),
    "binary": (
        {"v.bin": b"5 2\na " + ROW + b"\n\xff " + ROW + b"\nb " + NAN + b" " + ROW + b"c " + ROW},
        (": row 2: the word", ["a", "c"], 3),
        0,
    ),
    "npy": (
        {"v.npy": np.float32([[1.5, -2.25], [np.inf, 0], [0, 0], [1.5, -2.25]]), "v.words": b"a\nb\n\xff\nd\n"},
        ("v.words:3: is not UTF-8", ["a", "d"], 2),
        0,
    ),
    "vocab": (
        {"v.npy": np.float32([[1.5, -2.25], [0, 0], [1.5, -2.25]]), "v.vocab": b"a 5\nb\nc 3\n"},
        ("v.vocab:2: is not `word count`", ["a", "c"], 1),
        0,
    ),
    "tsv": (
        {"v.tsv": b"1.5\t-2.25\t3\n\n1\tx\n1\tnan\n0\t0\n1.5\t-2.25\n", "v.metadata.tsv": b"a\nb\nc\nd\n\xff\nf\n"},
        ("v.metadata.tsv:5: is not UTF-8", ["f"], 5),
        0,
    ),
}


@pytest.fixture
def stored(tmp_path):
    def stored(case):
        files, (first, words, bad), number = CASES[case]
        for name, content in files.items():
            if isinstance(content, bytes):
                (tmp_path / name).write_bytes(content)
            else:
                np.save(tmp_path / name, content)
        return tmp_path / next(iter(files)), first.format(number), words, bad

    return stored


@pytest.mark.parametrize("block", [1, 1 << 20])
@pytest.mark.parametrize("case", CASES)
def test_bad_rows_are_skipped_and_counted(stored, messages, monkeypatch, case, block):
    for module in norms, streams:
        monkeypatch.setattr(module, "BLOCK", block)
    path, first, words, bad = stored(case)
    vectors = Vectors.read(path, skip_bad=True)
    assert vectors.words == words
    np.testing.assert_array_equal(vectors.matrix, [[1.5, -2.25]] * len(words))
    told = messages()
    assert told.startswith(f"{path}: skipped {bad} bad row{'s' * (bad > 1)}; the first: ") and first in told
    assert told.count("\n") == 1
    refused(lambda: Vectors.read(path), ", or skip it with `skip_bad`")


def test_a_wrong_number_of_rows_is_told(tmp_path, messages):
    path = tmp_path / "v"
    for data, told in (
        (b"9 2\na 1 2\nb 3\n", "{0}:4: the file ends after 2 of the header's 9 words; get the whole file"),
        (b"1 2\na 1 2\n\nb 3 4\n", "{0}: 2 words, but the header gives 1; correct line 1"),
        (b"3 2\na " + ROW + b"\nb " + ROW[:5], "{0}: row 2: the file ends 7 bytes into this row of 3; get the"),
        (b"1 2\na " + ROW + b"\nb " + ROW, "{0}: row 2: data continues after the 1 rows given by the header"),
    ):
        path.write_bytes(data)
        assert Vectors.read(path, skip_bad=True).words[0] == "a"
        assert messages().splitlines()[-1].startswith(told.format(path))
        refused(lambda: Vectors.read(path))
        assert messages() == ""


@pytest.mark.parametrize("data", [b"2 2\na 1\nb 3\n", b"2 2\na " + ROW[:4], b"1 2\na " + NAN])
def test_a_file_without_any_good_row_is_an_error(tmp_path, messages, data):
    (tmp_path / "v").write_bytes(data)
    refused(lambda: Vectors.read(tmp_path / "v", skip_bad=True))
    assert messages() == ""


COMMANDS = "nn {} a --top 1|analogy {} a e a --top 1|convert {} -|pca {}|compare {} {}".split("|")
COMMANDS += "eval-sim {} --set pairs", "eval-analogy {} --set questions"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_skips(run, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v").write_text("5 2\na 1 2\nb\nc 3 1\nd 1 5\ne 2 2\n")
    (tmp_path / "pairs").write_text("a c 1\nc d 2\na e 4\n")
    (tmp_path / "questions").write_text(": s\na c d e\n")
    args = command.replace("{}", "v").split()
    strict = run(*args)
    assert strict.exit_code == 1 and "v:3: expected 2 numbers after 'b'" in strict.stderr
    assert strict.stderr.endswith(", or skip it with --skip-bad\n")
    skipping = run(*args, "--skip-bad")
    assert skipping.exit_code == 0 and skipping.stdout
    assert "v: skipped 1 bad row; the first: v:3: expected 2 numbers after 'b', found 0\n" in skipping.stderr
