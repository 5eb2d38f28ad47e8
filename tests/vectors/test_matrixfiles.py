"""Test matrices in files of their own: .npy, safetensors, folders of static embeddings, and float16."""

import json
import os
import re
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from common import refused

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation.similarity import SimilaritySet, judge
from tiedtools.vectors import norms, streams
from tiedtools.vectors.check import Check
from tiedtools.vectors.neighbors import Candidates, neighbors
from tiedtools.vectors.vectors import Vectors

WORDS = ["a\u00a0b", "\u2028", "3", "é", "</s>"]


def make(words=WORDS, E=3, seed=0):
    # Multiples of 0.5, which six decimals represent exactly.
    return Vectors(list(words), np.random.default_rng(seed).integers(-9, 9, (len(words), E)) / 2)


def assert_same(vectors, expected, dtype=np.float32):
    assert vectors.words == expected.words and vectors.matrix.dtype == dtype
    np.testing.assert_array_equal(vectors.matrix, expected.matrix.astype(dtype))


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


def test_files_of_tensorboards_projector(tmp_path):
    make().write(tmp_path / "some", "tsv")
    make().write(tmp_path / "some", "safetensors")
    assert sorted(os.listdir(tmp_path)) == ["some.metadata.tsv", "some.safetensors", "some.tsv", "some.words"]
    Vectors(["a", "b"], [[0.5, -1], [2, 1e10]]).write(tmp_path / "vectors.tsv")
    assert (tmp_path / "vectors.tsv").read_text() == "0.500000\t-1.000000\n2.000000\t10000000000.000000\n"
    assert (tmp_path / "metadata.tsv").read_text() == "a\nb\n"
    (tmp_path / "vectors.tsv").write_text("1\t2\n3\t4e0\n")
    (tmp_path / "metadata.tsv").write_text("word\tcount\na\t5\nb c\t3\n")
    assert_same(Vectors.read(tmp_path / "vectors.tsv"), Vectors(["a", "b c"], [[1, 2], [3, 4]]))
    Vectors(["a", "b c"], [[1, 2], [3, 5]]).write(tmp_path / "vectors.tsv")  # keeps other columns
    assert (tmp_path / "metadata.tsv").read_text() == "word\tcount\na\t5\nb c\t3\n"
    make().write(tmp_path / "some.safetensors.npy")
    (tmp_path / "some.words").write_text("words\nof\nanother\n")
    assert_same(Vectors.read(tmp_path / "some.safetensors.npy"), make())


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


def safetensors(size=8, **tensors):
    tensors = {name: dict(dtype=d, shape=s, data_offsets=[0, size]) for name, (d, s) in tensors.items()}
    header = json.dumps({"__metadata__": {"a": "b"}, **tensors}).encode()
    return len(header).to_bytes(8, "little") + header


def test_safetensors_are_mapped_and_compatible_with_the_library(tmp_path):
    vectors = make()
    vectors.write(tmp_path / "some.safetensors")
    matrix = Vectors.read(tmp_path / "some.safetensors").matrix
    assert isinstance(matrix if isinstance(matrix, np.memmap) else matrix.base, np.memmap)
    upper = (vectors.matrix.view(np.uint32) >> 16).astype("<u2")
    (tmp_path / "some.safetensors").write_bytes(safetensors(30, x=("BF16", [5, 3])) + upper.tobytes())
    assert_same(Vectors.read(tmp_path / "some.safetensors"), vectors)
    numpy = pytest.importorskip("safetensors.numpy")
    vectors.write(tmp_path / "ours.safetensors")
    ((_, matrix),) = numpy.load_file(tmp_path / "ours.safetensors").items()
    np.testing.assert_array_equal(matrix, vectors.matrix)
    others = {"bias": np.zeros(5, "f4"), "proj": np.zeros((3, 3), "f4"), "emb.weight": vectors.matrix.astype("f2")}
    numpy.save_file(others, tmp_path / "theirs.safetensors", {"format": "np"})
    (tmp_path / "theirs.words").write_text("\n".join(WORDS))
    assert_same(Vectors.read(tmp_path / "theirs.safetensors"), vectors, np.float16)


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
    refused(lambda: Vectors.read(tmp_path / "vectors.tsv"), part)


def test_word_lists_of_other_matrices_are_kept(tmp_path):
    make().write(tmp_path / "some.npy")
    make().write(tmp_path / "some.safetensors")
    refused(lambda: make(["other"]).write(tmp_path / "some.safetensors"), "some.words: exists and has different words")
    assert_same(Vectors.read(tmp_path / "some.npy"), make())
    assert_same(Vectors.read(tmp_path / "some.safetensors"), make())
    (tmp_path / "link.metadata.tsv").symlink_to("some.words")
    refused(lambda: make(["other"]).write(tmp_path / "link.tsv"), "link.metadata.tsv: exists and has different words")
    # A new .words file would take precedence over the .vocab file.
    make().write(tmp_path / "some.npy")
    (tmp_path / "some.words").unlink()
    (tmp_path / "some.vocab").write_text("".join(f"{word} 5\n" for word in WORDS))
    refused(lambda: make(["other"]).write(tmp_path / "some.safetensors"), "some.vocab: exists and has different words")
    make().write(tmp_path / "some.safetensors")
    make().write(tmp_path / "target.npy")  # both files of an output may be links
    (tmp_path / "pair.npy").symlink_to("target.npy"), (tmp_path / "pair.words").symlink_to("target.words")
    make(["other"]).write(tmp_path / "pair.npy")
    assert_same(Vectors.read(tmp_path / "some.npy"), make())


