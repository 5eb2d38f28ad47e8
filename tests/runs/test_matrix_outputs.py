"""Test that training writes matrices with word lists: equal to the text, mapped, recorded, and never over others."""

import json

import numpy as np
import pytest
from refusals import refused

from tiedtools.base.errors import Contradiction
from tiedtools.vectors.vectors import Vectors, trained_format

TEXT = "a b c d e f the fox jumps over the lazy dog\n" * 30
TRAINERS = {
    "w2v": ["-size", 8, "-iter", 1, "-min-count", 1],
    "rnnlm": ["-hidden", 8, "-class", 3, "--epochs", 1],
    "lstm": ["--emb", 8, "--hidden", 8, "--layers", 1, "--epochs", 1, "--batch", 2, "--steps", 5],
}


@pytest.mark.parametrize("command", TRAINERS)
def test_matrices_have_the_vectors_of_the_text(run, tmp_path, command):
    (tmp_path / "t").write_text(TEXT)
    text = [tmp_path / "t"] if command == "w2v" else ["-train", tmp_path / "t"]
    for name in "v.txt", "n.npy", "s.safetensors":
        result = run(command, *TRAINERS[command], "--threads", 1, *text, "-output", tmp_path / name)
        assert result.exit_code == 0, result.stderr
    expected = Vectors.read(tmp_path / "v.txt")
    for name, words in ("n.npy", "n.words"), ("s.safetensors", "s.words"):
        vectors = Vectors.read(tmp_path / name)
        assert vectors.words == expected.words and isinstance(vectors.matrix.base, np.memmap)
        np.testing.assert_allclose(vectors.matrix, expected.matrix, atol=1e-6)
        recorded = json.loads((tmp_path / f"{name}.run.json").read_text())["outputs"]
        assert [output["path"] for output in recorded] == [str(tmp_path / name), str(tmp_path / words)]


def test_a_word_list_of_another_matrix_is_not_replaced(run, tmp_path):
    (tmp_path / "t").write_text(TEXT)
    train = "w2v", *TRAINERS["w2v"], tmp_path / "t", "-output"
    (tmp_path / "v.words").write_text("mine\n")
    result = run(*train, tmp_path / "v.npy")
    assert result.exit_code == 1 and "v.words: exists" in result.stderr and not (tmp_path / "v.npy").exists()
    (tmp_path / "v.words").unlink()
    for _ in range(2):  # its own list is
        assert run(*train, tmp_path / "v.npy").exit_code == 0
    assert run(*train, tmp_path / "v.safetensors").exit_code == 1
    assert (tmp_path / "v.words").read_text().count("\n") == len(Vectors.read(tmp_path / "v.npy"))


def test_names_that_are_no_vectors_are_refused(run, tmp_path):
    assert [trained_format(name) for name in (None, "-", "v.dat", "v.npy", "v.tsv")] == [*["text"] * 3, "npy", "tsv"]
    assert trained_format("v.dat", binary=True) == "binary"
    for name in "v.npz", "folder/", str(tmp_path):
        refused(lambda: trained_format(name), kind=Contradiction)
    (tmp_path / "t").write_text(TEXT)
    result = run("w2v", tmp_path / "t", "-output", tmp_path / "v.npy", "-classes", 3)
    assert result.exit_code == 2 and "would be read as .npy" in result.stderr
