"""Vectors from Python: queries, gensim, and evaluation."""

import json

import numpy as np
import pytest
from refusals import refused

import tiedtools as tt

WORDS = ["king", "queen", "man", "woman", "apple"]


@pytest.fixture
def vectors():
    return tt.Vectors(WORDS, np.random.default_rng(3).standard_normal((5, 4)))


def cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_similarity(vectors):
    assert vectors.similarity("king", "man") == pytest.approx(cosine(vectors["king"], vectors["man"]), abs=1e-6)
    assert vectors.similarity("king", "king") == pytest.approx(1) and "king" in vectors and "kings" not in vectors


def test_most_similar_by_definition(vectors):
    unit = {word: vectors[word] / np.linalg.norm(vectors[word]) for word in WORDS}
    total = unit["king"] - unit["man"] + unit["woman"]
    expected = sorted(((cosine(total, unit[word]), word) for word in ("queen", "apple")), reverse=True)
    for positive in ["king", "woman"], [unit["king"], "woman"], (word for word in ("king", "woman")):
        found = dict(vectors.most_similar(positive, "man"))
        assert found["queen"] == pytest.approx(next(c for c, w in expected if w == "queen"), abs=1e-6)
        assert "man" not in found and "woman" not in found
    assert [word for word, _ in vectors.most_similar(["king", "woman"], ["man"])] == [word for _, word in expected]


def test_a_vector_has_neighbors(vectors):
    assert vectors.most_similar(vectors["king"], topn=1)[0] == ("king", pytest.approx(1))
    assert vectors.most_similar(negative="king", topn=1)[0][1] == pytest.approx(
        max(-vectors.similarity("king", word) for word in WORDS[1:]), abs=1e-6
    )
    assert vectors.most_similar() == [] and len(vectors.most_similar("king", topn=100, restrict=3)) == 2


def test_a_repeated_word_counts_once():
    vectors = tt.Vectors(["a", "b", "a", "c"], np.eye(4) + 0.5)
    assert [word for word, _ in vectors.most_similar("b")] == ["a", "c"]


@pytest.mark.parametrize("method", ["add", "mul"])
def test_analogies_are_those_of_the_command(tmp_path, run, vectors, method):
    vectors.write(tmp_path / "v")
    printed = run("analogy", tmp_path / "v", "man", "king", "woman", "--method", method).stdout_bytes.decode()
    found = tt.Vectors.read(tmp_path / "v").analogy("man", "king", "woman", method=method)
    assert printed == "".join(f"man\tking\twoman\t{word}\t{score:.4f}\n" for word, score in found)


@pytest.mark.parametrize("query", [
    lambda v: v["kings"], lambda v: v.similarity("king", "kings"), lambda v: v.most_similar("kings"),
    lambda v: v.analogy("a", "king", "man"),
])  # fmt: skip
def test_unknown_words(vectors, query):
    with pytest.raises(KeyError, match="no vector for '(kings|a)'"):
        query(vectors)


def test_gensim_without_files(vectors):
    pytest.importorskip("gensim")
    keyed = vectors.to_gensim()
    assert keyed.index_to_key == WORDS and keyed.most_similar("king")[0][0] == vectors.most_similar("king")[0][0]
    keyed.vectors[:] = 0
    assert vectors.matrix.any()
    keyed = vectors.to_gensim()
    for source in keyed, type("Model", (), {"wv": keyed}):
        back = tt.Vectors.from_gensim(source)
        assert back.words == WORDS
        np.testing.assert_array_equal(back.matrix, vectors.matrix)


def write_sets(folder):
    (folder / "pairs").write_text("king queen 9\nking man 7\nking apple 1\nman apple 2\nman kings 3\n")
    (folder / "questions").write_text(": gender\nman king woman queen\nman woman king queen\nman king woman boy\n")


def test_similarity_sets(tmp_path, run, vectors):
    write_sets(tmp_path)
    other = tt.Vectors(WORDS, np.random.default_rng(5).standard_normal((5, 4)))
    for name, some in ("a", vectors), ("b", other):
        some.write(tmp_path / name)
    pairs, files = str(tmp_path / "pairs"), [tmp_path / "b", tmp_path / "a"]
    printed = json.loads(run("eval-sim", *files, "--set", pairs, "--json").stdout_bytes)
    found = tt.evaluate_similarity(tmp_path / "a", [pairs], against=tmp_path / "b")
    assert found["sets"] == printed["results"][1]["sets"] and found["mean_rho"] == printed["results"][1]["mean_rho"]
    expected = [{name: value for name, value in line.items() if name != "file"} for line in printed["differences"]]
    assert found["differences"] == expected
    alone = tt.evaluate_similarity(vectors, [pairs], bootstrap=0)
    assert "differences" not in alone and alone["sets"][0]["covered"] == 4 and alone["mean_low"] is None


def test_analogy_sets(tmp_path, run, vectors):
    write_sets(tmp_path)
    vectors.write(tmp_path / "v")
    questions = str(tmp_path / "questions")
    printed = json.loads(run("eval-analogy", tmp_path / "v", "--set", questions, "--json").stdout_bytes)
    found = tt.evaluate_analogies(tmp_path / "v", questions)
    assert found["sections"] == printed["results"][0]["sections"]
    against = tt.evaluate_analogies(vectors, questions, against=vectors, method="mul")
    assert {line["difference"] for line in against["differences"]} == {0.0}


def test_models_are_evaluated_by_their_vectors(tmp_path):
    write_sets(tmp_path)
    model = tt.Word2Vec(size=4, epochs=1, min_count=1, threads=1).fit([WORDS] * 50)
    model.save(tmp_path / "m.npz")
    by_model, by_file, by_vectors = (
        tt.evaluate_similarity(source, [str(tmp_path / "pairs")])
        for source in (model, tmp_path / "m.npz", model.vectors)
    )
    assert by_model == by_file == by_vectors


def test_missing_sets(vectors):
    refused(lambda: tt.evaluate_similarity(vectors, ["nothing"]), "no such file or data set")
