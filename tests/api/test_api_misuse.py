"""Misuse from Python raises one clear error, before training where possible."""

import functools
import io
import math

import numpy as np
import pytest
from refusals import refused

import tiedtools as tt

SENTENCES = [["the", "cat", "sat", "on", "the", "mat"], ["a", "dog", "ran"]] * 20
SMALL = dict(size=4, epochs=2, threads=1, min_count=1, sample=0)


@pytest.fixture(scope="module")
def vectors():
    return tt.Vectors(["king", "queen", "man", "woman"], np.random.default_rng(3).standard_normal((4, 3)))


@pytest.fixture(scope="module")
def lm():
    return tt.LanguageModel("rnnlm", size=4, epochs=2).fit(SENTENCES)


def assert_refused(call, **wrong):
    """Check that `call` refuses each value of `wrong`, alone, and that the message names it with its value."""
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(tt.TiedtoolsError) as error:
                call(**{name: value})
            assert str(error.value).startswith((f"`{name}={value!r}` must be ", f"`{name}={value!r}` is not ")), name


def test_wrong_arguments_of_fit():
    assert_refused(
        lambda **given: tt.Word2Vec(**SMALL).fit(SENTENCES, **{"output": "x", **given}),
        output=[True, io.BytesIO()], write=["both"], resume=["yes"], checkpoint_minutes=[math.nan], classes=[-1, 2.5],
        on_epoch=[3], on_timer=[3], progress=["bar"], timer_seconds=[math.nan, "1"],
    )  # fmt: skip
    refused(lambda: tt.Word2Vec(**SMALL).fit(SENTENCES, outptu="x"), "unknown setting `outptu`;", kind=tt.Contradiction)


def test_a_closed_file():
    file = io.StringIO("the cat\n")
    file.close()
    refused(lambda: tt.Word2Vec(**SMALL).fit(file), "file: is closed; give an open file")


def test_several_validation_and_test_texts(tmp_path):
    """A list of paths reads like a single file with their contents."""
    names = [tmp_path / "a", tmp_path / "b", tmp_path / "both"]
    for path, text in zip(names, ["the cat sat\n", "a dog ran\n", "the cat sat\na dog ran\n"]):
        path.write_text(text)
    one, other = (
        tt.LanguageModel("rnnlm", size=4, epochs=2).fit(SENTENCES, valid=text, test=text)
        for text in (names[:2], names[2])
    )
    assert [epoch["valid_ppl"] for epoch in one.history] == [epoch["valid_ppl"] for epoch in other.history]


@pytest.mark.parametrize("no", [False, np.False_])
def test_a_callback_stops_training_with_false(no):
    called = []
    model = tt.LanguageModel("rnnlm", size=4, epochs=9)
    model.fit(SENTENCES, on_epoch=lambda figures: called.append(figures) or no)
    assert len(called) == len(model.history) == 1
    model.fit(SENTENCES, on_epoch=lambda figures: 0)
    assert len(model.history) == 9


def test_a_callback_is_not_called_after_it_has_stopped_training():
    """More epochs of a tiny text may be done by then."""
    called = []
    tt.Word2Vec(**SMALL | dict(epochs=50)).fit(SENTENCES, on_epoch=lambda figures: called.append(figures) or False)
    assert len(called) == 1


def test_a_callback_cannot_change_the_history():
    model = tt.Word2Vec(**SMALL).fit(SENTENCES, on_epoch=dict.clear)
    assert [epoch["epoch"] for epoch in model.history] == [1, 2]


def test_wrong_queries(vectors):
    for query in 3, None, b"king", [("king", 1.0)], np.ones(2), [np.ones((1, 3))]:
        refused(lambda: vectors.most_similar(query), "expected a word or a vector of 3 numbers, found ")
    assert_refused(functools.partial(vectors.most_similar, "king"), topn=[-1, 2.5], restrict=[0])
    assert_refused(functools.partial(vectors.analogy, "king", "man", "queen"), topn=[None], method=["sub"])
    assert_refused(functools.partial(vectors.write, "x"), format=["word2vec"])
    refused(lambda: tt.Vectors.from_gensim({"king": [1]}), "expected gensim KeyedVectors, ", " found dict")


def test_queries_at_the_limits(vectors):
    assert vectors.most_similar("king", topn=0) == [] and len(vectors.most_similar("king", topn=10**12)) == 3
    assert {cosine for _, cosine in vectors.most_similar(np.zeros(3, int))} == {0.0}
    assert list(vectors) == vectors.words


def test_wrong_arguments_of_language_models(lm):
    """`generate` raises when it is called, not when its first sentence is requested."""
    assert_refused(functools.partial(lm.next_words, "the"), top=[-1, None])
    wrong = dict(sentences=[0, -1], words=[0], temperature=[math.nan], top_k=[0], seed=[-1])
    assert_refused(lm.generate, **wrong)
    for scored in lm.score, lm.perplexity:
        assert_refused(functools.partial(scored, SENTENCES), batch=[0, -1])
    assert_refused(
        lambda **given: lm.with_cache(**{"cache": 9, **given}),
        cache=[-1, 9.5], cache_theta=[math.nan], cache_lambda=[1],
    )  # fmt: skip
    assert_refused(lm.word_vectors, which=["input"])
    refused(lambda: lm.perplexity([]), "is empty; give a text")


def test_wrong_arguments_of_evaluations(tmp_path, vectors):
    path = tmp_path / "set"
    path.write_text("king queen 9\nman woman 7\n")
    similarity = functools.partial(tt.evaluate_similarity, vectors, [path])
    assert_refused(similarity, oov=["drop"], bootstrap=[-1], seed=[-1], data=["none"])
    assert_refused(
        functools.partial(tt.evaluate_analogies, vectors, path), method=["sub"], case=["upper"], restrict=[-1]
    )
    for wrong, problem in (
        (lambda: tt.evaluate_similarity({"king": 1}, [path]), "expected Vectors, a trained model, or a path, found"),
        (lambda: similarity(against=3), "found int"),
        (lambda: tt.evaluate_similarity("none.txt"), "none.txt: cannot be read"),  # downloads nothing
    ):
        refused(lambda: wrong(), problem)


def test_a_single_similarity_set_needs_no_list(tmp_path, vectors):
    (tmp_path / "set").write_text("king queen 9\nking man 7\nman woman 1\n")
    for sets in tmp_path / "set", str(tmp_path / "set"), [tmp_path / "set"]:
        assert tt.evaluate_similarity(vectors, sets, bootstrap=0)["sets"][0]["covered"] == 3
