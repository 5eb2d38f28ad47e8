"""Test that a file format of vectors is one entry in one table: a toy format is read, checked, and converted."""

import numpy as np
import pytest
from common import refused

from tiedtools.vectors.check import Check
from tiedtools.vectors.formats import FORMATS, Format
from tiedtools.vectors.vectors import Vectors, format_of


def read_toy(rows, format):
    """Read lines `x y=word`."""
    rows.begin(np.inf, 2)
    with open(rows.path, "rb") as file:
        for number, line in enumerate(file, 1):
            numbers, _, word = line.rstrip(b"\n").partition(b"=")
            try:
                pair = [float(field) for field in numbers.split()]
                room = rows.room(1)
                room[0] = pair
            except ValueError:
                rows.problem(f":{number}", "is not `x y=word`", "correct the line", "ragged")
            else:
                rows.add([word], room, ":", number)


def write_toy(file, words, matrix):
    for word, (x, y) in zip(words, matrix.tolist()):
        file.write(f"{x} {y}={word}\n".encode())


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(FORMATS, "toy", Format(f"{__name__}:read_toy", f"{__name__}:write_toy", (".toy",), "[=\n]"))


def test_it_is_read_and_written(tmp_path):
    vectors = Vectors(["a", "b c"], [[1, 2], [3, 0.5]])
    vectors.write(tmp_path / "v.toy")
    assert (tmp_path / "v.toy").read_text() == "1.0 2.0=a\n3.0 0.5=b c\n"
    for format in None, "toy":
        found = Vectors.read(tmp_path / "v.toy", format)
        assert found.words == vectors.words and np.array_equal(found.matrix, vectors.matrix)
    refused(lambda: Vectors(["a=b"], [[1, 2]]).write(tmp_path / "w.toy"), "word 1: 'a=b' is empty, or is not valid")
    assert format_of("v.toy") == "toy" and not (tmp_path / "w.toy").exists()


def test_its_bad_rows_are_errors_or_skipped_or_listed(tmp_path, messages):
    (tmp_path / "v.toy").write_bytes(b"1 2=a\n1 2 3=b\n1 x=c\n1 2=\xff\n0 0=a\n")
    refused(lambda: Vectors.read(tmp_path / "v.toy"), ":2: is not `x y=word`; correct the line, or skip it with")
    assert Vectors.read(tmp_path / "v.toy", skip_bad=True).words == ["a", "a"]
    assert "v.toy: skipped 3 bad rows; the first: " in messages()
    check = Check(str(tmp_path / "v.toy"))
    assert {kind: [position for position, _ in cases] for kind, cases in check.problems.items()} == {
        "ragged": [":2", ":3"], "encoding": [":4"], "duplicate": [":5"], "zero": [":5"]
    }  # fmt: skip
    assert (check.format, check.rows, check.E) == ("toy", 3, 2)


def test_commands_know_it(run, tmp_path):
    (tmp_path / "v.txt").write_text("a 1 2\nb 3 4\n")
    assert run("convert", tmp_path / "v.txt", tmp_path / "v.toy").exit_code == 0
    assert run("check", tmp_path / "v.toy").stdout == f"{tmp_path / 'v.toy'}: toy, 2 words of 2 numbers, all well\n"
    assert run("convert", tmp_path / "v.toy", "-").stdout == "2 2\na 1.000000 2.000000\nb 3.000000 4.000000\n"
    assert run("nn", tmp_path / "v.toy", "a").stdout.startswith("a\tb\t0.98")
