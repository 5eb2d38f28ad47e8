"""Test reading and writing vectors in every format, errors of files, and that a format is one entry in one table."""

import io
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from common import refused
from vectorcase import make

from tiedtools.base.errors import Contradiction
from tiedtools.vectors import streams
from tiedtools.vectors.check import Check
from tiedtools.vectors.formats import FORMATS, Format
from tiedtools.vectors.vectors import Vectors, format_of

ODD_WORDS = "a\u00a0b \u2028 x\u3000 \u0085y \x0b \x1c\x1d \ufeff 日本語 é 🙂 -1.5 3 </s>".split(" ")


def written(vectors, format="text"):
    """Return the bytes of vectors in a format."""
    file = io.BytesIO()
    vectors.write_stream(file, format)
    return file.getvalue()


def glove(vectors):
    return written(vectors).partition(b"\n")[2]


@pytest.fixture
def read(tmp_path):
    """Write bytes to a file and read its vectors."""

    def read(data, name="some.vec", **options):
        (tmp_path / name).write_bytes(data)
        return Vectors.read(tmp_path / name, **options)

    return read


def assert_same(vectors, expected, decimals=None):
    assert vectors.words == expected.words
    matrix = expected.matrix
    if decimals:
        matrix = np.array([[float(f"{x:.{decimals}f}") for x in row] for row in matrix.tolist()], np.float32)
    assert vectors.matrix.dtype == np.float32
    np.testing.assert_array_equal(vectors.matrix, matrix)


# Writing


def test_files_match_word2vec_and_printf(monkeypatch):
    vectors = Vectors(["</s>", "é"], [[0.5, -0.0], [1e-6, -1234.5]])
    assert written(vectors).decode() == "2 2\n</s> 0.500000 -0.000000\né 0.000001 -1234.500000\n"
    monkeypatch.setattr(streams, "BLOCK", 20)
    vectors = make(["</s>", "é", "b"], E=2)
    rows = [row.astype("<f4").tobytes() for row in vectors.matrix]
    assert written(vectors, "binary") == b"3 2\n</s> %b\n\xc3\xa9 %b\nb %b\n" % tuple(rows)
    monkeypatch.setattr(streams, "BLOCK", 1000)
    vectors = make([f"word{i}é" for i in range(500)], E=7)
    vectors.matrix[::50, 3] *= 1e12  # large values, which the kernel leaves to Python
    lines = ["500 7\n"]
    for word, row in zip(vectors.words, vectors.matrix.tolist(), strict=True):
        lines.append(word + "".join(f" {x:.6f}" for x in row) + "\n")
    assert written(vectors).decode() == "".join(lines)
    words = ["a", "b", "c"]
    plain = make(words)
    for matrix in (np.asfortranarray(plain.matrix), np.repeat(plain.matrix, 2, axis=0)[::2]):
        matrix.flags.writeable = False
        assert written(Vectors(words, matrix)) == written(plain)
        assert written(Vectors(words, matrix), "binary") == written(plain, "binary")


# Round trips


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("E", [1, 5])
def test_round_trips_for_any_block_size(read, monkeypatch, block, E):
    vectors = make(ODD_WORDS + [f"w{i}" for i in range(200)], E)
    text, binary = written(vectors), written(vectors, "binary")
    monkeypatch.setattr(streams, "BLOCK", block)
    assert_same(read(text), vectors, decimals=6)
    assert_same(read(text, format="text"), vectors, decimals=6)
    assert_same(read(binary), vectors)
    assert_same(read(binary, format="binary"), vectors)
    assert_same(read(glove(vectors)), vectors, decimals=6)
    assert_same(read(glove(vectors), format="glove"), vectors, decimals=6)


@pytest.mark.parametrize("format", ["text", "binary"])
def test_reads_standard_input_from_a_pipe(monkeypatch, format):
    vectors = make([f"w{i}" for i in range(20_000)])
    monkeypatch.setattr(streams, "BLOCK", 10_000)
    source, sink = os.pipe()

    def feed():
        with open(sink, "wb") as file:
            vectors.write_stream(file, format)

    thread = threading.Thread(target=feed)
    thread.start()
    with open(source) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        assert_same(Vectors.read("-"), vectors, decimals=6 if format == "text" else None)
    thread.join()


# Files of other programs and other variants


