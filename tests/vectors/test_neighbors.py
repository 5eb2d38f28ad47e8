"""Nearest neighbors, and `tiedtools nn`."""

import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tiedtools.vectors import neighbors as module
from tiedtools.vectors.neighbors import Candidates, largest, summands
from tiedtools.vectors.vectors import Vectors

TEXT = "5 2\neast 1 0\nnortheast 2 2\nnorth 0 1\nwest -3 0\nnowhere 0 0\n"
EAST = [("northeast", np.sqrt(0.5)), ("north", 0), ("nowhere", 0), ("west", -1)]


def neighbors(vectors, words, top=10, restrict=None):
    return module.neighbors(Candidates(vectors, restrict), words, top)


def random_vectors(V=300, E=12):
    matrix = np.random.default_rng(1).standard_normal((V, E)).astype(np.float32)
    return Vectors([f"w{i}" for i in range(V)], matrix * np.arange(1, V + 1, dtype=np.float32)[:, None])


def by_definition(vectors, word, top, restrict=None):
    query = vectors[word].astype(np.float64)
    scored = []
    for other, vector in zip(vectors.words[:restrict], vectors.matrix.astype(np.float64)):
        if other != word:
            scored.append((-(query @ vector) / np.linalg.norm(query) / np.linalg.norm(vector), other))
    return [(other, -minus) for minus, other in sorted(scored)[:top]]


def assert_same(found, expected):
    assert [word for word, _ in found] == [word for word, _ in expected]
    assert [cosine for _, cosine in found] == pytest.approx([cosine for _, cosine in expected], abs=1e-6)


@pytest.mark.parametrize("block", [1, 1000, 1 << 24])
def test_neighbors_are_those_of_the_definition(monkeypatch, block):
    monkeypatch.setattr(module, "SCORES", block)
    vectors = random_vectors()
    words = ["w0", "w17", "w299", "w17"]
    for top, restrict in ((1, None), (10, None), (10, 20), (298, None), (299, None), (1000, None), (5, 1)):
        for word, found in zip(words, neighbors(vectors, words, top, restrict), strict=True):
            assert_same(found, by_definition(vectors, word, top, restrict))


def test_odd_vectors(text):
    matrix = np.random.default_rng(0).standard_normal((100, 20)).astype(np.float32)
    vectors = Vectors([str(row) for row in range(300)], np.concatenate([matrix, matrix, -matrix]))
    cosines = [cosine for found in neighbors(vectors, vectors.words, 299) for _, cosine in found]
    assert min(cosines) == -1 and max(cosines) == 1
    vectors = Vectors.read(text)
    east, unknown, nowhere = neighbors(vectors, ["east", "up", "nowhere"])
    assert_same(east, EAST)
    assert unknown is None
    assert nowhere == [("east", 0), ("northeast", 0), ("north", 0), ("west", 0)]
    assert neighbors(vectors, []) == []
    vectors = Vectors(["tiny", "huge", "one"], np.array([[1e-30, 0], [1e30, 1e30], [1, 0]], np.float32))
    assert_same(neighbors(vectors, ["tiny"])[0], [("one", 1), ("huge", np.sqrt(0.5))])
    assert Vectors(["a", "b"], [[2.2e-22, 0], [1, 0]]).similarity("a", "b") == pytest.approx(1)
    vectors = Vectors(["a", "bad", "b"], np.array([[1, 0], [np.nan, 1], [1, 1]], np.float32))
    assert [word for word, _ in neighbors(vectors, ["a"])[0]] == ["b"]
    assert neighbors(vectors, ["bad"]) == [[]]


