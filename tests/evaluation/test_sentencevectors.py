"""Test mean and SIF sentence vectors against the equations of Arora et al. 2017, and in `docvec` and `similar`."""

import json

import numpy as np
import pytest
from refusals import refused

import tiedtools as tt
from tiedtools.base.errors import Contradiction

RNG = np.random.default_rng(3)
WORDS = ["</s>", "a", "b", "c", "d", "é"]
VECTORS = tt.Vectors(WORDS, RNG.standard_normal((6, 5)) + 1)
TEXT = [["a", "b", "zebra", "a"], [], ["c"], ["d", "a", "é"], ["zebra"], ["b", "é", "é"]]
A = 0.05


def known(sentence, words=VECTORS):
    return [word for word in sentence if word in words and word != "</s>"]


def plain(text, first=TEXT, a=A):
    """Return SIF vectors by algorithm 1 of Arora et al., with p(w) and the component of the `first` text."""
    flat = [word for sentence in first for word in known(sentence)]
    weigh = lambda word: 1 if a is None else a / (a + flat.count(word) / len(flat))

    def means(text):
        rows = [[weigh(word) * VECTORS[word] for word in known(sentence)] for sentence in text]
        return np.array([np.mean(row, 0) if row else np.zeros(5) for row in rows])

    if a is None:
        return means(text)
    u = np.linalg.svd(means(first))[2][0]
    return means(text) @ (np.eye(5) - np.outer(u, u))


@pytest.fixture
def vectors(tmp_path):
    VECTORS.write(tmp_path / "vectors.txt")
    return tmp_path / "vectors.txt"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text"
    path.write_text("".join(" ".join(sentence) + "\n" for sentence in TEXT))
    return path


@pytest.mark.parametrize("a", [None, A])
def test_against_the_equations(a):
    sentences = tt.SentenceVectors(VECTORS, a)
    other = [["é", "a"], ["zebra"], ["d"]]
    np.testing.assert_allclose(sentences.fit(TEXT).transform(TEXT), plain(TEXT, a=a), atol=1e-5)
    np.testing.assert_allclose(sentences.transform(other), plain(other, a=a), atol=1e-5)
    again = tt.SentenceVectors(sentences.word_vectors).transform(other)
    np.testing.assert_allclose(again, sentences.transform(other), atol=1e-5)


def test_errors():
    refused(lambda: tt.SentenceVectors(VECTORS, A).transform(TEXT), "fit")
    refused(lambda: tt.SentenceVectors(VECTORS, 0), kind=Contradiction)


def test_docvec(run, tmp_path, vectors, text):
    output, saved = tmp_path / "x.npy", tmp_path / "sif.txt"
    assert "2 words outside" in run("docvec", vectors, text, "--output", output).stderr
    np.testing.assert_allclose(np.load(output), plain(TEXT, a=None), atol=1e-5)
    assert run("docvec", vectors, text, "--sif", A, "--save", saved, "--output", output).exit_code == 0
    np.testing.assert_allclose(np.load(output), plain(TEXT), atol=1e-5)
    found = [json.loads(line) for line in run("docvec", saved, "--json", input="é a\n\n".encode()).stdout.splitlines()]
    assert [line["text"] for line in found] == ["é a", ""]
    np.testing.assert_allclose([line["vector"] for line in found], plain([["é", "a"], []]), atol=1e-5)
    documents = run("docvec", vectors, text, "--unit", "doc", "--json").stdout.splitlines()
    assert [json.loads(line)["text"] for line in documents] == ["a b zebra a", "c"]
    merged = [TEXT[0], [word for line in TEXT[2:] for word in line]]
    np.testing.assert_allclose([json.loads(x)["vector"] for x in documents], plain(merged, a=None), atol=1e-5)
    assert run("docvec", vectors, text, "--save", saved).exit_code == 2


@pytest.mark.parametrize("a", [None, A])
def test_similar(run, vectors, text, a):
    options = [] if a is None else ["--sif", a]
    result = run("similar", vectors, text, "--query", "é zebra b", "--line", 3, "--json", "--top", 2, *options)
    assert "query 'é zebra b': unknown words: 'zebra'" in result.stderr
    matrix = plain([*TEXT, ["é", "b"]], a=a)
    cosines = matrix @ matrix.T / np.maximum(np.outer(*[np.linalg.norm(matrix, axis=1)] * 2), 1e-30)
    for query, row in zip(json.loads(result.stdout)["queries"], (6, 2)):
        order = [k for k in np.argsort(-cosines[row][:6], kind="stable") if k != row][:2]
        assert [line["line"] - 1 for line in query["similar"]] == order
        np.testing.assert_allclose([line["cosine"] for line in query["similar"]], cosines[row][order], atol=1e-5)
