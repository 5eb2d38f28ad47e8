"""Test analogies, alignment, and k-means."""

import json
import tracemalloc

import numpy as np
import pytest
from analogycase import by_definition, grid, questions
from scipy.linalg import orthogonal_procrustes

from tiedtools.vectors import neighbors
from tiedtools.vectors import neighbors as module
from tiedtools.vectors.edit import aligned_cosines, rotation, spherical_kmeans
from tiedtools.vectors.neighbors import Candidates, analogies, solve
from tiedtools.vectors.vectors import Vectors

TEXT = "6 3\nman 1 0 0\nwoman 1 1 0\nking 1 0 1\nqueen 1 1 1\nhat 0 0 1\nnull 0 0 0\n"


def assert_same(found, expected):
    assert [word for word, _ in found] == [word for word, _ in expected]
    assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=1e-5)


@pytest.mark.parametrize("method", module.METHODS)
@pytest.mark.parametrize("block", [1, 1 << 24])
def test_answers_match_the_definition(monkeypatch, method, block):
    monkeypatch.setattr(neighbors, "SCORES", block)
    vectors = grid()
    asked = [("x0", "y0", "x1"), ("y3", "x3", "other5"), ("x0", "y0", "x1"), ("x1", "x1", "y1")]
    found = analogies(Candidates(vectors), asked, 1000, method)
    for words, answers in zip(asked, found, strict=True):
        assert_same(answers, by_definition(vectors, words, method))
    # A single question is a product of another shape, which BLAS may round differently.
    (first,) = analogies(Candidates(vectors), asked[:1], 2, method)
    assert_same(first, found[0][:2])


def test_restricted_and_opposite_vectors():
    vectors = grid()
    (found,) = analogies(Candidates(vectors, 7), [("x0", "y0", "other9")], 1000)
    expected = [(word, score) for word, score in by_definition(vectors, ("x0", "y0", "other9")) if word in "x1y1x2y2x3"]
    assert_same(found, expected)
    # Cosines that rounding takes below -1 have the shifted value 0.
    matrix = np.array([[0.1, 0.7, 0.3], [-0.1, -0.7, -0.3], [1, 0, 0], [0, 0, 0]])
    vectors = Vectors(["a", "minus", "b", "null"], matrix)
    for words in (("a", "minus", "b"), ("minus", "a", "b"), ("b", "b", "a")):
        (found,) = analogies(Candidates(vectors), [words], 10, "mul")
        assert len(found) >= 1 and all(0 <= score < 1e4 for _, score in found)


@pytest.mark.filterwarnings("ignore:Call to deprecated")
def test_answers_match_gensim(monkeypatch):
    keyedvectors = pytest.importorskip("gensim.models.keyedvectors")
    monkeypatch.setattr(module, "EPSILON", 1e-6)  # gensim's; the paper's is 0.001
    vectors = grid()
    theirs = keyedvectors.KeyedVectors(vectors.dim)
    theirs.add_vectors(vectors.words, vectors.matrix)
    for a, b, c, _ in questions(0, 4):
        (found,) = analogies(Candidates(vectors), [(a, b, c)], 5)
        expected = theirs.most_similar(positive=[b, c], negative=[a], topn=5)
        assert [word for word, _ in found] == [word for word, _ in expected]
        # gensim's score is the cosine with the sum of the unit vectors, which differs by the norm of that sum.
        ratios = [score / cosine for (_, score), (_, cosine) in zip(found, expected)]
        assert ratios == pytest.approx([ratios[0]] * 5, rel=1e-4)
        (found,) = analogies(Candidates(vectors), [(a, b, c)], 5, "mul")
        assert_same(found, theirs.most_similar_cosmul(positive=[b, c], negative=[a], topn=5))


@pytest.mark.parametrize("method", module.METHODS)
@pytest.mark.parametrize("block, restrict", [(1, None), (24 * 5, None), (1 << 24, None), (24 * 5, 33), (1 << 24, 1)])
def test_solve_returns_the_best_answer_of_each_question(monkeypatch, method, block, restrict):
    vectors = grid()
    asked = [words[:3] for words in questions()] + [("x0", "x0", "x0")]
    candidates = Candidates(vectors, restrict)
    expected = analogies(candidates, asked, 1, method)
    monkeypatch.setattr(neighbors, "SCORES", block)
    rows = np.array([[vectors.index[word] for word in words] for words in asked])
    found = solve(candidates, rows, method).tolist()
    assert found == [vectors.index[best[0][0]] if best else -1 for best in expected]
    assert (-1 in found) == (restrict == 1)
    assert solve(candidates, rows[:0], method).tolist() == []
    vectors.matrix[vectors.index["x1"]] = np.nan  # never an answer
    expected = analogies(Candidates(vectors, restrict), asked, 1, method)
    found = solve(Candidates(vectors, restrict), rows, method).tolist()
    assert found == [vectors.index[best[0][0]] if best else -1 for best in expected]


