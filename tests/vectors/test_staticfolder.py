"""Test folders of static embeddings against model2vec, which reads and writes them, and the errors of damaged ones."""

import json
import os

import numpy as np
import pytest
from refusals import refused

from tiedtools.base.errors import TiedtoolsError
from tiedtools.vectors.check import Check
from tiedtools.vectors.vectors import Vectors

WORDS = ["the", "fox", "</s>", "é", "a\u00a0b", "##ing"]


def make(words=WORDS, E=4):
    return Vectors(list(words), np.random.default_rng(1).standard_normal((len(words), E)).astype(np.float32))


def assert_same(vectors, expected, dtype=np.float32):
    assert vectors.words == expected.words and vectors.matrix.dtype == dtype
    np.testing.assert_array_equal(vectors.matrix, expected.matrix.astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_model2vec_reads_equal_vectors(tmp_path, dtype):
    model2vec = pytest.importorskip("model2vec")
    vectors = make()
    vectors.write(f"{tmp_path}/m/", dtype=dtype)
    assert_same(Vectors.read(tmp_path / "m"), vectors, dtype)
    model = model2vec.StaticModel.from_pretrained(tmp_path / "m")
    found = model.encode(["The", "fox", "</s>", "é"])  # words that are all lower-case are looked up in lower case
    np.testing.assert_array_equal(found, vectors.matrix[:4].astype(dtype).astype(found.dtype))
    mean = vectors.matrix[:2].astype(dtype).astype(np.float32).mean(0)
    np.testing.assert_allclose(model.encode("unheard the of fox"), mean, rtol=1e-3 if dtype == "float16" else 1e-6)
    assert not model.encode("unheard of").any()
    Vectors(["The", *WORDS], np.ones((7, 2))).write(f"{tmp_path}/m/")  # with its case
    model = model2vec.StaticModel.from_pretrained(tmp_path / "m")
    assert model.encode("The").tolist() == [1, 1] and model.encode("Fox").tolist() == [0, 0]


def test_folders_that_model2vec_writes_are_read(tmp_path):
    model2vec = pytest.importorskip("model2vec")
    vectors = make()
    vectors.write(f"{tmp_path}/m/")
    model = model2vec.StaticModel.from_pretrained(tmp_path / "m")
    model.save_pretrained(tmp_path / "again")
    assert_same(Vectors.read(tmp_path / "again"), vectors)
    # A quantized vocabulary: tokens share rows, and each has a weight.
    rows, weights = np.array([0, 1, 1, 0, 2, 2, 2]), np.arange(7) / 2
    shared = model2vec.StaticModel(vectors.matrix[:3], model.tokenizer, weights=weights, token_mapping=rows)
    shared.save_pretrained(tmp_path / "shared")
    expected = (vectors.matrix[rows] * weights[:, None].astype(np.float32))[:7]
    assert_same(Vectors.read(tmp_path / "shared"), Vectors([*WORDS, "[UNK]"], expected))
    (tmp_path / "nested").mkdir()
    (tmp_path / "again").rename(tmp_path / "nested" / "0_StaticEmbedding")
    assert_same(Vectors.read(tmp_path / "nested"), vectors)


def test_the_unknown_word_is_no_word_unless_it_has_a_vector(tmp_path):
    vectors = make(["[UNK]", "a", "b", "a"])
    vectors.write(f"{tmp_path}/m/")
    assert_same(Vectors.read(tmp_path / "m"), Vectors(vectors.words[:3], vectors.matrix[:3]))  # of `a`, the first


def test_commands_read_and_write_folders(run, tmp_path):
    make(WORDS[:4]).write(tmp_path / "v.npy")
    assert run("convert", tmp_path / "v.npy", tmp_path / "m", "--to", "model2vec").exit_code == 0
    assert sorted(os.listdir(tmp_path / "m")) == [
        "config.json", "model.safetensors", "modules.json", "tokenizer.json",
    ]  # fmt: skip
    assert run("nn", tmp_path / "m", "fox").stdout == run("nn", tmp_path / "v.npy", "fox").stdout != ""
    assert run("check", tmp_path / "m").stdout.endswith("model2vec, 4 words of 4 numbers, all well\n")
    assert run("convert", tmp_path / "v.npy", tmp_path / "m", "--top", 2).exit_code == 0  # replaced
    assert Vectors.read(tmp_path / "m").words == WORDS[:2]
    result = run("convert", tmp_path / "v.npy", f"{tmp_path}/")
    assert result.exit_code == 1 and "directory of other files" in result.stderr
    same = run("convert", tmp_path / "m", f"{tmp_path}/m/")
    assert same.exit_code == 2 and "used as both input and output" in same.stderr


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
    make().write(f"{tmp_path}/m/")
    damage(tmp_path / "m")
    with pytest.raises(TiedtoolsError, match=f"^{tmp_path}/m") as error:
        Vectors.read(tmp_path / "m")
    assert "\n" not in str(error.value)
    assert list(Check(f"{tmp_path}/m").problems) == ["unreadable"]


def test_a_failed_write_leaves_the_earlier_folder(tmp_path):
    make().write(f"{tmp_path}/m/")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    for words in (["a b"], [""]):
        refused(lambda: make(words).write(f"{tmp_path}/m/"))
    refused(lambda: Vectors(["a"], [[1e5]]).write(f"{tmp_path}/m/", dtype="float16"), "too large for float16")
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before
