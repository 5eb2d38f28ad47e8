"""Test settings of estimators, and their misuse."""

import dataclasses
import functools
import io
import math
import typing
import weakref

import numpy as np
import pytest
from common import make, refused

import tiedtools as tt
from tiedtools.base.settings import LmReading, Reading
from tiedtools.cli.networks import lstm as lstm_command
from tiedtools.cli.rnnlm import command as rnnlm_command
from tiedtools.cli.w2v import command as w2v_command
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.word2vec.config import Config
from tiedtools.training.schedules import Training

SENTENCES = [["the", "cat", "sat"], ["a", "dog", "ran"]] * 20
PARTS = {
    "w2v": (w2v_command, Config, Reading),
    "lstm": (lstm_command, LstmConfig, Training, LmReading),
    "rnnlm": (rnnlm_command, RnnlmConfig, Training, LmReading),
}
OTHER_UNITS = {"w2v": set(), "lstm": {"epochs"}, "rnnlm": {"direct"}}  # epochs: of Training, which has no limit
kinds = pytest.mark.parametrize("kind", PARTS)


def ranges(kind):
    """Return the ranges of all settings of a kind of model, by name."""
    fields = (field for part in PARTS[kind][1:] for field in dataclasses.fields(part))
    return {field.name: field.metadata["within"] for field in fields if field.metadata["within"]}


@kinds
def test_ranges_and_defaults_are_those_of_the_command_line(kind):
    options = {option.name: option for option in PARTS[kind][0].params}
    compared = [name for name in options.keys() & ranges(kind).keys() if hasattr(options[name].type, "min_open")]
    for name in {*compared} - OTHER_UNITS[kind]:
        assert ranges(kind)[name] == tuple(getattr(options[name].type, field) for field in ranges(kind)[name]._fields)
    values = {field.name: field.default for part in PARTS[kind][1:] for field in dataclasses.fields(part)}
    for config in make(kind).configured[:-1]:
        values |= dataclasses.asdict(config)
    shown = {name: options[name].default for name in options.keys() & values.keys()}
    shown = {name: default for name, default in shown.items() if type(default) in (int, float, str)}
    assert {name: values[name] for name in shown} == shown and min(len(compared), len(shown)) > 10


@kinds
def test_numbers_and_choices_out_of_range_are_refused(kind):
    for part in PARTS[kind][1:]:
        types = typing.get_type_hints(part)
        numbers = {
            f.name for f in dataclasses.fields(part) if {int, float} & {types[f.name], *typing.get_args(types[f.name])}
        }
        assert numbers <= ranges(kind).keys()
    for name, within in ranges(kind).items():
        wrong = [within.min - 1, math.nan, math.inf, -math.inf, 10**31, 1e300]
        wrong += [within.min] * within.min_open + ([] if within.max is None else [within.max + 1])
        wrong += [within.max] * within.max_open + [True, "1", [1]]
        for value in wrong:
            with pytest.raises(tt.Contradiction, match=f"`{name}=.*` (must be|is not) "):
                make(kind, **{name: value})


def choices(kind):
    fields = (field for part in PARTS[kind][1:] for field in dataclasses.fields(part))
    return {field.name for field in fields if field.metadata.get("choices")}


@kinds
def test_unknown_choices_and_unknown_settings_are_refused(kind):
    assert len(choices(kind)) > 1
    for name in choices(kind):
        for value, problem in ("no-such", "is not one of "), (["no-such"], "is not "):
            refused(lambda: make(kind, **{name: value}), f"`{name}=", "no-such", f"` {problem}", kind=tt.Contradiction)
    refused(lambda: make(kind, thread=1), "unknown setting `thread`; did you mean `threads`", kind=tt.Contradiction)


