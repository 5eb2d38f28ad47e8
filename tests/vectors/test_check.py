"""Test what readers report of rows, and `tiedtools check`."""

import gzip
import json

import numpy as np
import pytest
from common import refused

from tiedtools.vectors import norms, streams
from tiedtools.vectors.check import Check
from tiedtools.vectors.vectors import Vectors


@pytest.fixture
def found(tmp_path):
    """Check bytes and return {kind: [(position, problem), ...]}."""

    def found(data, name="some.vec", **options):
        (tmp_path / name).write_bytes(data)
        return Check(str(tmp_path / name), **options).problems

    return found


def positions(problems):
    return {kind: [position for position, _ in cases] for kind, cases in problems.items()}


ROW = b"\0\0\x80\x3f\0\0\0\x40"  # 1 2
PROBLEMS = [
    (b"", "empty", "", "is empty"),
    (b"\xff\xfe2\0 \x001\0\n\0", "encoding", ":1", "UTF-16"),
    (b"\xef\xbb\xbf1 2\na 1 2\n", "bom", ":1", "byte order mark"),
    (b"3 2\na 1 2\nb 1 2\n", "header", ":1", "gives 3 words, but the file has 2"),
    (b"1 2\na 1 2\nb 1 2\n", "header", ":1", "gives 1 word, but the file has 2"),
    (b"2 3\na 1 2\nb 1 2\n", "header", ":1", "gives 3 numbers per word, but most rows have 2"),
    (b"0 2\na 1 2\n", "header", ":1", "gives 0 words of 2 numbers"),
    (b"1 2\r\na 1 2\n", "crlf", ":1", "CR LF"),
    (b"a 1 2\nb 1 2\r\n", "crlf", ":2", "CR LF"),
    (b"a 1 2\nb\t1 2\n", "blanks", ":2", "tabs or repeated spaces"),
    (b"a 1 2\nb 1  2\n", "blanks", ":2", "tabs or repeated spaces"),
    (b"a 1 2\nb 1 2\na 3 4\n", "duplicate", ":3", "'a' was already defined at 1"),
    (b"a 1 2\nb -0 0e3\n", "zero", ":2", "'b' is all zeros"),
    (b"a 1 2\nb nan 2\n", "not finite", ":2", "'b' has the value 'nan'"),
    (b"a 1 2\nb 1 1e99\n", "not finite", ":2", "'b' has the value '1e99'"),
    (b"a 1 2\nb 1 -2.5e6\n", "huge", ":2", "'b' has norm 2.5e+06; if training diverged, lower the learning rate"),
    (b"2 2\na " + ROW + b"\nb " + ROW[:4] + b"\0\0\0\xcb", "huge", ": row 2", "'b' has norm 8.4e+06"),
    (b"a 1 2\nb 1 -1e38\n", "huge", ":2", "'b' has norm 1e+38"),
    (b"a 1 2\nb 1\nc 1 2\n", "ragged", ":2", "expected 2 numbers after 'b', found 1"),
    (b"a 1 2 3\nb 1 2\nc 1 2\n", "ragged", ":1", "expected 2 numbers after 'a', found 3"),
    (b"a 1 2\nb x 2\n", "ragged", ":2", "'x', one of the last 2 fields of 'b', is not a number"),
    (b"hello world\n", "ragged", ":1", "neither"),
    (b"a 1 2\n\nb 1 2\n\n", "blank line", ":2", "is empty"),
    (b"a 1 2\nb c 1 2\n", "odd word", ":2", "U+0020"),
    (b"a 1 2\nb\xc2\xa0c 1 2\n", "odd word", ":2", "U+00A0"),
    (b"a 1 2\nb\x00c 1 2\n", "odd word", ":2", "U+0000"),
    (b"a 1 2\nb\xe2\x80\x8b 1 2\n", "odd word", ":2", "U+200B"),
    (b"a 1 2\n\xe9 1 2\n", "encoding", ":2", "not UTF-8"),
    (b"2 2\na " + ROW + b"\nb " + ROW[:5], "truncated", ": row 2", "the file ends 7 bytes into this row; the header"),
    (b"2 2\na " + ROW + b"\n", "truncated", ": row 2", "the file ends before this row; the header gives 2 words"),
    (b"1 2\na " + ROW + b"\nb " + ROW, "trailing", ": row 2", "data continues after the 1 word of the header"),
    (b"2 2\na " + ROW + b"a " + ROW, "duplicate", ": row 2", "'a' was already defined at row 1"),
    (b"2 2\na " + ROW + b"\nb " + ROW[:4] + b"\0\0\xc0\x7f", "not finite", ": row 2", "'b' has a value that is nan"),
    (b"2 2\na " + ROW + b"\nb " + bytes(8), "zero", ": row 2", "'b' is all zeros"),
    (b"2 2\na " + ROW + b"\n\xe9 " + ROW, "encoding", ": row 2", "not UTF-8"),
]


# Kinds with which vectors are read all the same, or only from some files.
TOLERATED = {"bom", "crlf", "blanks", "duplicate", "zero", "huge", "odd word"}


