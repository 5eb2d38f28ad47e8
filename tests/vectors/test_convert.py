"""Test `tiedtools convert`: every format to every other, and selection of vectors."""

import gzip
import os
import resource

import numpy as np
import pytest
from common import content, refused

from tiedtools.cli.shared import VECTOR_FORMATS
from tiedtools.files import modelfile
from tiedtools.vectors import edit
from tiedtools.vectors.norms import unit
from tiedtools.vectors.vectors import FORMATS, Vectors

NAMES = dict(
    text="b.txt", binary="b.bin", glove="b.glove", fasttext="c.bin", npy="b.npy", safetensors="b.safetensors",
    tsv="vectors.tsv", model2vec="b/",
)  # fmt: skip


def make():
    matrix = [[3, 4], [1, 0], [0, 0], [-2, 2], [5, 0.5], [1, 2]]
    return Vectors(["The", "cat", "é", "the", "CAT", "Cat"], matrix)


@pytest.fixture
def source(tmp_path):
    make().write(tmp_path / "a.txt")
    return tmp_path / "a.txt"


def test_every_format_has_a_name_and_models_are_converted(run, tmp_path):
    assert list(NAMES) == list(FORMATS) == list(VECTOR_FORMATS.choices)
    arrays = {"emb_in": np.ones((2, 2), "f4"), "emb_out": np.zeros((2, 2), "f4")}
    with open(tmp_path / "m.npz", "wb") as file:
        modelfile.save(file, "word2vec", {}, ["a", "b"], arrays)
    assert run("convert", tmp_path / "m.npz:out", "-").stdout == "2 2\na 0.000000 0.000000\nb 0.000000 0.000000\n"


@pytest.mark.parametrize("first", NAMES)
def test_conversion_between_all_formats_which_are_inferred_from_names(run, source, tmp_path, first):
    once = f"{tmp_path}/{NAMES[first]}"
    result = run("convert", source, once, *["--to", "fasttext"] * (first == "fasttext"))
    assert (result.exit_code, result.stdout) == (0, "") and result.stderr == "6 words of 2 numbers\n"
    assert run("convert", once, "-", "--from", first).stdout == source.read_text()
    for second, name in NAMES.items():
        (tmp_path / second).mkdir()
        twice = f"{tmp_path}/{second}/{name}"
        assert run("convert", once, twice, "--to", second).exit_code == 0
        assert run("convert", twice, "-").stdout == source.read_text()


@pytest.mark.parametrize("name", ["b", "b.vec", "b.w2v", "b.txt.gz", "b.gz", "b.6B.50d", "b.300"])
def test_other_names_are_text(run, source, tmp_path, name):
    assert run("convert", source, tmp_path / name).exit_code == 0
    assert content(str(tmp_path / name)) == source.read_bytes()


@pytest.mark.parametrize("name", ["b.xlsx", "b.csv", "b.TXT", "b.xlsx.gz", "b.txt.zip", "b.50.h5", "b.7z", "b."])
def test_unknown_extensions_are_refused(run, source, tmp_path, name):
    result = run("convert", source, tmp_path / name)
    known = ".txt, .vec, .w2v, .bin, .glove, .ftz, .npy, .safetensors, .tsv"
    assert result.exit_code == 2 and result.stderr.count("\n") == 1 and not (tmp_path / name).exists()
    assert f"{name}: unknown extension ." in result.stderr
    assert f"use {known}, or none for text, or choose --to" in result.stderr
    assert run("convert", source, tmp_path / name, "--to", "text").exit_code == 0


def test_pipes_and_compressed_files(run, source, tmp_path):
    binary = run("convert", "-", "-", "--to", "binary", input=source.read_bytes()).stdout_bytes
    assert binary.startswith(b"6 2\nThe \0\0\x40\x40")
    for ending in ("gz", "bz2", "xz", "zst"):
        path = tmp_path / f"b.bin.{ending}"
        assert run("convert", source, path).exit_code == 0
        assert run("convert", path, "-", "--to", "binary").stdout_bytes == binary
    assert run("convert", source, tmp_path / "b.txt.gz", "--to", "glove").exit_code == 0
    assert gzip.decompress((tmp_path / "b.txt.gz").read_bytes()) == source.read_bytes().partition(b"\n")[2]
    assert (tmp_path / "b.bin.zst").read_bytes()[:4] == b"\x28\xb5\x2f\xfd"