def test_unusual_files(read):
    vectors = make(["a", "b", "c"])
    rows = [row.astype("<f4").tobytes() for row in vectors.matrix]
    assert_same(read(b"3 5\na %bb %bc %b" % tuple(rows)), vectors)
    values = np.frombuffer(b"    \n\n\n\n  \n\n1234", np.float32).reshape(2, 2)
    for line_end in (b"", b"\n"):
        data = b"2 2\n" + b"a " + values[0].tobytes() + line_end + b"b " + values[1].tobytes() + line_end
        assert_same(read(data, format="binary"), Vectors(["a", "b"], values))
    vectors = read(b". . 1 2\nat name@domain.com 3 4\n5 5 6\n")
    assert_same(vectors, Vectors([". .", "at name@domain.com", "5"], [[1, 2], [3, 4], [5, 6]]))
    # Midpoints of two float32, rounded to even, and both extremes of float32: the kernel leaves these to Python.
    numbers = "1.000000059604644775390625 1.000000178813934326171875 7.1e-46 1e-99 3.4028235e38"
    expected = [1, 1 + 2**-22, 2**-149, 0, 2.0**128 - 2.0**104]
    assert_same(read(f"1 5\na {numbers}\n".encode()), Vectors(["a"], [expected]))
    for data in (b"2 1\na 1\n\xffb 2\n", b"2 1\na \0\0\0\x3f\xffb \0\0\0\x3f"):
        position = ":3: " if data.endswith(b"\n") else "row 2"
        refused(lambda: read(data), "some.", position, "not UTF-8", "`errors='replace'`")
        refused(lambda: read(data, skip_bad=None), "`tiedtools convert --errors replace`, or", "convert --skip-bad`")
        assert [read(data, errors=how).words for how in ("replace", "ignore")] == [["a", "\ufffdb"], ["a", "b"]]


@pytest.mark.parametrize("value", [0.0, 0.3])  # with control characters; without, but not UTF-8
def test_distinguishes_binary_from_text(read, value):
    vectors = Vectors(["a", "b"], np.full((2, 3), value))
    assert_same(read(written(vectors, "binary")), vectors)
    assert_same(read(written(vectors)), vectors)


@pytest.mark.parametrize("text", [
    "2 2\r\na 1 2\r\nb 3 4\r\n", "2 2 \na 1 2 \nb 3 4 \n", "2\t2\na\t1\t2\nb\t 3  4", "\ufeff2 2\na 1 2\nb 3 4\n\n \n",
    "\ufeffa 1.0 2e0\nb +3 0.4E1", "a 1 2\nb 3 4.00000000000000000000000000000000\n\r\n",
])  # fmt: skip
def test_tolerates_unambiguous_variations(read, text):
    assert_same(read(text.encode()), Vectors(["a", "b"], [[1, 2], [3, 4]]))
    assert_same(read(b"1 2\na 1 2\n<unk> 3 4\n"), Vectors(["a", "<unk>"], [[1, 2], [3, 4]]))  # GloVe's -write-header


# Errors