TOKENS = ["the", "fox", "</s>", "é", "a\u00a0b", "##ing"]


def tokens(words=TOKENS, E=4):
    return Vectors(list(words), np.random.default_rng(1).standard_normal((len(words), E)).astype(np.float32))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_model2vec_reads_equal_vectors(tmp_path, dtype):
    model2vec = pytest.importorskip("model2vec")
    vectors = tokens()
    vectors.write(f"{tmp_path}/m/", dtype=dtype)
    assert_same(Vectors.read(tmp_path / "m"), vectors, dtype)
    model = model2vec.StaticModel.from_pretrained(tmp_path / "m")
    found = model.encode(["The", "fox", "</s>", "é"])  # words that are all lower-case are looked up in lower case
    np.testing.assert_array_equal(found, vectors.matrix[:4].astype(dtype).astype(found.dtype))
    mean = vectors.matrix[:2].astype(dtype).astype(np.float32).mean(0)
    np.testing.assert_allclose(model.encode("unheard the of fox"), mean, rtol=1e-3 if dtype == "float16" else 1e-6)
    assert not model.encode("unheard of").any()
    Vectors(["The", *TOKENS], np.ones((7, 2))).write(f"{tmp_path}/m/")  # with its case
    model = model2vec.StaticModel.from_pretrained(tmp_path / "m")
    assert model.encode("The").tolist() == [1, 1] and model.encode("Fox").tolist() == [0, 0]


def test_folders_that_model2vec_writes_are_read(tmp_path):
    model2vec = pytest.importorskip("model2vec")
    vectors = tokens()
    vectors.write(f"{tmp_path}/m/")
    model = model2vec.StaticModel.from_pretrained(tmp_path / "m")
    model.save_pretrained(tmp_path / "again")
    assert_same(Vectors.read(tmp_path / "again"), vectors)
    # A quantized vocabulary: tokens share rows, and each has a weight.
    rows, weights = np.array([0, 1, 1, 0, 2, 2, 2]), np.arange(7) / 2
    shared = model2vec.StaticModel(vectors.matrix[:3], model.tokenizer, weights=weights, token_mapping=rows)
    shared.save_pretrained(tmp_path / "shared")
    expected = (vectors.matrix[rows] * weights[:, None].astype(np.float32))[:7]
    assert_same(Vectors.read(tmp_path / "shared"), Vectors([*TOKENS, "[UNK]"], expected))
    (tmp_path / "nested").mkdir()
    (tmp_path / "again").rename(tmp_path / "nested" / "0_StaticEmbedding")
    assert_same(Vectors.read(tmp_path / "nested"), vectors)
    refused(lambda: vectors.write(f"{tmp_path}/nested/"), "is a directory of other files")


def test_unknown_words_and_failed_writes_of_folders(tmp_path):
    vectors = tokens(["[UNK]", "a", "b", "a"])
    vectors.write(f"{tmp_path}/m/")
    assert_same(Vectors.read(tmp_path / "m"), Vectors(vectors.words[:3], vectors.matrix[:3]))  # of `a`, the first
    tokens().write(f"{tmp_path}/m/")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    for words in (["a b"], [""]):
        refused(lambda: tokens(words).write(f"{tmp_path}/m/"))
    refused(lambda: Vectors(["a"], [[1e5]]).write(f"{tmp_path}/m/", dtype="float16"), "too large for float16")
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before


def test_commands_read_and_write_folders(run, tmp_path):
    tokens(TOKENS[:4]).write(tmp_path / "v.npy")
    assert run("convert", tmp_path / "v.npy", tmp_path / "m", "--to", "model2vec").exit_code == 0
    assert {*os.listdir(tmp_path / "m")} == {"config.json", "model.safetensors", "modules.json", "tokenizer.json"}
    assert run("nn", tmp_path / "m", "fox").stdout == run("nn", tmp_path / "v.npy", "fox").stdout != ""
    assert run("check", tmp_path / "m").stdout.endswith("model2vec, 4 words of 4 numbers, all well\n")
    assert run("convert", tmp_path / "v.npy", tmp_path / "m", "--top", 2).exit_code == 0  # replaced
    assert Vectors.read(tmp_path / "m").words == TOKENS[:2]
    run.fails(1, "directory of other files", "convert", tmp_path / "v.npy", f"{tmp_path}/")
    run.fails(2, "used as both input and output", "convert", tmp_path / "m", f"{tmp_path}/m/")


def damaged(**changes):
    def damage(folder):
        path = folder / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        tokenizer["model"] |= changes
        path.write_text(json.dumps(tokenizer))

    return damage