def test_sums_of_words_and_equal_words():
    matrix = np.array([[1, 0], [0, 1], [-1, -1], [0, 0]], np.float32)
    vectors = Vectors(["new", "york", "new york", "nbsp\u00a0york"], matrix)
    assert summands("new york", vectors.index) == [("new york", 1)]
    assert summands("york - new york", vectors.index) == [("york", 1), ("new", -1), ("york", 1)]
    assert summands("york-new", vectors.index) == [("york-new", 1)]  # which models with subwords compose
    assert summands("nbsp\u00a0york", {}) == [("nbsp\u00a0york", 1)]
    assert neighbors(vectors, ["new york"], 1) == [[("nbsp\u00a0york", 0)]]
    assert summands("-", {}) == [("-", 1)] and summands(" - ", {}) == [(" - ", 1)]
    vectors = Vectors(["a", "a", "b", "c"], np.array([[1, 0], [0.9, 0.1], [0, 1], [1, 1]], np.float32))
    assert_same(neighbors(vectors, ["a"])[0], [("c", np.sqrt(0.5)), ("b", 0)])
    assert_same(neighbors(vectors, ["c"], restrict=2)[0], [("a", np.sqrt(0.5)), ("b", np.sqrt(0.5))])
    values = np.zeros(1000, np.float32)
    values[[500, 7, 900]] = 1, np.nan, -1
    assert largest(values, 4).tolist() == [500, 0, 1, 2]
    assert largest(np.array([np.nan, -np.inf, 2, np.nan]), 2).tolist() == [2]


@pytest.mark.filterwarnings("error")
def test_lengths_beyond_float32_do_not_matter():
    tiny, huge = np.float32([[3 * 2.0**-149, 4 * 2.0**-149], [3.2e38, 2.4e38]])
    vectors = Vectors(["tiny", "huge", "one", "zero"], [tiny, huge, [1, 0], [0, 0]])
    assert_same(neighbors(vectors, ["tiny"])[0], [("huge", 0.96), ("one", 0.6), ("zero", 0)])
    assert_same(vectors.most_similar("one"), [("huge", 0.8), ("tiny", 0.6), ("zero", 0)])
    vectors.matrix[1] = 0  # lengths are computed anew
    assert_same(vectors.most_similar("one"), [("tiny", 0.6), ("huge", 0), ("zero", 0)])


def test_lines_are_tab_separated_also_from_standard_input(run, text, tmp_path):
    assert (result := run("nn", text, "east", "north", "-k", 2)).exit_code == 0 and result.stderr == ""
    assert result.stdout == (
        "east\tnortheast\t0.7071\neast\tnorth\t0.0000\nnorth\tnortheast\t0.7071\nnorth\teast\t0.0000\n"
    )
    assert run("nn", text, "east").stdout.splitlines()[-1] == "east\twest\t-1.0000"
    result = run("nn", text, "west", "--restrict", 2, "--top", 5, "--format", "text")
    assert result.stdout == "west\tnortheast\t-0.7071\nwest\teast\t-1.0000\n"
    (path := tmp_path / "v.txt").write_text("2 1\nкот 1\nпёс 2\n", encoding="utf-8")
    assert run("nn", path, "кот").stdout_bytes.decode() == "кот\tпёс\t1.0000\n"
    assert (expected := run("nn", text, "east", "north").stdout).count("\n") == 8
    assert run("nn", text, input=b"east\r\n\nnorth\n").stdout == expected
    assert run("nn", text, input=b"\xef\xbb\xbfeast\r\n\nnorth\n").stdout == expected  # with a byte order mark
    assert run("nn", "-", "east", "north", input=TEXT).stdout == expected


def test_several_files_stand_side_by_side(run, text, tmp_path):
    (other := tmp_path / "other.txt").write_bytes(b"3 2\neast 1 0\nup 0 1\nsouth -0.6 -0.8\n")
    result = run("nn", text, "east", "up", "-k", 3, "--with", other)
    assert result.stdout == (
        f"word\t{text}\tcosine\t{other}\tcosine\n"
        "east\tnortheast\t0.7071\tup\t0.0000\n"
        "east\tnorth\t0.0000\tsouth\t-0.6000\n"
        "east\tnowhere\t0.0000\t\t\n"
        "up\t\t\teast\t0.0000\n"
        "up\t\t\tsouth\t-0.8000\n"
    )
    assert (result.exit_code, result.stderr) == (1, f"tiedtools: {text}: no vector for 'up'\n")
    one, two = map(json.loads, run("nn", text, "east", "--with", other, "--json").stdout.splitlines())
    assert one == json.loads(run("nn", text, "east", "--json").stdout)
    assert two["vectors"] == str(other) and [word for word, _ in two["neighbors"]["east"]] == ["up", "south"]