TEXT_ERRORS = [
    (b"", "is empty"), (b"\n", ":1: is neither"), (b"It was a dark night\nand so on\n", ":1: is neither", ".txt"),
    (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\xff", ":1: is neither"), (b"\x93NUMPY\x01\x00v\x00", "ending in .npy"),
    (b"PK\x03\x04\x14\x00", "not a tiedtools model"), (b"version: 10\nfile format: 0\n", "missing line"),
    (b" " * 257 + b"ustar", "a tar archive"), (b"0 2\n", ":1: ", "0 words"), (b"2 0\na\nb\n", ":1: ", "of 0 numbers"),
    (b"2 999999999999\na 1\nb 2\n", ":1: ", "of 999999999999 numbers"),
    (b"999999999999 2\na 1 2\n", ":3: ", "after 1 of the header's 999,999,999,999 words"),
    (b"3 2\na 1 2\nb 3 4\n", ":4: ", "after 2 of the header's 3 words", "correct line 1"),
    (b"1 2\na 1 2\nb 3 4\n", ":3: ", "more words than the header's 1"),
    (b"2 2\na 1\nb 3 4\n", ":2: ", "expected 2 numbers after 'a', found 1; get the whole file or correct the line"),
    (b"2 2\na 1 2\nb 3 4 5\n", ":3: ", "expected 2 numbers after 'b', found 3"),
    (b"2 2\na 1 2\nb 3 x4\n", ":3: ", "'x4'", "is not a number"),
    (b"2 2\na 1 2\nb 1_0 4\n", ":3: ", "'1_0'", "is not a number"), (b"1 1\na 1\n<unk> 1\nb 1\n", "header gives 1;"),
    (b"2 2\na 1 2\nb 3 -INF\n", ":3: ", "'b' has the value '-INF'"),
    (b"2 2\na 1 2\nb 3 1e39\n", ":3: ", "'b' has the value '1e39'"), (b"2 2\na 1 2\n 3 4\n", ":3: ", "no word"),
    (b"2 2\n\na 1 2\nb 3 4\n", ":2: ", "is empty"), (b"a 1 2\n\n \nb 3 4\n", ":2: ", "is empty"),
]  # fmt: skip


@pytest.mark.parametrize("data, parts", [(data, parts) for data, *parts in TEXT_ERRORS])
def test_rejects_invalid_text(read, monkeypatch, data, parts):
    for block in 1, 1 << 20:
        monkeypatch.setattr(streams, "BLOCK", block)
        refused(lambda: read(data), "some.", *parts)


ROW = np.float32([1.5, -2.25]).tobytes()
BINARY_ERRORS = [
    (b"2 2\na " + ROW + b"\n", "row 2", "gives 2 words"),
    (b"999999999999 2\na " + ROW + b"\n", "row 2", "gives 999,999,999,999 words"),
    (b"1 2\na " + ROW + b"\nb " + ROW + b"\n", "row 2", "after the 1 word of the header"),
    (b"2 2\na " + ROW + b"\n " + ROW + b"\n", "row 2", "no word"), (b"1 2\n" + b"\0" * (5 << 20), "row 1", "no word"),
    (b"2 2\na " + ROW + b"\nb\nc " + ROW + b"\n", "row 2", "no word"),
]  # fmt: skip


@pytest.mark.parametrize("data, parts", [(data, parts) for data, *parts in BINARY_ERRORS])
def test_rejects_invalid_binary(read, data, parts):
    refused(lambda: read(data), "some.", *parts)


@pytest.mark.parametrize("data, format", [(b"a 1 2\n", "text"), (b"a 1 2\n", "binary"), (b"1 1\na \0\0\x80?", "text")])
def test_another_format_than_the_requested_one_is_named(read, data, format):
    refused(lambda: read(data, format=format), "some.", ": is not ", ", or omit `format=", format)


def test_rejects_missing_files_folders_and_overlong_lines(tmp_path, read, monkeypatch):
    for path in (tmp_path / "some.vec", tmp_path / "some.npy"):
        refused(lambda: Vectors.read(path), "some.", "No such file")
        path.mkdir()
        refused(lambda: Vectors.read(path), "some.", "s a directory")
    refused(lambda: Vectors.read(tmp_path, format="word2vec"), "`format='word2vec'` is not one of", kind=Contradiction)
    monkeypatch.setattr(streams, "MAX_LINE", 1000)
    monkeypatch.setattr(streams, "BLOCK", 100)
    refused(lambda: read(b"a 1\nb " + b"0" * 5000, "some.txt"), "some.", "a line of more than 1,000 bytes")


# Memory


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the peak is read from Linux's /proc")
@pytest.mark.parametrize("format", ["text", "binary", "glove"])
def test_peak_memory_is_little_more_than_the_matrix(tmp_path, format):
    """Measured by the system: NumPy's accounting counts both old and new blocks when pages are only remapped."""
    for name, V in ("small.vec", 100), ("large.vec", 60_000):
        vectors = make([f"w{i}" for i in range(V)], E=300)
        (tmp_path / name).write_bytes(glove(vectors) if format == "glove" else written(vectors, format))
    code = """
import re
from tiedtools.vectors.vectors import Vectors
peak = lambda: 1024 * int(re.search("VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
Vectors.read("small.vec")  # compile and import before measuring
before = peak()
vectors = Vectors.read("large.vec")
print((peak() - before - 150 * len(vectors)) / vectors.matrix.nbytes)
"""
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert 0.5 < float(result.stdout) < 1.25


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


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(FORMATS, "toy", Format(f"{__name__}:read_toy", f"{__name__}:write_toy", (".toy",), "[=\n]"))


def test_a_toy_format_is_one_entry(tmp_path, toy):
    vectors = Vectors(["a", "b c"], [[1, 2], [3, 0.5]])
    vectors.write(tmp_path / "v.toy")
    assert (tmp_path / "v.toy").read_text() == "1.0 2.0=a\n3.0 0.5=b c\n"
    for format in None, "toy":
        found = Vectors.read(tmp_path / "v.toy", format)
        assert found.words == vectors.words and np.array_equal(found.matrix, vectors.matrix)
    refused(lambda: Vectors(["a=b"], [[1, 2]]).write(tmp_path / "w.toy"), "word 1: 'a=b' is empty, or has characters")
    assert format_of("v.toy") == "toy" and not (tmp_path / "w.toy").exists()


def test_bad_rows_of_a_toy_format(tmp_path, messages, toy):
    (tmp_path / "v.toy").write_bytes(b"1 2=a\n1 2 3=b\n1 x=c\n1 2=\xff\n0 0=a\n")
    refused(lambda: Vectors.read(tmp_path / "v.toy"), ":2: is not `x y=word`; correct the line, or skip it with")
    assert Vectors.read(tmp_path / "v.toy", skip_bad=True).words == ["a", "a"]
    assert "v.toy: skipped 3 bad rows; the first: " in messages()
    check = Check(str(tmp_path / "v.toy"))
    assert {kind: [position for position, _ in cases] for kind, cases in check.problems.items()} == {
        "ragged": [":2", ":3"], "encoding": [":4"], "duplicate": [":5"], "zero": [":5"]
    }  # fmt: skip
    assert (check.format, check.rows, check.E) == ("toy", 3, 2)


def test_commands_know_a_toy_format(run, tmp_path, toy):
    (tmp_path / "v.txt").write_text("a 1 2\nb 3 4\n")
    assert run("convert", tmp_path / "v.txt", tmp_path / "v.toy").exit_code == 0
    assert run("check", tmp_path / "v.toy").stdout == f"{tmp_path / 'v.toy'}: toy, 2 words of 2 numbers, all well\n"
    assert run("convert", tmp_path / "v.toy", "-").stdout == "2 2\na 1.000000 2.000000\nb 3.000000 4.000000\n"
    assert run("nn", tmp_path / "v.toy", "a").stdout.startswith("a\tb\t0.98")