@pytest.mark.parametrize("damage", [
    lambda folder: (folder / "tokenizer.json").unlink(), lambda folder: (folder / "tokenizer.json").write_text("[]"),
    lambda folder: (folder / "model.safetensors").write_bytes(b"\x09"),
    lambda folder: (folder / "model.safetensors").unlink(), damaged(vocab={"a": 0, "b": 2}), damaged(vocab={"a": 0}),
    damaged(vocab={"a": None}), damaged(vocab=[1, 2]),
])  # fmt: skip
def test_damaged_folders_are_reported_in_one_line(tmp_path, damage):
    tokens().write(f"{tmp_path}/m/")
    damage(tmp_path / "m")
    with pytest.raises(TiedtoolsError, match=f"^{tmp_path}/m") as error:
        Vectors.read(tmp_path / "m")
    assert "\n" not in str(error.value)
    assert list(Check(f"{tmp_path}/m").problems) == ["unreadable"]


def halves(V=500, E=30):
    matrix = np.random.default_rng(2).standard_normal((V, E)).astype(np.float16)
    return Vectors([f"w{k}" for k in range(V)], matrix)


def test_float16_is_widened_exactly_and_not_copied(tmp_path, monkeypatch):
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    expected = half.astype(np.float32)
    (found,) = (rows for _, rows in norms.blocks(half, half.size))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found.view(np.uint32)[finite], expected.view(np.uint32)[finite])
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    assert norms.finite_rows(half).tolist() == finite.all(1).tolist()
    monkeypatch.setattr(norms, "BLOCK", 1 << 14)
    halves(5000, 200).write(tmp_path / "v.npy", dtype="float16")  # 2 MB
    tracemalloc.start()
    vectors = Vectors.read(tmp_path / "v.npy")
    neighbors(Candidates(vectors), ["w1"], 3)
    judge(vectors, SimilaritySet("", "", [("w1", "w2"), ("w3", "none")], np.arange(2.0)), "mean")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < vectors.matrix.nbytes


@pytest.mark.parametrize("name", ["v.npy", "v.safetensors"])
def test_results_are_those_of_float32(tmp_path, monkeypatch, name):
    monkeypatch.setattr(norms, "BLOCK", 1000)
    vectors = halves()
    vectors.write(tmp_path / name, dtype="float16")
    half = Vectors.read(tmp_path / name)
    assert half.matrix.dtype == np.float16 and isinstance(half.matrix.base, np.memmap)
    np.testing.assert_array_equal(half.matrix, vectors.matrix)
    whole = Vectors(half.words, half.matrix.astype(np.float32))
    for asked in ["w3", "w7 - w9"], half.words[:20]:  # few, and more than few
        for one, two in zip(*(neighbors(Candidates(v), asked, 5) for v in (half, whole)), strict=True):
            assert [word for word, _ in one] == [word for word, _ in two]
            assert [cosine for _, cosine in one] == pytest.approx([cosine for _, cosine in two], abs=1e-6)
    pairs = SimilaritySet("", "", [("w1", "w2"), ("w4", "none")], np.arange(2.0))
    for oov in "skip", "mean":
        np.testing.assert_allclose(judge(half, pairs, oov).cosines, judge(whole, pairs, oov).cosines, rtol=1e-6)
    assert half["w1"].dtype == np.float32 and half.similarity("w1", "w2") == pytest.approx(whole.similarity("w1", "w2"))
    half.write(tmp_path / "v.txt")
    assert np.abs(Vectors.read(tmp_path / "v.txt").matrix - whole.matrix).max() < 1e-6


def test_float16_is_refused_if_too_small_and_read_by_the_library(run, tmp_path):
    Vectors(["a", "b"], [[1, 65519], [1, -65520]]).write(tmp_path / "v.txt")
    for target, options, part in (
        ("h.npy", [], "word 2: 'b' has a value too large for float16"),
        ("h.npy", ["--top", 1], None),
        ("h.bin", [], "--dtype float16: format binary has only float32"),
    ):
        result = run("convert", tmp_path / "v.txt", tmp_path / target, "--dtype", "float16", *options)
        assert (result.exit_code != 0) == bool(part) and (part or "") in result.stderr
    assert Vectors.read(tmp_path / "h.npy").matrix.tolist() == [[1, 65504]]
    numpy = pytest.importorskip("safetensors.numpy")
    halves().write(tmp_path / "v.safetensors", dtype="float16")
    ((_, matrix),) = numpy.load_file(tmp_path / "v.safetensors").items()
    np.testing.assert_array_equal(matrix, halves().matrix)
    halves().write(tmp_path / "v.npy", dtype="float16")
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), halves().matrix)


@pytest.mark.parametrize("command", [["check", "v.npy"], ["nn", "v.npy", "w1"], ["nn", "m", "w1"]])
def test_mapped_matrices_need_no_compiled_code(tmp_path, command):
    halves().write(tmp_path / "v.npy", dtype="float16")
    halves().write(f"{tmp_path}/m/")
    code = "import sys; from tiedtools.cli import cli\ntry: cli(sys.argv[1:])\nfinally: print('numba' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code, *command], cwd=tmp_path, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "False", result.stderr