def test_questions_are_answered_line_by_line(run, text):
    result = run("analogy", text, *"man woman king man king woman".split(), "-k", 1)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert [line[:4] for line in lines] == ["man woman king queen".split(), "man king woman queen".split()]
    # cos(queen, .) is 1 / sqrt 3 for man and 2 / sqrt 6 for both others.
    assert lines[0][4] == f"{4 / np.sqrt(6) - 1 / np.sqrt(3):.4f}"
    result = run("analogy", text, "man", "woman", "king", "--method", "mul", "-k", 1)
    half = (1 + 2 / np.sqrt(6)) / 2
    assert result.stdout.split()[4] == f"{half**2 / ((1 + 1 / np.sqrt(3)) / 2 + 0.001):.4f}"
    expected = run("analogy", text, *"man woman king king man hat".split()).stdout
    result = run("analogy", text, input=b"man woman  king \r\n\nking\tman\that")
    assert (result.exit_code, result.stdout, result.stderr) == (0, expected, "")
    assert run("analogy", "-", *"man woman king king man hat".split(), input=TEXT).stdout == expected
    result = run("analogy", text, "-k", 1, input=b"man woman\nman woman boy\nman woman king\n")
    assert result.exit_code == 1
    assert result.stdout.startswith("man\twoman\tking\tqueen\t") and result.stdout.count("\n") == 1
    assert result.stderr == f"tiedtools: 'man woman': give 3 words\ntiedtools: {text}: no vector for 'boy'\n"


def test_several_files(run, text, tmp_path):
    (other := tmp_path / "other.txt").write_text(TEXT.replace("queen", "duke!"))
    result = run("analogy", text, "man", "woman", "king", "queen", "king", "man", "-k", 1, "--json", "--with", other)
    one, two = map(json.loads, result.stdout.splitlines())
    assert result.exit_code == 1
    assert (one["vectors"], one["method"], one["top"], one["restrict"]) == (str(text), "add", 1, None)
    assert [list(x["analogies"]) for x in (one, two)] == [["man woman king", "queen king man"], ["man woman king"]]
    assert one["analogies"]["man woman king"][0][0] == "queen" and two["analogies"]["man woman king"][0][0] == "duke!"
    assert (one["unknown"], two["unknown"]) == ([], ["queen"])
    for options, given in ([], b"man woman king\n"), (["man", "woman", "king"], None):
        header, answer = run("analogy", text, "--with", other, "-k", 1, *options, input=given).stdout.splitlines()
        assert header == f"a\tb\tc\t{text}\tscore\t{other}\tscore"
        assert answer.split("\t")[3::2] == ["queen", "duke!"]


def test_rotations():
    rng = np.random.default_rng(1)
    one, two = rng.standard_normal((2, 30, 5), np.float32).astype(float)
    np.testing.assert_allclose(rotation(one, two), orthogonal_procrustes(two, one)[0])
    rng = np.random.default_rng(1)
    one = rng.standard_normal((30, 5))
    two = 3 * one @ np.linalg.qr(rng.standard_normal((5, 5)))[0]
    two[:4] = rng.standard_normal((4, 5))
    cosines = aligned_cosines(one, two, np.arange(30) >= 4)
    assert np.isnan(cosines[:4]).all() and np.isnan(aligned_cosines(one, two, np.zeros(30, bool))).all()
    np.testing.assert_allclose(cosines[4:], 1, atol=1e-6)


def plain(matrix, classes, iterations=10):
    assigned = [k % classes for k in range(len(matrix))]
    for _ in range(iterations):
        centers = []
        for c in range(classes):
            members = [row for row, a in zip(matrix, assigned) if a == c]
            mean = np.sum(members, axis=0) if members else np.full(matrix.shape[1], np.nan)
            centers.append(mean / np.linalg.norm(mean))
        assigned = [int(np.nanargmax([row @ center for center in centers])) for row in matrix]
    return assigned


def test_spherical_kmeans(monkeypatch):
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(np.arange(4), 25))
    classes = spherical_kmeans((10 * np.eye(4)[truth] + rng.normal(size=(100, 4))).astype(np.float32), 4)
    assert len(set(zip(truth.tolist(), classes.tolist()))) == 4
    assert sorted(spherical_kmeans(np.eye(3, dtype=np.float32), 3).tolist()) == [0, 1, 2]
    matrix = np.random.default_rng(0).normal(size=(5000, 2)).astype(np.float32)
    tracemalloc.start()
    spherical_kmeans(matrix, 5000, iterations=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    monkeypatch.setattr("tiedtools.vectors.edit.BLOCK", 7)
    for seed in range(5):
        matrix = np.random.default_rng(seed).normal(size=(60, 5)).astype(np.float32)
        assert spherical_kmeans(matrix, 6).tolist() == plain(matrix.astype(np.float64), 6)
