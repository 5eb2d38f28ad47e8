"""Test translation and scoring of lines: order, batches, streaming, and odd lines."""

import itertools
import math

import numpy as np
import pytest
from nmtcase import model
from refusals import refused
from toytranslator import SOURCE, ToyTranslator

from tiedtools.models.translation import interpreter
from tiedtools.models.translation.interpreter import Interpreter, side_by_side, text_bleu

LINES = ["the cat sat", "", "the", "cat cat cat cat sat on the mat", "dog", "sat the", "the cat sat on the mat", ""]


def numbered(lines):
    return ((number, line.split()) for number, line in enumerate(lines, 1))


def told(lines, model=None, **options):
    found = Interpreter(model or ToyTranslator(), **options).translations(numbered(lines))
    return [[(t.text, round(t.logprob, 9)) for t in ts] for ts in found]


def test_order_and_batch_change_nothing():
    expected = [told([line])[0] for line in LINES]
    assert expected[1] == [("", 0)] and len({ts[0][0] for ts in expected}) > 3
    for batch, order in itertools.product((1, 2, 3, 64), ([*range(8)], [3, 7, 1, 0, 2, 5, 4, 6])):
        assert told([LINES[k] for k in order], batch=batch) == [expected[k] for k in order]


def test_batches_are_limited_in_size(monkeypatch):
    expected = told(LINES)
    monkeypatch.setattr(interpreter, "POSITIONS", 10)
    model = ToyTranslator()
    assert told(LINES, model, beam=1) != expected and max(model.calls) <= 5
    assert told(LINES) == expected


def test_lines_are_translated_as_they_are_read():
    read = []

    def lines():
        for number, line in numbered(LINES):
            read.append(number)
            yield number, line

    for number, _ in enumerate(Interpreter(ToyTranslator(), batch=1).translations(lines()), 1):
        assert len(read) == number
    read.clear()
    next(Interpreter(ToyTranslator(), batch=2).translations(lines()))
    assert len(read) == len(LINES)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("align", [False, True])
def test_scores_are_those_of_given_translations(normalize, align):
    interpreter = Interpreter(ToyTranslator(), 3, normalize, align, beam=4)
    best = [(line, t) for line, ts in zip(LINES, interpreter.translations(numbered(LINES))) for t in ts if line]
    given = ((k, line.split(), t.text.split()) for k, (line, t) in enumerate(best))
    found = list(interpreter.scores(given))
    assert len(found) == len(best) >= 4 * 6
    for (line, a), b in zip(best, found):
        assert a.text == b.text and a.logprob == pytest.approx(b.logprob, abs=1e-9)
        assert a.target == b.target == [*a.text.split(), "</s>"]
        assert a.source == b.source == [*(w if w in SOURCE else "<unk>" for w in line.split()), "</s>"]
        if align:
            assert a.weights.shape == (len(a.target), len(a.source))
            np.testing.assert_allclose(a.weights, b.weights, atol=1e-6)


def test_scores_have_base_10():
    model = ToyTranslator()
    ids = np.array([[2], [0]], np.int32)
    (found,) = Interpreter(model).scores([(1, ["the"], ["die"])])
    assert found.logprob == pytest.approx(model.score(ids, ids).sum() / math.log(10))


def test_a_long_line_is_cut(messages):
    line = "the cat " * 5000
    assert told([LINES[0], line], beam=2, max_length=3)[1] == told(["the cat " * 500], beam=2, max_length=3)[0]
    assert messages() == "line 2: has 10,000 words or symbols; only the first 1,000 are read\n"
    (found,) = Interpreter(ToyTranslator()).scores([(1, line.split(), ["die"] * 10_000)])
    assert len(found.source) == 1001 and len(found.target) == 10_001 and math.isfinite(found.logprob)


def test_unknown_words_are_read_as_unk(messages):
    interpreter = Interpreter(ToyTranslator())
    a, b = ([t.text for t in ts] for ts in interpreter.translations(numbered(["dog bird", "<unk> <unk>"])))
    assert a == b and interpreter.source.oovs == 2


def test_bleu_of_a_text():
    pytest.importorskip("sacrebleu")
    model = ToyTranslator()
    ids = np.array([2, 3, 4, 5, 6, 0, 0, 3, 3, 3, 3, 0], np.int32)
    references = [ts[0][0] for ts in told(["the cat sat on mat", "", "cat cat cat cat"], model, beam=3)]
    assert min(len(references[k].split()) for k in (0, 2)) >= 4
    calls = []
    assert text_bleu(model, ids, references, lambda: calls.append(1), 3) == pytest.approx(100)
    assert calls and text_bleu(model, ids, ["x y z u"] * 3) < 20


def test_sides_of_different_length():
    pairs = side_by_side(numbered(["a", "b"]), numbered(["c"]), ("source", "target"))
    assert next(pairs) == (1, ["a"], ["c"])
    refused(lambda: next(pairs), "target: has 1 lines, fewer than source")
    refused(lambda: next(side_by_side(numbered([]), numbered(["c"]), ("source", "target"))), "source: has 0 lines,")


def test_a_translation_model_of_any_tying():
    for tie in "none", "all":
        made = model(tie, size=8, hidden=8)
        words = made.source_vocab.words
        rng = np.random.default_rng(5)
        lines = [" ".join(words[k] for k in rng.integers(2, len(words), n)) for n in (5, 1, 9, 0, 3)]
        options = dict(beam=4, max_length=6)
        together, alone = told(lines, made, **options), told(lines, made, batch=1, **options)
        assert together == alone and len({ts[0] for ts in together}) > 2
        given = [(1, line.split(), text.split()) for line, ts in zip(lines, together) for text, _ in ts if line]
        scores = [t.logprob for t in Interpreter(made, 3).scores(given)]
        expected = [score for line, ts in zip(lines, together) for _, score in ts if line]
        np.testing.assert_allclose(scores, expected, atol=1e-8)
        source = np.array([[2, 3], [3, 0], [0, -1]], np.int32)
        memory, previous = made.encode(source), np.array([-1, 4], np.int32)
        best, ids, *_ = made.best(previous, made.start(memory), memory, 5)
        assert ids.shape == (2, 5) and (np.diff(best) <= 0).all()
        for words, logprobs in zip(ids.T, best.T):
            found, *_ = made.score_next(words, previous, made.start(memory), memory)
            np.testing.assert_allclose(found, logprobs, atol=1e-12)