def converted(run, source, *options):
    result = run("convert", source, "-", "--to", "glove", *options)
    assert result.exit_code == 0
    rows = [line.split(" ") for line in result.stdout.splitlines()]
    return {word: [float(number) for number in numbers] for word, *numbers in rows}


def test_vectors_are_selected(run, source, tmp_path):
    (words := tmp_path / "words").write_text("the\r\nnone\n\ncat\nthe\n")
    assert list(converted(run, source, "--words", words).items()) == [("the", [-2, 2]), ("cat", [1, 0])]
    told = run("convert", source, "-", "--words", words).stderr
    assert f"{words}: 1 word of 3 without a vector in {source}\n" in told
    assert list(converted(run, source, "--top", 2)) == ["The", "cat"]
    assert list(converted(run, source, "--words", words, "--top", 1)) == ["the"]
    assert converted(run, source, "--lower", "first") == {"the": [3, 4], "cat": [1, 0], "é": [0, 0]}
    mean = converted(run, source, "--lower", "mean", "--top", 2)
    assert mean == {"the": [0.5, 3], "cat": [2.333333, 0.833333]}
    vectors = Vectors(["The", "İ", "the", "i"], np.eye(4))
    vectors.counts = np.arange(1, 5)
    merged = edit.lower(vectors, "first")
    assert (merged.words, merged.counts.tolist()) == (["the", "i"], [4, 6])
    unit = converted(run, source, "--normalize")
    assert unit["The"] == [0.6, 0.8] and unit["é"] == [0, 0] and unit["the"] == [-0.707107, 0.707107]


SPACED = b". . . 1 2\nat name@domain.com 3 4\nnew\tyork 5 6\nnew_york 7 8\n"


def test_words_with_spaces(run, tmp_path):
    """As in GloVe's largest file: kept where the format can hold them, else an error, unless an option is given."""
    (source := tmp_path / "a.glove").write_bytes(SPACED)
    for name in ("b.glove", "b.npy", "b.safetensors"):
        assert run("convert", source, tmp_path / name).exit_code == 0
        assert Vectors.read(tmp_path / name).words == [". . .", "at name@domain.com", "new\tyork", "new_york"]
    for name, row, format in (("b.txt", 1, "text"), ("b.bin", 1, "binary"), ("b.tsv", 3, "tsv")):
        result = run("convert", source, tmp_path / name)
        assert result.exit_code == 1 and not (tmp_path / name).exists() and result.stderr.count("\n") == 1
        assert f"word {row}: " in result.stderr and f"whitespace that {format} files cannot hold" in result.stderr
        told = run("convert", source, tmp_path / name, "--spaces", "_").stderr
        assert told.startswith("2 words with spaces written with _\n1 word with spaces skipped, since ")
        assert Vectors.read(tmp_path / name)["new_york"].tolist() == [7, 8] and told.endswith("3 words of 2 numbers\n")
    told = run("convert", source, tmp_path / "b.txt", "--spaces", "skip", "--top", 2).stderr
    assert told == "3 words with spaces skipped\n1 word of 2 numbers\n"
    assert (tmp_path / "b.txt").read_text() == "1 2\nnew_york 7.000000 8.000000\n"


@pytest.mark.filterwarnings("error")
def test_normalized_where_the_norm_is_not_a_float32():
    extreme = np.float32([[3 * 2.0**-149, 4 * 2.0**-149], [3.2e38, -2.4e38], [0, 0]])
    np.testing.assert_allclose(unit(extreme), [[0.6, 0.8], [0.8, -0.6], [0, 0]], rtol=1e-6)
    np.testing.assert_array_equal(extreme[1], np.float32([3.2e38, -2.4e38]))  # the input is unchanged


