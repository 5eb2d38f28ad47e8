"""Misuse from Python raises one clear error, before training where possible."""

import io
import math

import numpy as np
import pytest

import tiedtools as tt

SENTENCES = [["the", "cat", "sat", "on", "the", "mat"], ["a", "dog", "ran"]] * 20
SMALL = dict(size=4, epochs=2, threads=1, min_count=1, sample=0)


@pytest.fixture(scope="module")
def vectors():
    return tt.Vectors(["king", "queen", "man", "woman"], np.random.default_rng(3).standard_normal((4, 3)))


@pytest.fixture(scope="module")
def lm():
    return tt.LanguageModel("rnnlm", size=4, epochs=2).fit(SENTENCES)


@pytest.mark.parametrize(
    "given, problem",
    [
        (dict(outptu="x"), "unknown setting `outptu`; did you mean `output`"),
        (dict(output=True), "`output=True` is not str or None"),
        (dict(output=io.BytesIO()), "is not str or None"),
        (dict(write="both", output="x"), "`write='both'` is not one of in, out, sum, concat"),
        (dict(resume="yes"), "`resume='yes'` is not bool"),
        (dict(checkpoint_minutes=math.nan), "`checkpoint_minutes=nan` must be at least 0"),
        (dict(classes=-1), "`classes=-1` must be from 0 to 1,000,000"),
        (dict(classes=2.5), "`classes=2.5` is not int"),
        (dict(on_epoch=3), "`on_epoch=3` is not a function or None"),
        (dict(on_timer=3), "`on_timer=3` is not a function or None"),
        (dict(progress="bar"), "`progress='bar'` is not True, False, or a Progress"),
        (dict(timer_seconds=math.nan), "`timer_seconds=nan` must be at least 0"),
        (dict(timer_seconds="1"), "`timer_seconds='1'` is not float"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, dict) else part,
)
def test_wrong_arguments_of_fit(given, problem):
    with pytest.raises(tt.Contradiction, match=problem):
        tt.Word2Vec(**SMALL).fit(SENTENCES, **given)


def test_a_closed_file():
    file = io.StringIO("the cat\n")
    file.close()
    with pytest.raises(tt.TiedtoolsError, match="file: is closed; give an open file"):
        tt.Word2Vec(**SMALL).fit(file)


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


@pytest.mark.parametrize(
    "query, problem",
    [
        (lambda v: v.most_similar(3), "expected a word or a vector of 3 numbers, found 3"),
        (lambda v: v.most_similar(None), "found None"),
        (lambda v: v.most_similar(b"king"), "found 'king'"),
        (lambda v: v.most_similar([("king", 1.0)]), "found .'king', 1.0."),
        (lambda v: v.most_similar(np.ones(2)), "found array"),
        (lambda v: v.most_similar([np.ones((1, 3))]), "found array"),
        (lambda v: v.most_similar("king", topn=-1), "`topn=-1` must be at least 0"),
        (lambda v: v.most_similar("king", topn=2.5), "`topn=2.5` is not int"),
        (lambda v: v.most_similar("king", restrict=0), "`restrict=0` must be at least 1"),
        (lambda v: v.analogy("king", "man", "queen", topn=None), "`topn=None` is not int"),
        (lambda v: v.analogy("king", "man", "queen", method="sub"), "`method='sub'` is not one of add, mul"),
        (lambda v: v.write("x", format="word2vec"), "`format='word2vec'` is not one of text,"),
        (lambda v: tt.Vectors.from_gensim({"king": [1]}), "expected gensim KeyedVectors, .* found dict"),
    ],
)
def test_wrong_queries(vectors, query, problem):
    with pytest.raises(tt.TiedtoolsError, match=problem):
        query(vectors)


def test_queries_at_the_limits(vectors):
    assert vectors.most_similar("king", topn=0) == [] and len(vectors.most_similar("king", topn=10**12)) == 3
    assert {cosine for _, cosine in vectors.most_similar(np.zeros(3, int))} == {0.0}
    assert list(vectors) == vectors.words


@pytest.mark.parametrize(
    "query, problem",
    [
        (lambda m: m.next_words("the", top=-1), "`top=-1` must be at least 0"),
        (lambda m: m.next_words("the", top=None), "`top=None` is not int"),
        (lambda m: m.generate(0), "`sentences=0` must be at least 1"),
        (lambda m: m.generate(-1), "`sentences=-1` must be at least 1"),
        (lambda m: m.generate(words=0), "`words=0` must be at least 1"),
        (lambda m: m.generate(temperature=math.nan), "`temperature=nan` must be at least 0"),
        (lambda m: m.generate(top_k=0), "`top_k=0` must be at least 1"),
        (lambda m: m.generate(seed=-1), "`seed=-1` must be at least 0"),
        (lambda m: m.score(SENTENCES, batch=0), "`batch=0` must be from 1 to 4,096"),
        (lambda m: m.perplexity(SENTENCES, batch=-1), "`batch=-1` must be from 1 to 4,096"),
        (lambda m: m.with_cache(-1), "`cache=-1` must be at least 0"),
        (lambda m: m.with_cache(9.5), "`cache=9.5` is not int"),
        (lambda m: m.with_cache(9, math.nan), "`cache_theta=nan` must be from 0 to 1,000"),
        (lambda m: m.with_cache(9, cache_lambda=1), "`cache_lambda=1` must be more than 0 and less than 1"),
        (lambda m: m.perplexity([]), "is empty; give a text"),
        (lambda m: m.word_vectors("input"), "`which='input'` is not one of in, out, sum, concat"),
    ],
)
def test_wrong_arguments_of_language_models(lm, query, problem):
    """`generate` raises when it is called, not when its first sentence is requested."""
    with pytest.raises(tt.TiedtoolsError, match=problem):
        query(lm)


@pytest.mark.parametrize(
    "evaluate, problem",
    [
        (
            lambda v, name: tt.evaluate_similarity(v, [name], oov="drop"),
            "`oov='drop'` is not one of skip, zero, mean, ",
        ),
        (
            lambda v, name: tt.evaluate_similarity(v, [name], bootstrap=-1),
            "`bootstrap=-1` must be from 0 to 10,000,000",
        ),
        (lambda v, name: tt.evaluate_similarity(v, [name], seed=-1), "`seed=-1` must be at least 0"),
        (lambda v, name: tt.evaluate_similarity(v, [name], data="none"), "`data='none'` is not a folder"),
        (
            lambda v, name: tt.evaluate_similarity({"king": 1}, [name]),
            "expected Vectors, a trained model, or a path, found",
        ),
        (lambda v, name: tt.evaluate_similarity(v, [name], against=3), "found int"),
        (lambda v, name: tt.evaluate_similarity("none.txt"), "none.txt: cannot be read"),  # downloads nothing
        (lambda v, name: tt.evaluate_analogies(v, name, method="sub"), "`method='sub'` is not one of add, mul"),
        (
            lambda v, name: tt.evaluate_analogies(v, name, case="upper"),
            "`case='upper'` is not one of as-is, lower, fall",
        ),
        (lambda v, name: tt.evaluate_analogies(v, name, restrict=-1), "`restrict=-1` must be at least 1"),
    ],
)
def test_wrong_arguments_of_evaluations(tmp_path, vectors, evaluate, problem):
    (tmp_path / "set").write_text("king queen 9\nman woman 7\n")
    with pytest.raises(tt.TiedtoolsError, match=problem):
        evaluate(vectors, tmp_path / "set")


def test_a_single_similarity_set_needs_no_list(tmp_path, vectors):
    (tmp_path / "set").write_text("king queen 9\nking man 7\nman woman 1\n")
    for sets in tmp_path / "set", str(tmp_path / "set"), [tmp_path / "set"]:
        assert tt.evaluate_similarity(vectors, sets, bootstrap=0)["sets"][0]["covered"] == 3