def test_messages_of_settings():
    for kind, settings, problem in (
        ("w2v", dict(lr=1e-40), "`lr=1e-40` must be finite, with magnitude 1e-30 to 1e30"),
        ("w2v", dict(lr=0.0), "`lr=0.0` must be more than 0 and at most 10,000"),
        ("w2v", dict(hs=2), "`hs=2` is not bool"),
        ("w2v", dict(shared_negatives=(1, 8)), "is not three integers, from (1, 4, 4) to (1024, 4096, 65536)"),
        ("w2v", dict(shared_negatives=(1, 8, 7)), "the last two numbers must be multiples of 4"),
        ("w2v", dict(init_from="x"), "`init_from` is an argument of `fit`, not of Word2Vec; move it there"),
        ("lstm", dict(dropout=math.nan), "`dropout=nan` must be at least 0 and less than 1"),
        ("lstm", dict(preset="zaremba"), "`preset='zaremba'` is not one of zaremba-small, "),
        ("elman", {}, "`kind='elman'` is not one of lstm, lm, rnnlm"),
        ("rnnlm", dict(direct=math.nan), "`direct=nan` must be from 0 to 10,000"),
        ("rnnlm", dict(direct="1"), "`direct='1'` is not float"),
        ("rnnlm", dict(size=3, hidden=3), "`size` and `hidden` are the same"),
    ):
        refused(lambda: make(kind, **settings), problem, kind=tt.Contradiction)


def test_settings_of_numpy_and_of_an_rnn(tmp_path):
    settings = dict(hs=np.True_, min_count=np.int16(1), size=np.array(7), lr=np.float32(0.5), errors=np.str_("replace"))
    config, reading = tt.Word2Vec(**settings).configured
    assert (config.hs, config.size, config.lr) == (True, 7, 0.5) and type(config.hs) is bool
    assert reading["min_count"] == 1 and type(reading["min_count"]) is int and reading["errors"] == "replace"
    assert tt.LanguageModel("rnnlm", size=7, threads=None).configured[0].hidden == 7
    # One thread is the default, with which training is reproducible; scoring uses all cores.
    model = tt.LanguageModel("rnnlm", hidden=3, epochs=1).fit(SENTENCES)
    model.save(tmp_path / "model")
    assert tt.load(tmp_path / "model").configured[0].threads == 1
    assert tt.load(tmp_path / "model", threads=2).configured[0].threads == 2
    assert_refused(functools.partial(tt.load, tmp_path / "model"), threads=[0, -1, 1.5, "2"])


@pytest.mark.parametrize("settings", [dict(valid_share=0), dict(schedule="plateau")], ids=str)
def test_an_rnn_without_validation_needs_a_number_of_epochs(settings):
    with pytest.raises(tt.Contradiction, match="the number of epochs must be set: give `epochs`"):
        tt.LanguageModel("rnnlm", hidden=3, **settings).fit(SENTENCES)
    assert len(tt.LanguageModel("rnnlm", hidden=3, epochs=2, **settings).fit(SENTENCES).history) == 2


LINES = [["the", "cat", "sat", "on", "the", "mat"], ["a", "dog", "ran"]] * 20
SMALL = dict(size=4, epochs=2, threads=1, min_count=1, sample=0)


@pytest.fixture(scope="module")
def vectors():
    return tt.Vectors(["king", "queen", "man", "woman"], np.random.default_rng(3).standard_normal((4, 3)))


@pytest.fixture(scope="module")
def lm():
    return tt.LanguageModel("rnnlm", size=4, epochs=2).fit(LINES)


def assert_refused(call, **wrong):
    """Check that `call` refuses each value of `wrong`, alone, and that the message names it with its value."""
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(tt.TiedtoolsError) as error:
                call(**{name: value})
            assert str(error.value).startswith((f"`{name}={value!r}` must be ", f"`{name}={value!r}` is not ")), name


def test_wrong_arguments_of_fit():
    assert_refused(
        lambda **given: tt.Word2Vec(**SMALL).fit(LINES, **{"output": "x", **given}),
        output=[True, io.BytesIO()], write=["both"], resume=["yes"], checkpoint_minutes=[math.nan], classes=[-1, 2.5],
        on_epoch=[3], on_timer=[3], progress=["bar"], timer_seconds=[math.nan, "1"],
    )  # fmt: skip
    fit = functools.partial(tt.Word2Vec(**SMALL).fit, LINES)
    refused(lambda: fit(workers=2), "`workers` is an argument of Word2Vec, not of `fit`; move", kind=tt.Contradiction)
    refused(lambda: fit(outptu="x"), "unknown setting `outptu`;", kind=tt.Contradiction)
    refused(lambda: fit(resample="none"), "without `runs`", kind=tt.Contradiction)
    (file := io.StringIO()).close(), refused(lambda: tt.Word2Vec().fit(file), "file: is closed; give an open file")