@pytest.mark.parametrize("data, kind, position, problem", PROBLEMS)
def test_finds_each_problem_and_no_other_and_is_refused(found, monkeypatch, tmp_path, data, kind, position, problem):
    for block in 1, 1 << 20:
        monkeypatch.setattr(streams, "BLOCK", block)
        problems = found(data)
        assert list(problems) == [kind] and len(problems[kind]) == 1
        assert problems[kind][0][0] == position and problem in problems[kind][0][1]
        if kind in TOLERATED:
            assert len(Vectors.read(tmp_path / "some.vec"))
        else:
            refused(lambda: Vectors.read(tmp_path / "some.vec"), "some.vec:")


GOOD = [
    b"2 2\na 1 2\nb -1e-3 .5",
    b"2 2\na 1 2 \nb 1 2 \n",  # word2vec's space before LF
    b"a 1 2\nb 1 2\n\n\n",
    b"2 2\na " + ROW + b"\nb " + ROW + b"\n",
    b"2 2\na " + ROW + b"b " + ROW,
    b"2 2\na " + ROW + b"</s> " + bytes(8),
    b"a 1 2\n</s> 0 0\n",  # never predicted by word2vec
    b"a -6000 8000\nb 1e-38 -1e-38\n",
    b"a 15000000 2\nb 3 0\n",  # vectors of counts
    "1 1\n\U0001f642日本 1\n".encode(),
]


@pytest.mark.parametrize("data", GOOD)
def test_finds_nothing_in_valid_files(found, data):
    assert found(data) == {} and found(gzip.compress(data), "some.gz") == {}


def test_lines_are_counted_across_blocks_in_any_format(found, monkeypatch):
    monkeypatch.setattr(streams, "BLOCK", 100)
    lines = [f"w{i} {i + 1} 2 3".encode() for i in range(300)]
    lines[150], lines[251], lines[299] = b"x 1 2", b"w3 0 0 0", b"w4 1 2 3\r"
    expected = {"ragged": [":151"], "duplicate": [":252", ":300"], "zero": [":252"], "crlf": [":300"]}
    assert positions(found(b"\n".join(lines))) == expected
    assert "header" in found(b"a 1 2\n", format="text") and found(b"a 1 2\n", format="glove") == {}
    assert found(b"1 2\n3 4\n", format="glove") == {}
    assert "truncated" in found(b"1 2\na 1 2\n", format="binary")
    assert "unreadable" in found(gzip.compress(b"2 2\na 1 2\nb 1 2\n")[:-9], "some.gz")


def test_matrices_with_separate_word_lists(tmp_path, found):
    np.save(tmp_path / "some.npy", np.float32([[1, 2], [0, 0], [3, np.inf], [1, 1]]))
    (tmp_path / "some.words").write_bytes(b"a\nb c\n\xe9\na\nd\n")
    assert positions(Check(str(tmp_path / "some.npy")).problems) == {
        "header": [""], "zero": [": row 2"], "not finite": [": row 3"], "odd word": [": row 2"],
        "encoding": [": row 3"], "duplicate": [": row 4"],
    }  # fmt: skip
    (tmp_path / "some.words").write_bytes(b"a\n")
    problems = Check(str(tmp_path / "some.npy")).problems
    assert problems["header"] == [("", f"has 4 rows, but {tmp_path / 'some.words'} has 1 word")]
    assert set(problems) == {"header", "zero", "not finite"}
    np.save(tmp_path / "some.npy", [[1e39, 1], [1e-50, 0], [1, 1]])  # float64, read as float32
    (tmp_path / "some.words").write_bytes(b"a\nb\nc\n")
    problems = Check(str(tmp_path / "some.npy")).problems
    assert positions(problems) == {"not finite": [": row 1"], "zero": [": row 2"]}
    Vectors(["a", "b"], [[1, 2], [0, 0]]).write(tmp_path / "vectors.tsv")
    assert Check(str(tmp_path / "vectors.tsv")).problems == {"zero": [(": row 2", "the vector of 'b' is all zeros")]}
    (tmp_path / "vectors.tsv").write_bytes(b"nan\t2\n1\t2\n1\tinf\n")
    (tmp_path / "metadata.tsv").write_bytes(b"a\n\xe9\na\n")
    expected = {"not finite": [": row 1", ": row 3"], "encoding": [": row 2"], "duplicate": [": row 3"]}
    assert positions(Check(str(tmp_path / "vectors.tsv")).problems) == expected
    assert list(found(b"no matrix", "other.npy")) == list(found(b"no model", "m.npz")) == ["unreadable"]
    assert found(b"\t".join(100 * [b"12"]) + b"\t\n", "vectors.tsv")  # in linear time
    (tmp_path / "vectors.tsv").write_text("1\t2\n" * 4)
    (tmp_path / "metadata.tsv").write_text("a\n\u00a0\u3000\n\u0085\nb c\n")
    problems = Check(str(tmp_path / "vectors.tsv")).problems
    assert [position for position, _ in problems["blank label"]] == [": row 2"]
    assert "TensorBoard, which skips it, so that all later words shift" in problems["blank label"][0][1]
    (tmp_path / "metadata.tsv").write_text("word\tcount\na\t1\n\u00a0\t2\n\u3000\t\u00a0\nb\t3\n")
    problems = Check(str(tmp_path / "vectors.tsv")).problems
    assert [position for position, _ in problems["blank label"]] == [": row 3"]  # the others have a count
    Vectors(["\u00a0", "a", "\u2028"], [[1, 2]] * 3).write(tmp_path / "vectors.tsv")
    assert Check(str(tmp_path / "vectors.tsv")).problems == {}


