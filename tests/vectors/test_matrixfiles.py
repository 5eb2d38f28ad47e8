"""Test matrices with separate word lists: safetensors, TensorBoard's projector, and behavior shared with .npy."""

import json
import os
import re

import numpy as np
import pytest
from refusals import refused

from tiedtools.base.errors import TiedtoolsError
from tiedtools.vectors import streams
from tiedtools.vectors.vectors import Vectors

WORDS = ["a\u00a0b", "\u2028", "3", "é", "</s>"]


def make(words=WORDS, E=3, seed=0):
    # Multiples of 0.5, which six decimals represent exactly.
    return Vectors(list(words), np.random.default_rng(seed).integers(-9, 9, (len(words), E)) / 2)


def assert_same(vectors, expected):
    assert vectors.words == expected.words
    np.testing.assert_array_equal(vectors.matrix, expected.matrix)


@pytest.mark.parametrize("name, files", [
    ("some.safetensors", ["some.safetensors", "some.words"]), ("some.tsv", ["some.metadata.tsv", "some.tsv"]),
    ("vectors.tsv", ["metadata.tsv", "vectors.tsv"]), ("x_tensor.tsv", ["x_metadata.tsv", "x_tensor.tsv"]),
])  # fmt: skip
@pytest.mark.parametrize("block", [1, 1 << 20])
@pytest.mark.parametrize("E", [1, 3])
def test_round_trips(tmp_path, monkeypatch, name, files, block, E):
    monkeypatch.setattr(streams, "BLOCK", block)
    vectors = make([*WORDS[:1], "x\u2028", *WORDS[2:]], E=E)
    vectors.write(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == files
    assert_same(Vectors.read(tmp_path / name), vectors)


def test_missing_extensions_are_added(tmp_path):
    make().write(tmp_path / "some", "tsv")
    make().write(tmp_path / "some", "safetensors")
    assert sorted(os.listdir(tmp_path)) == ["some.metadata.tsv", "some.safetensors", "some.tsv", "some.words"]


def test_projector_files_have_the_format_of_tensorboard(tmp_path):
    Vectors(["a", "b"], [[0.5, -1], [2, 1e10]]).write(tmp_path / "vectors.tsv")
    assert (tmp_path / "vectors.tsv").read_text() == "0.500000\t-1.000000\n2.000000\t10000000000.000000\n"
    assert (tmp_path / "metadata.tsv").read_text() == "a\nb\n"


def test_words_that_tensorboard_would_skip_are_written_by_code_point(tmp_path, messages):
    """All that JavaScript's `trim` removes, but not what only Python's `strip` does."""
    blank = [*" \v\f\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff", "\u00a0 \u3000"]
    others = ["\u0085", "\x1c", "\u200b", "\u180e", "a\u00a0", "\u3000b"]
    Vectors([*blank, *others], np.ones((20, 2))).write(tmp_path / "some.tsv")
    lines = (tmp_path / "some.metadata.tsv").read_bytes().decode().split("\n")
    assert lines[:2] == ["U+0020", "U+000B"] and lines[12:14] == ["U+FEFF", "U+00A0 U+0020 U+3000"]
    assert lines[14:] == [*others, ""] and all(re.fullmatch(r"(U\+[0-9A-F]{4} ?)+", line) for line in lines[:14])
    assert messages().startswith(f"{tmp_path}/some.metadata.tsv: 14 blank words written by code point, such as U+00A0")
    make().write(tmp_path / "some.npy")
    assert messages() == ""


def test_metadata_with_column_titles(tmp_path):
    (tmp_path / "vectors.tsv").write_text("1\t2\n3\t4e0\n")
    (tmp_path / "metadata.tsv").write_text("word\tcount\na\t5\nb c\t3\n")
    assert_same(Vectors.read(tmp_path / "vectors.tsv"), Vectors(["a", "b c"], [[1, 2], [3, 4]]))


def test_safetensors_are_compatible_with_the_library(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    vectors = make()
    vectors.write(tmp_path / "ours.safetensors")
    ((_, matrix),) = numpy.load_file(tmp_path / "ours.safetensors").items()
    np.testing.assert_array_equal(matrix, vectors.matrix)
    others = {"bias": np.zeros(5, "f4"), "proj": np.zeros((3, 3), "f4"), "emb.weight": vectors.matrix.astype("f2")}
    numpy.save_file(others, tmp_path / "theirs.safetensors", {"format": "np"})
    (tmp_path / "theirs.words").write_text("\n".join(WORDS))
    assert_same(Vectors.read(tmp_path / "theirs.safetensors"), vectors)


def safetensors(size=8, **tensors):
    tensors = {name: dict(dtype=d, shape=s, data_offsets=[0, size]) for name, (d, s) in tensors.items()}
    header = json.dumps({"__metadata__": {"a": "b"}, **tensors}).encode()
    return len(header).to_bytes(8, "little") + header


def test_safetensors_are_memory_mapped_and_bfloat16_is_read(tmp_path):
    vectors = make()
    vectors.write(tmp_path / "some.safetensors")
    matrix = Vectors.read(tmp_path / "some.safetensors").matrix
    assert isinstance(matrix if isinstance(matrix, np.memmap) else matrix.base, np.memmap)
    upper = (vectors.matrix.view(np.uint32) >> 16).astype("<u2")
    (tmp_path / "some.safetensors").write_bytes(safetensors(30, x=("BF16", [5, 3])) + upper.tobytes())
    assert_same(Vectors.read(tmp_path / "some.safetensors"), vectors)


@pytest.mark.parametrize("data, part", [
    (b"", "not a whole safetensors"), (b"2 2\na 1 2\nb 1 2\n", "not a whole safetensors"),
    (safetensors(x=("F32", [2, 1]))[:-4], "not a whole safetensors"),
    (safetensors(x=("F32", [2, 1])) + bytes(7), "not a whole safetensors"),
    (safetensors(x=("I32", [2, 1])) + bytes(8), "has numbers of type 'I32'; save it as one of F16, F32, F64, BF16"),
    (safetensors(x=("F32", [3, 1])) + bytes(12), "0 of its matrices (x) have a row for each of the 2 words"),
    (safetensors(x=("F32", [2])) + bytes(8), "0 of its matrices (none)"),
    (safetensors(x=("F32", [2, 1]), y=("F32", [2, 1])) + bytes(8), "2 of its matrices (x, y)"),
    (safetensors(x=("F32", [2, 1])) + b"\0\0\0\0\0\0\xc0\x7f", "row 2: 'b' has a value"),
])  # fmt: skip
def test_rejects_invalid_safetensors(tmp_path, data, part):
    (tmp_path / "some.safetensors").write_bytes(data)
    (tmp_path / "some.words").write_text("a\nb\n")
    with pytest.raises(TiedtoolsError) as error:
        Vectors.read(tmp_path / "some.safetensors")
    assert str(error.value).startswith(f"{tmp_path}/some.safetensors: ") and part in str(error.value)


@pytest.mark.parametrize("rows, words, part", [
    ("1\t2\n3\n", "a\nb\n", "vectors.tsv:2: expected 2 numbers, found 1; correct the line"),
    ("1\t\n", "a\n", "vectors.tsv:1: is not tab-separated numbers; correct the line"),
    ("1\t2\n3\tx\n", "a\nb\n", "vectors.tsv:2: is not tab-separated numbers"),
    ("1\t2\n\n3\t4\n", "a\nb\n", "vectors.tsv:2: is not tab-separated numbers"),
    ("1\t2\n", "a\nb\n", "metadata.tsv: has 2 words"),
    ("1\t2\n3\tnan\n", "a\nb\n", "vectors.tsv: row 2: 'b' has a value"),
    ("1\t2\n", None, "vectors.tsv: has no list of words beside it; write one word per line to"),
    ("", "Word\tCount\n", "vectors.tsv: is empty"),
])  # fmt: skip
def test_rejects_invalid_tsv(tmp_path, rows, words, part):
    (tmp_path / "vectors.tsv").write_text(rows)
    if words:
        (tmp_path / "metadata.tsv").write_text(words)
    with pytest.raises(TiedtoolsError) as error:
        Vectors.read(tmp_path / "vectors.tsv")
    assert part in str(error.value) and "\n" not in str(error.value)


def test_the_words_of_another_matrix_are_not_overwritten(tmp_path):
    make().write(tmp_path / "some.npy")
    make().write(tmp_path / "some.safetensors")
    refused(lambda: make(["other"]).write(tmp_path / "some.safetensors"), "some.words: exists and has different words")
    assert_same(Vectors.read(tmp_path / "some.npy"), make())
    assert_same(Vectors.read(tmp_path / "some.safetensors"), make())


def test_vocabulary_files_keep_their_precedence(tmp_path):
    """A new .words file would take precedence over the .vocab file."""
    make().write(tmp_path / "some.npy")
    (tmp_path / "some.words").unlink()
    (tmp_path / "some.vocab").write_text("".join(f"{word} 5\n" for word in WORDS))
    refused(lambda: make(["other"]).write(tmp_path / "some.safetensors"), "some.vocab: exists and has different words")
    make().write(tmp_path / "some.safetensors")
    assert_same(Vectors.read(tmp_path / "some.npy"), make())