def test_a_word_is_answered_before_the_next_one_comes(text):
    command = [sys.executable, "-m", "tiedtools", "nn", str(text), "-k", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        process.stdin.write(b"east\nup\nno")
        assert process.stdout.readline() == b"east\tnortheast\t0.7071\n"
        process.stdin.write(b"rth\nwest")
        assert process.stdout.readline() == b"north\tnortheast\t0.7071\n"
        process.stdin.close()
        assert process.stdout.readline() == b"west\tnorth\t0.0000\n"
        assert process.wait() == 1


def test_a_terminal_is_asked(text):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "tiedtools", "nn", str(text), "-k", "1"]
    pipes = {"stdin": theirs, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        os.close(theirs)
        os.write(ours, b"east\n")
        assert process.stdout.readline() == b"east\tnortheast\t0.7071\n"
        os.write(ours, b"\x04")
        assert process.communicate() == (b"", b"word: word: \n")
    os.close(ours)
    assert process.returncode == 0


COUNTED = "w2v", "-size", 3, "-iter", 1, "-min-count", 1, "-threads", 1, "-debug", 0


@pytest.fixture
def counted(run, tmp_path):
    """Vectors, and a model of the same training, of words that occur 1,000,000, 99, 100, 2, and 1 times."""
    lines = ["a " * 1000] * 1000 + ["b"] * 99 + ["c"] * 100 + ["d", "d", "e"]
    (tmp_path / "text").write_text("\n".join(lines))
    files = "-output", tmp_path / "v.txt", "--save-model", tmp_path / "m.npz"
    assert run(*COUNTED, *files, tmp_path / "text").exit_code == 0
    return tmp_path


RARE = [  # options, answers to "e", words that are said to be left out
    ([], "abc", 2),  # those that occur at least 4 times, once in 250,000 words
    (["--min-count", 0], "abcd", 0),
    (["--min-count", 2], "abcd", 0),
    (["--min-count", 100], "ac", 0),
    (["--min-count", 1_000_001], "", 0),
    (["--restrict", 5], "abcd", 0),
    (["--restrict", 2, "--min-count", 2], "a", 0),
]


def test_rare_words_are_left_out_by_counts_of_the_file_itself(run, counted):
    for name, (options, answers, left_out) in itertools.product(["v.txt", "m.npz", "m.npz:out"], RARE):
        result = run("nn", counted / name, "e", *options)
        found = {line.split("\t")[1] for line in result.stdout.splitlines()} - {"</s>"}
        assert (result.exit_code, found) == (0, set(answers)), options
        told = f"{counted / name}: leaving out {left_out} of 6 words, with counts below 4;"
        assert result.stderr.startswith(told) == bool(left_out), options
    # A copy without its manifest, and a file that has changed since, have no counts.
    for name in "copy.txt", "v.txt":
        text = (counted / "v.txt").read_text()
        (counted / name).write_text(text[:-3] + "73\n")
        assert len(run("nn", counted / name, "e").stdout.splitlines()) == 5
        run.fails(2, f"no word counts for {counted / name}", "nn", counted / name, "e", "--min-count", 2)


def test_counts_are_shown_and_read_from_vocabularies(run, counted, tmp_path):
    """A vocabulary may be in any order: rare words are left out wherever they are."""
    shown = run("nn", counted / "v.txt", "e", "--counts", "--min-count", 0).stdout
    assert {line.split("\t")[1]: line.split("\t")[3] for line in shown.splitlines()} == {
        "a": "1000000", "b": "99", "c": "100", "d": "2", "</s>": "1201"}  # fmt: skip
    Vectors(list("wxyz"), [[1, 0], [1, 0.1], [1, 0.2], [1, 0.3]]).write(tmp_path / "n.npy")
    (tmp_path / "vocab").write_text("z 9\nx 7\ny 1\n")
    listed = "--vocab", tmp_path / "vocab", "--counts"
    found = run("nn", tmp_path / "n.npy", "w", *listed, "--min-count", 5)
    assert [line.split("\t")[1::2] for line in found.stdout.splitlines()] == [["x", "7"], ["z", "9"]]
    found = run("nn", tmp_path / "n.npy", "w", "--with", tmp_path / "n.npy", *listed, "--top", 1, "--min-count", 9)
    assert found.stdout.splitlines()[1] == "w\tz\t0.9578\t9\tz\t0.9578\t9"
    answers = json.loads(run("nn", tmp_path / "n.npy", "w", *listed, "--top", 1, "--min-count", 9, "--json").stdout)
    assert answers["neighbors"]["w"] == [["z", pytest.approx(0.9578, abs=1e-4), 9]]
    (tmp_path / "n.words").unlink()
    (tmp_path / "n.vocab").write_text("w 9\nx 1\ny 5\nz 6\n")  # beside the matrix
    assert [line[2] for line in run("nn", tmp_path / "n.npy", "w", "--min-count", 2).stdout.splitlines()] == ["y", "z"]
    (tmp_path / "vocab").write_text("z 9\nx\n")
    run.fails(1, "vocab:2: is not `word count`", "nn", tmp_path / "n.npy", "w", *listed)
    (tmp_path / "vocab").write_text("z\t9\n")
    run.fails(1, "vocab:1: is not `word count`", "nn", tmp_path / "n.npy", "w", *listed[:2], "--min-count", 0)


@pytest.mark.parametrize("counts", [None, [[1, 10**15]], [[10**30, 6]], [[1, 7], [1, -1]], [[1, 5]], [[1, 6, 2]], "6"])
def test_malformed_counts_are_unknown(run, counted, counts):
    manifest = counted / "v.txt.run.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "counts": counts}))
    result = run("nn", counted / "v.txt", "e")
    assert (result.exit_code, len(result.stdout.splitlines()), result.stderr) == (0, 5, "")


def test_unknown_words_are_told_and_the_others_answered(run, text):
    result = run("nn", text, "up", "east", "down", "-top", 1)
    assert result.exit_code == 1 and result.stdout == "east\tnortheast\t0.7071\n"
    assert result.stderr == "".join(f"tiedtools: {text}: no vector for {word!r}\n" for word in ("up", "down"))
    assert run("nn", text, input=b"no\xfftext\n").stderr.count("\n") == 1
    result = run("nn", text, "north - east", "up - east", "-k", 1)
    assert (result.exit_code, result.stdout) == (1, "north - east\twest\t0.7071\n")
    assert result.stderr == f"tiedtools: {text}: no vector for 'up'\n"
    assert run("nn", text, "-k", 1, input=b"north - east\n").stdout == result.stdout
    result = run("nn", text, "east", "up", "--json", "--restrict", 4)
    answer = json.loads(result.stdout)
    assert result.exit_code == 1 and (answer["vectors"], answer["top"], answer["restrict"]) == (str(text), 10, 4)
    assert answer["unknown"] == ["up"] and list(answer["neighbors"]) == ["east"]
    assert_same(answer["neighbors"]["east"], [EAST[0], EAST[1], EAST[3]])


@pytest.mark.parametrize("asked, near", [
    ("King", "king"), ("kING", "king"), ("us", "US"), ("İstanbul", "istanbul"), ("izmir", "İzmir"),
    ("STRASSE", "straße"), ("koenig", None), ("zolw", None), ("king", ""),
    ("kinng", "king"), ("Istanbull", "istanbul"),
])  # fmt: skip
def test_a_word_in_another_case_or_similar_spelling_is_suggested(run, tmp_path, asked, near):
    path = tmp_path / "v.txt"
    words = ["king", "KING", "US", "Us", "istanbul", "İzmir", "straße", "żołw"]
    path.write_text(f"{len(words)} 1\n" + "".join(f"{word} 1\n" for word in words), encoding="utf-8")
    suggestion = f"; did you mean {near!r}?" if near else ""
    expected = "" if near == "" else f"tiedtools: {path}: no vector for {asked!r}{suggestion}\n"
    assert run("nn", path, asked, "-k", 1).stderr == expected
    if near != "":
        assert json.loads(run("nn", path, asked, "--json").stdout)["unknown"] == [asked]