def test_problems_are_lines_limited_and_counted(run, tmp_path):
    (path := tmp_path / "a\n\x1bb").write_bytes(b"2 1\na 1\nb\n")
    lines = run("check", path).stdout.splitlines()
    shown = f"{tmp_path}/a\\n\\x1bb"
    assert lines == [
        f"{shown}:3: expected 1 number after 'b', found 0", f"{shown}: text, 2 words of 1 number, 1 problem"
    ]  # fmt: skip
    (file := tmp_path / "some.vec").write_bytes(b"5 1\n" + b"a 1\n" * 5)
    result = run("check", file, "-n", 2)
    assert result.exit_code == 1 and result.stderr == ""
    assert result.stdout.splitlines() == [
        f"{file}:3: 'a' was already defined at 2",
        f"{file}:4: 'a' was already defined at 2",
        f"{file}: duplicate: 2 more, 4 in all",
        f"{file}: text, 5 words of 1 number, 4 problems",
    ]
    checked = json.loads(run("check", file, "-n", 1, "--json").stdout)["files"][0]
    assert (checked["file"], checked["format"], checked["words"], checked["dim"]) == (str(file), "text", 5, 1)
    assert checked["problems"]["duplicate"]["count"] == 4 and len(checked["problems"]["duplicate"]["examples"]) == 1
    result = run("check", "-", input=b"a 1 2\nb 3 4\n")
    assert result.exit_code == 0 and result.stdout == "-: glove, 2 words of 2 numbers, all well\n"
    (good := tmp_path / "good").write_bytes(b"a 1\n")
    result = run("check", tmp_path / "nowhere", good)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{tmp_path}/nowhere: cannot be read") and lines[1].endswith("1 problem")
    assert lines[2] == f"{good}: glove, 1 word of 1 number, all well"
    assert run("check", "-", "-").exit_code == 2
    (tmp_path / "slices.txt").write_text("a\nb\n"), (tmp_path / "a.runs").write_bytes(b"PK\3\4")
    found = run("check", tmp_path, tmp_path / "slices.txt", tmp_path / "a.runs").stdout
    assert found.count(" lists b.runs, which does not exist\n") == 2 and "written by `tiedtools w2v --runs" in found


NUMBERS = np.float32([1.5, -2.25]).tobytes()
NAN = np.float32([1, np.nan]).tobytes()
LINES = b"a 1.5 -2.25\n\nb 1\nc 1 x\n\xff 1 2\nd 1 nan\n 1 2\ne f 1.5 -2.25\ng 1.5 -2.25 1\nh 1.5 -2.25\n\n"
SEVEN = ":{}: is empty", ["a", "e f", "h"], 7
CASES = {
    "text": ({"v.txt": b"9 2\n" + LINES}, SEVEN, 3),
    "glove": ({"v.txt": LINES}, SEVEN, 2),
    "glove, first": ({"v.txt": b"x\ny 1 2 3\na 1.5 -2.25\nb 1.5 -2.25\n"}, (":1: expected 2", ["a", "b"], 2), 0),
    "starspace": ({"v.tsv": LINES.replace(b" ", b"\t").replace(b"e\tf", b"e f")}, SEVEN, 2),
    "binary": (
        {"v.bin": b"5 2\na " + NUMBERS + b"\n\xff " + NUMBERS + b"\nb " + NAN + b" " + NUMBERS + b"c " + NUMBERS},
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
        (b"3 2\na " + NUMBERS + b"\nb " + NUMBERS[:5], "{0}: row 2: the file ends 7 bytes into this row; the header"),
        (b"1 2\na " + NUMBERS + b"\nb " + NUMBERS, "{0}: row 2: data continues after the 1 word of the header"),
    ):
        path.write_bytes(data)
        assert Vectors.read(path, skip_bad=True).words[0] == "a"
        assert messages().splitlines()[-1].startswith(told.format(path))
        refused(lambda: Vectors.read(path))
        assert messages() == ""


@pytest.mark.parametrize("data", [b"2 2\na 1\nb 3\n", b"2 2\na " + NUMBERS[:4], b"1 2\na " + NAN])
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
    strict = run.fails(1, "v:3: expected 2 numbers after 'b'", *args)
    assert strict.stderr.endswith(", or skip it with --skip-bad\n")
    skipping = run(*args, "--skip-bad")
    assert skipping.exit_code == 0 and skipping.stdout
    assert "v: skipped 1 bad row; the first: v:3: expected 2 numbers after 'b', found 0\n" in skipping.stderr