@pytest.mark.parametrize("no", [False, np.False_])
def test_a_callback_stops_training_with_false_or_an_exception(no, tmp_path):
    model = tt.LanguageModel("lstm", size=4, epochs=9, steps=2, batch=2)
    for each in model, tt.Word2Vec(**SMALL | dict(epochs=50)):
        called = []
        each.fit(LINES, on_epoch=lambda figures: called.append(figures) or no)
        assert len(called) == len(each.history) == 1
    model.fit(LINES, on_epoch=lambda figures: 0)
    assert len(model.history) == 9
    with pytest.raises(KeyError, match="valid_bleu"):
        model.fit(LINES, on_epoch=lambda figures: figures["valid_bleu"], save_model=tmp_path / "m.npz")
    assert len(model.history) == 1
    np.testing.assert_array_equal(tt.load(tmp_path / "m.npz").model.params.values, model.model.params.values)
    params = weakref.ref(model.model.params)
    del model
    assert params() is None  # without garbage collection
    model = tt.Word2Vec(**SMALL).fit(LINES, on_epoch=dict.clear)  # which does not change the history
    assert [epoch["epoch"] for epoch in model.history] == [1, 2]


def test_queries_and_evaluations(vectors, tmp_path):
    for query in 3, b"king", [("king", 1.0)], np.ones(2), [np.ones((1, 3))]:
        refused(lambda: vectors.most_similar(query), "expected a word or a vector of 3 numbers, found ")
    assert_refused(functools.partial(vectors.most_similar, "king"), topn=[-1, 2.5], restrict=[0])
    assert_refused(functools.partial(vectors.analogy, "king", "man", "queen"), topn=[None], method=["sub"])
    assert_refused(functools.partial(vectors.write, "x"), format=["word2vec"])
    refused(lambda: tt.Vectors.from_gensim({"king": [1]}), "expected gensim KeyedVectors, ", " found dict")
    assert vectors.most_similar("king", topn=0) == [] and len(vectors.most_similar("king", topn=10**12)) == 3
    assert {cosine for _, cosine in vectors.most_similar(np.zeros(3, int))} == {0.0}
    assert list(vectors) == vectors.words
    (path := tmp_path / "set").write_text("king queen 9\nman woman 7\n")
    similarity = functools.partial(tt.evaluate_similarity, vectors, [path])
    assert_refused(similarity, oov=["drop"], bootstrap=[-1], seed=[-1], data=["none"])
    analogies = functools.partial(tt.evaluate_analogies, vectors, path)
    assert_refused(analogies, method=["sub"], case=["upper"], restrict=[-1])
    assert_refused(tt.SentenceVectors, vectors=["v.txt"])
    for wrong, problem in (
        (lambda: tt.evaluate_similarity({"king": 1}, [path]), "expected Vectors, a trained model, or a path, found"),
        (lambda: similarity(against=3), "found int"),
        (lambda: tt.evaluate_similarity("none.txt"), "none.txt: cannot be read"),  # downloads nothing
    ):
        refused(lambda: wrong(), problem)
    (tmp_path / "set").write_text("king queen 9\nking man 7\nman woman 1\n")
    for sets in tmp_path / "set", str(tmp_path / "set"), [tmp_path / "set"]:
        assert tt.evaluate_similarity(vectors, sets, bootstrap=0)["sets"][0]["covered"] == 3


def test_wrong_arguments_of_language_models(lm):
    """`generate` raises when it is called, not when its first sentence is requested."""
    assert_refused(functools.partial(lm.next_words, "the"), top=[-1, None])
    wrong = dict(sentences=[0, -1], words=[0], temperature=[math.nan], top_k=[0], seed=[-1])
    assert_refused(lm.generate, **wrong)
    for scored in lm.score, lm.perplexity:
        assert_refused(functools.partial(scored, LINES), batch=[0, -1])
    assert_refused(
        lambda **given: lm.with_cache(**{"cache": 9, **given}),
        cache=[-1, 9.5], cache_theta=[math.nan], cache_lambda=[1],
    )  # fmt: skip
    assert_refused(lm.word_vectors, which=["input"])
    refused(lambda: lm.perplexity([]), "is empty; give a text")
