"""Test Vectors, and files of runs."""

import io
import os

import numpy as np
import pytest
from common import refused, save
from vectorcase import make

import tiedtools as tt
from tiedtools.base.errors import TiedtoolsError
from tiedtools.vectors import streams
from tiedtools.vectors.runs import Runs, is_runs
from tiedtools.vectors.vectors import Vectors


def test_looks_up_words():
    vectors = Vectors(["a", "b", "a"], np.arange(6).reshape(3, 2))
    assert (len(vectors), vectors.dim, vectors.matrix.dtype) == (3, 2, np.float32)
    assert vectors.index == {"a": 0, "b": 1} and "b" in vectors and "c" not in vectors
    assert vectors["a"].tolist() == [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        vectors["b"] -= 9  # in place, before the item is assigned
    assert not any(vector.flags.writeable for _, vector in vectors.items())
    with pytest.raises(KeyError):
        vectors["c"]


@pytest.mark.parametrize("shape", [(3, 2), (2,), (2, 2, 2)])
def test_words_and_rows_must_agree(shape):
    with pytest.raises(ValueError, match="2 words"):
        Vectors(["a", "b"], np.zeros(shape))


UNREADABLE = [(word, format) for word in ["", "a\n", "\ud800"] for format in ("text", "binary", "npy")]
UNREADABLE += [(word, format) for word in [" ", "a b", "a\tb", "\ra"] for format in ("text", "binary")]


@pytest.mark.parametrize("word, format", [*UNREADABLE, ("a\r", "npy")])
def test_refuses_to_write_words_that_could_not_be_read_back(word, format, tmp_path):
    with pytest.raises(TiedtoolsError, match=r"^word 2: ") as error:
        make(["a", word]).write(tmp_path / "some", format)
    assert repr(word) in str(error.value) and os.listdir(tmp_path) == []


SPACED = ["\ufeffa", ". . .", "at name@domain.com", "new  york", " a", "5"]
ODD = {
    "some.npy": [*SPACED, "a 5", "a ", " ", "a\tb", "\ra"],
    "some.safetensors": [*SPACED, "a 5", "a ", " ", "a\tb", "\ra"],
    "some.tsv": [*SPACED, "a 5", "a ", "\ra"],
    "some.glove": [*SPACED, "a\tb", "\ra", "a\r"],
}


@pytest.mark.parametrize("name", ODD)
def test_words_with_spaces_round_trip_where_the_format_can_hold_them(tmp_path, name):
    """Also the first word, whose U+FEFF is not a byte order mark."""
    vectors = Vectors(ODD[name], np.arange(2 * len(ODD[name])).reshape(-1, 2) / 4)
    vectors.write(tmp_path / name)
    again = Vectors.read(tmp_path / name)
    assert again.words == ODD[name]
    np.testing.assert_array_equal(again.matrix, vectors.matrix)


@pytest.mark.parametrize("name, word", [*zip(["glove"] * 3, ["a 5", "a nan", "a "]), ("tsv", "a\tb"), ("tsv", "a\r")])
def test_words_with_spaces_are_refused_where_the_format_cannot_hold_them(tmp_path, name, word):
    with pytest.raises(TiedtoolsError, match=r"^word 2: .* has whitespace that \w+ files cannot hold; see .*--spaces"):
        make(["a", word]).write(tmp_path / f"some.{name}")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("format", ["text", "binary", "npy"])
def test_refuses_to_write_nonfinite_values(value, format, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "BLOCK", 1)
    vectors = make(["a", "b", "c"])
    vectors.matrix[2, 4] = value
    refused(lambda: vectors.write(tmp_path / "some", format), "word 3: 'c' has a value that is nan or infinite")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_refuses_to_write_empty_matrices(shape):
    refused(lambda: Vectors(["a", "b"][: shape[0]], np.zeros(shape)).write_stream(io.BytesIO(), "text"), "no vectors")


@pytest.mark.parametrize("dtype", ["f2", "f8", ">f4"])
@pytest.mark.parametrize(
    "name, words", [("words", "a\né \r\nb b"), ("vocab", "a 7\né  6\nb b 5\n"), ("txt", "a\né \nb b\n")]
)
def test_reads_other_matrices_and_word_lists(tmp_path, dtype, name, words):
    matrix = make("abc").matrix.astype("f2")
    np.save(tmp_path / "some.npy", np.asfortranarray(matrix.astype(dtype)))
    (tmp_path / f"some.{name}").write_bytes(words.encode())
    vectors = Vectors.read(tmp_path / "some.npy", format="npy")
    assert vectors.words == ["a", "é ", "b b"]
    assert vectors.matrix.dtype == (np.float16 if dtype == "f2" else np.float32)
    np.testing.assert_array_equal(vectors.matrix, matrix)
    assert vectors.matrix.flags.c_contiguous


NPY_ERRORS = [
    ("words", b"a\n", "some.words", "1 word,", "3 rows"), ("words", b"a\nb\n\xff\n", "some.words:3: ", "not UTF-8"),
    ("vocab", b"a 3\nb\nc 4\n", "some.vocab:2: ", "count"), ("other", b"", "some.words", ".vocab, .txt"),
]  # fmt: skip


@pytest.mark.parametrize("name, words, parts", [(name, words, parts) for name, words, *parts in NPY_ERRORS])
def test_rejects_invalid_word_lists(tmp_path, name, words, parts):
    np.save(tmp_path / "some.npy", make("abc").matrix)
    (tmp_path / f"some.{name}").write_bytes(words)
    refused(lambda: Vectors.read(tmp_path / "some.npy"), *parts)


def saved(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("data, part", [
    (b"", "not a whole .npy"), (b"3 2\na 1 2\n", "not a whole .npy"),
    (b"PK\x03\x04 no archive", "not a tiedtools model"), (saved(np.ones((3, 2)))[:-1], "not a whole .npy"),
    (saved(np.array([None])), "not a whole .npy"), (saved(np.ones(3)), "one matrix"),
    (saved(np.ones((3, 2), int)), "one matrix"), (saved(np.ones((3, 0))), "one matrix"),
    (saved(np.float32([[1], [2], [np.inf]])), "row 3: 'c' has a value"),
    (saved([[1], [2e300], [3]]), "row 2: 'b' has a value"),
])  # fmt: skip
def test_rejects_invalid_npy(tmp_path, data, part):
    (tmp_path / "some.words").write_bytes(b"a\nb\nc\n")
    (tmp_path / "some.npy").write_bytes(data)
    refused(lambda: Vectors.read(tmp_path / "some.npy"), "some.", part)


def test_npy_writes_both_files_or_none(tmp_path):
    (tmp_path / "some.words").mkdir()
    refused(lambda: make("abc").write(tmp_path / "some.npy"), "is a directory")
    assert os.listdir(tmp_path) == ["some.words"]
    refused(lambda: make("abc").write("-", "npy"), "standard output")


@pytest.mark.parametrize("errors, done", [("replace", "replaced {} with U+FFFD"), ("ignore", "skipped {}")])
def test_invalid_utf8_in_words_is_counted(tmp_path, messages, errors, done):
    (path := tmp_path / "v").write_bytes(b"3 1\nfine 1\ncaf\xe9\xff 1\n\xe9t\xe9 2\n")
    Vectors.read(path, errors=errors)
    told = f"{path}: {done.format('4 invalid UTF-8 sequences')}, the first in the word 'caf\ufffd\ufffd'\n"
    assert messages() == told
    path.write_bytes("1 1\ncaf\u00e9 1\n".encode())
    Vectors.read(path, errors=errors)
    assert messages() == ""


OF_RUNS = ["</s>", "a", "b", "c"]


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(1)
    present = np.array([[9, 3, 2, 1], [9, 3, 0, 4], [9, 1, 1, 1]])
    matrix = rng.standard_normal((3, 4, 5)).astype(np.float16)
    save(Runs(OF_RUNS, matrix, present, np.array([9, 3, 2, 2]), dict(seeds=[1, 2, 3])), tmp_path / "x.runs")
    return str(tmp_path / "x.runs"), matrix


def test_runs_are_mapped_and_one_is_read_wherever_vectors_are(path, run, tmp_path):
    path, matrix = path
    runs = Runs.read(path)
    assert isinstance(runs.matrix, np.memmap) and is_runs(path)
    assert runs.words == OF_RUNS and runs.training == dict(seeds=[1, 2, 3]) and len(runs) == 3
    np.testing.assert_array_equal(runs.matrix, matrix)
    assert runs.whole.shape == (0, 4, 5)
    loaded = tt.load(path)
    assert isinstance(loaded, Runs)
    # A word that its text lacks has no vector.
    vectors = tt.Vectors.read(f"{path}:2")
    assert vectors.words == ["</s>", "a", "c"]
    np.testing.assert_array_equal(vectors.matrix, matrix[1][[0, 1, 3]].astype(np.float32))
    assert run("convert", f"{path}:1", tmp_path / "one.txt").exit_code == 0
    np.testing.assert_allclose(tt.Vectors.read(tmp_path / "one.txt").matrix, matrix[0], atol=1e-6)


@pytest.mark.parametrize("suffix", ["", ":0", ":4", ":in"])
def test_a_run_must_be_named(path, suffix):
    refused(lambda: tt.Vectors.read(path[0] + suffix), f"{path[0]}:1", f"{path[0]}:3")


def test_other_files_have_no_runs(tmp_path):
    tt.Word2Vec(size=4, min_count=1, epochs=1, threads=1, sample=0).fit([["a", "b"]] * 20).save(tmp_path / "model.npz")
    assert not is_runs(str(tmp_path / "model.npz"))
    for path in f"{tmp_path}/model.npz:3", f"{tmp_path}/model.npz", str(tmp_path):
        refused(lambda: tt.Vectors.read(path) if path.endswith("3") else Runs.read(path), "is not a file of runs")


@pytest.mark.parametrize("cut", [10, 200, 700])
def test_truncated_files_are_refused(path, cut):
    data = open(path[0], "rb").read()
    open(path[0], "wb").write(data[:-cut])
    refused(lambda: Runs.read(path[0]))