def test_errors_are_one_line_and_leave_existing_files(run, source, tmp_path):
    old, bad, none = tmp_path / "old.txt", tmp_path / "bad.txt", tmp_path / "none"
    old.write_text("old")
    bad.write_text("2 2\na 1 2\nb 1\n")
    none.write_text("nothing\n")
    for args, message, status in (
        ([bad, old], "bad.txt:3:", 1), ([source, old, "--words", none], "no vectors to write", 1),
        ([source, source], "used as both input and output", 2),
        ([source, none, "--words", none], "used as both input and output", 2),
        (["-", old, "--words", "-"], "standard input can be read only once", 2),
        ([tmp_path / "nowhere.npy", old], "nowhere.npy: cannot be read: No such file", 1),
        ([none, old, "--from", "npy"], "none: is not a whole .npy file", 1),
        (["", old], "'': cannot be read: No such file", 1),
        ([tmp_path / "nowhere.safetensors", old], "nowhere.safetensors: no such file", 1),
        ([source, tmp_path / "b.npz"], "b.npz: would be read as a model file", 2),
        ([source, "-", "--to", "npy"], "two files", 2), ([source, tmp_path / "b.npy.gz"], "not compressed", 2),
        ([source, tmp_path], "is a directory", 1), ([source, old, "--words", tmp_path / "nowhere"], "nowhere", 1),
        ([source, old, "--top", 0], "0", 2), ([source, old, "--lower", "all"], "all", 2), ([source], "OUT", 2),
    ):  # fmt: skip
        result = run("convert", *args)
        assert result.exit_code == status and result.stdout == ""
        assert message in result.stderr.splitlines()[-1] and "Traceback" not in result.stderr
        assert old.read_text() == "old" and none.read_text() == "nothing\n"


@pytest.fixture
def small_files():
    """Limit files to a megabyte, as if the disk were full; the output of the test run itself may be a smaller file."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


FAILING = [*list(NAMES.values())[:-1], "b.txt.gz", "b.bin.bz2", "b.txt.xz"]


@pytest.mark.parametrize("name", FAILING)
def test_a_full_disk_error_names_the_vector_file(tmp_path, small_files, name):
    vectors = Vectors([f"{k}" for k in range(1000)], np.random.default_rng(1).normal(size=(1000, 500)))
    for cause in "File too large", "No space left on device":
        refused(lambda: vectors.write(tmp_path / name), f"{tmp_path}/{name}: cannot be written: {cause}")
        assert os.listdir(tmp_path) == [name] * (cause != "File too large")
        if cause == "File too large":
            (tmp_path / name).symlink_to("/dev/full")


@pytest.mark.parametrize("name", ["b.npy", "b.safetensors", "b.tsv"])
def test_a_full_disk_error_names_the_word_list(tmp_path, small_files, name):
    words = "b.metadata.tsv" if name == "b.tsv" else "b.words"
    vectors = Vectors([f"{k:030000}" for k in range(100)], np.ones((100, 1)))
    refused(lambda: vectors.write(tmp_path / name), f"{tmp_path}/{words}: cannot be written: File too large")
    assert os.listdir(tmp_path) == []


def test_word_lists_are_not_overwritten(run, source, tmp_path):
    assert run("convert", source, tmp_path / "b.npy").exit_code == 0
    words = (tmp_path / "b.words").rename(tmp_path / "b.txt")
    (tmp_path / "some.words").write_text("the\nnone\n")
    some = tmp_path / "some.words"
    for args, message, status in (
        ([tmp_path / "b.npy", words], "b.txt: is used as both input and output", 2),
        ([tmp_path / "b.npy", tmp_path / "b", "--to", "npy"], "b.npy: is used as both input and output", 2),
        ([source, tmp_path / "some.npy", "--words", some], "some.words: is used as both input and output", 2),
    ):
        run.fails(status, message, "convert", *args)
    assert (tmp_path / "some.words").read_text() == "the\nnone\n" and not (tmp_path / "some.npy").exists()
    assert Vectors.read(tmp_path / "b.npy").words == make().words
    assert run("convert", tmp_path / "b.npy", tmp_path / "b.safetensors").exit_code == 0
