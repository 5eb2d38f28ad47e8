"""Test beam search, translation of texts, and BLEU."""

import itertools
import math
import sys

import numpy as np
import pytest
from common import refused
from nmtcase import model
from toytranslator import SOURCE, ToyTranslator, sentences

from tiedtools.models.translation import interpreter
from tiedtools.models.translation.beam import force, search
from tiedtools.models.translation.bleu import bleu
from tiedtools.models.translation.interpreter import Interpreter, side_by_side, text_bleu

SEEDS = range(12)
LENGTHS = 4, 0, 7, 2, 1


def step(model, ids, source):
    """Return the log probabilities of the word after `ids`."""
    memory = model.encode(source)
    state = model.start(memory)
    for word in [-1, *ids]:
        logprobs, state, weights = model.predict(np.array([word], np.int32), state, memory)
    return logprobs[0], weights[0]


def plain_greedy(model, source, max_length):
    ids = []
    while len(ids) < max_length:
        word = int(step(model, ids, source)[0].argmax())
        if not word:
            break
        ids.append(word)
    return ids


def plain_beam(model, source, beam, max_length):
    """Return {ids: log probability}, as DL4MT finds them, with greedy search's in addition."""
    live, found, greedy = {(): 0.0}, {}, tuple(plain_greedy(model, source, max_length))
    room = beam
    while live:
        new = {}
        for ids, score in live.items():
            logprobs = step(model, list(ids), source)[0]
            allowed = [0] if len(ids) == max_length else range(len(logprobs))
            new |= {(*ids, k): score + logprobs[k] for k in allowed}
        best = sorted(new, key=new.get, reverse=True)[:room]
        ways = [ids for ids in new if ids in ((*greedy, 0)[: len(ids)], best)]
        ended = [ids for ids in best if not ids[-1]]
        found |= {ids[:-1]: new[ids] for ids in {*best, *ways} if not ids[-1]}
        room -= len(ended)
        live = {ids: new[ids] for ids in dict.fromkeys([*(best if room else []), *ways]) if ids[-1]}
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_beam_search_by_definition(seed):
    model, source = ToyTranslator(seed=seed), sentences(*LENGTHS, seed=seed)
    for (b, n), found in zip(enumerate(LENGTHS), search(model, source, 3, 6)):
        expected = plain_beam(model, source[: n + 1, b : b + 1], 3, 6)
        assert {tuple(h.ids) for h in found} == set(expected)
        logprobs = [h.logprob for h in found]
        assert logprobs == pytest.approx([expected[tuple(h.ids)] for h in found], abs=1e-12)
        assert logprobs == sorted(logprobs, reverse=True)
    for (b, n), found in zip(enumerate(LENGTHS), search(model, source, 1, 9)):
        assert [h.ids.tolist() for h in found] == [plain_greedy(model, source[: n + 1, b : b + 1], 9)]
    for n, longest in (5, 200), (130, 262):  # of a model that does not end its sentences
        assert [len(h.ids) for h in search(ToyTranslator(ending=-9), sentences(n), 1)[0]] == [longest]


@pytest.mark.parametrize("normalize", [False, True])
def test_a_beam_never_scores_below_greedy_search(normalize):
    better = 0
    for seed, beam in itertools.product(range(40), (2, 4)):
        model, source = ToyTranslator(seed=seed, E=3), sentences(*LENGTHS, seed=seed)
        wide, narrow = (search(model, source, k, 8, normalize) for k in (beam, 1))
        for a, b in zip(wide, narrow):
            assert a[0].score(normalize) >= b[0].score(normalize) - 1e-12
            assert b[0].ids.tolist() in [h.ids.tolist() for h in a]
            better += a[0].score(normalize) > b[0].score(normalize) + 1e-9
    assert better > 20


def as_lists(found):
    return [[(h.ids.tolist(), round(h.logprob, 9), np.round(h.weights, 9).tolist()) for h in hs] for hs in found]


def test_order_batch_and_padding_change_nothing():
    model, source = ToyTranslator(seed=3), sentences(*LENGTHS)
    together = search(model, source, 4, 9, align=True)
    together = [[h._replace(weights=h.weights[:, : n + 1]) for h in hs] for n, hs in zip(LENGTHS, together)]
    order = [3, 0, 4, 2, 1]
    shuffled = search(model, source[:, order], 4, 9, align=True)
    for k, b in enumerate(order):
        n = LENGTHS[b] + 1
        (alone,) = search(model, source[:n, b : b + 1], 4, 9, align=True)
        assert as_lists([alone]) == as_lists([together[b]])
        assert as_lists([[h._replace(weights=h.weights[:, :n]) for h in shuffled[k]]]) == as_lists([alone])
    expected = [told([line])[0] for line in LINES]
    assert expected[1] == [("", 0)] and len({ts[0][0] for ts in expected}) > 3
    for batch, order in itertools.product((1, 2, 3, 64), ([*range(8)], [3, 7, 1, 0, 2, 5, 4, 6])):
        assert told([LINES[k] for k in order], batch=batch) == [expected[k] for k in order]


def test_scores_and_weights_are_those_of_given_translations():
    model, source = ToyTranslator(seed=2), sentences(5, 3)
    for b, found in enumerate(search(model, source, 4, 9, align=True)):
        assert len(found) >= 4
        for h in found:
            target = np.append(h.ids, 0)[:, None].astype(np.int32)
            own = source[:, b : b + 1][source[:, b] >= 0]
            logprobs, none = force(model, own, target)
            assert logprobs.sum() == pytest.approx(h.logprob, abs=1e-12) and none is None
            again, weights = force(model, own, target, align=True)
            np.testing.assert_allclose(again, logprobs, atol=1e-12)
            np.testing.assert_allclose(h.weights[:, : len(own)], weights[:, 0], atol=1e-7)
            assert not h.weights[:, len(own) :].any() and h.weights.sum(1) == pytest.approx(1)
            assert h.score(True) == pytest.approx(h.logprob / len(target))
    model, source, target = ToyTranslator(), sentences(5, 3), sentences(1, 6, seed=4)
    logprobs, _ = force(model, source, target)
    again, weights = force(model, source, target, align=True)
    np.testing.assert_allclose(again, logprobs, atol=1e-12)
    assert not logprobs[2:, 0].any() and logprobs[:2, 0].all() and weights.shape == (7, 2, 6)


def test_limits_of_beam_search():
    model = ToyTranslator(seed=1)
    search(model, sentences(4, 4, 4), 5, 30)
    assert model.calls[0] == 3 and max(model.calls) <= 3 * 6 and model.calls[-1] < 15
    model, source = ToyTranslator(seed=5, ending=-9), sentences(3, 6)
    found = search(model, source, 3, 4)
    assert {len(h.ids) for hs in found for h in hs} == {4}
    word = int(found[0][0].ids[0])
    assert all(word not in h.ids for hs in search(model, source, 3, 4, banned=word) for h in hs)
    assert all(search(model, source, 1, 4, banned=word))
    found = search(ToyTranslator(target=["</s>", "<unk>", "a"]), sentences(2), 5, 3)
    assert len({tuple(h.ids) for h in found[0]}) == len(found[0]) >= 5
    model = ToyTranslator()
    model.emb_out[2] = np.nan
    refused(lambda: search(model, sentences(2), 2), "outputs NaN")


def test_bleu(monkeypatch):
    pytest.importorskip("sacrebleu")
    found = bleu(["a b c d e f"], [["a b c d x f g"]])
    # Matches: 5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3; the translation is shorter than the reference.
    expected = 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25 * 2.718281828 ** (1 - 7 / 6)
    assert found.score == pytest.approx(expected)
    assert found.details["words"] == 6 and found.details["reference_words"] == 7
    assert "tok:none" in found.signature and found.signature in found.line and f"{expected:.2f}"[:4] in found.line
    assert bleu(["A b c d ."], [["a b c d."]], lowercase=True, tokenize="13a").score == pytest.approx(100)
    assert bleu(["a b c d"], [["x y z u"], ["a b c d"]]).score == pytest.approx(100)
    model = ToyTranslator()
    ids = np.array([2, 3, 4, 5, 6, 0, 0, 3, 3, 3, 3, 0], np.int32)
    references = [ts[0][0] for ts in told(["the cat sat on mat", "", "cat cat cat cat"], model, beam=1)]
    assert min(len(references[k].split()) for k in (0, 2)) >= 4
    calls = []
    assert text_bleu(model, ids, references, lambda: calls.append(1)) == pytest.approx(100)
    assert calls and text_bleu(model, ids, ["x y z u"] * 3) < 20
    refused(lambda: bleu([], [[]]), "no translations")
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    refused(lambda: bleu(["a"], [["a"]]), "tiedtools[nmt]")


LINES = ["the cat sat", "", "the", "cat cat cat cat sat on the mat", "dog", "sat the", "the cat sat on the mat", ""]


def numbered(lines):
    return ((number, line.split()) for number, line in enumerate(lines, 1))


def told(lines, model=None, **options):
    found = Interpreter(model or ToyTranslator(), **options).translations(numbered(lines))
    return [[(t.text, round(t.logprob, 9)) for t in ts] for ts in found]


def test_lines_are_translated_as_they_are_read_in_limited_batches(monkeypatch):
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
    expected = told(LINES)
    monkeypatch.setattr(interpreter, "POSITIONS", 10)
    model = ToyTranslator()
    assert told(LINES, model, beam=1) != expected and max(model.calls) <= 5
    assert told(LINES) == expected


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


def test_messages_of_long_lines_and_unknown_words(messages):
    assert [t.weights for (t,) in Interpreter(ToyTranslator()).translations(numbered([""]))] == [None]
    line = "the cat " * 5000
    assert told([LINES[0], line], beam=2, max_length=3)[1] == told(["the cat " * 500], beam=2, max_length=3)[0]
    assert messages() == "line 2: has 10,000 words or symbols; only the first 1,000 are read\n"
    (found,) = Interpreter(ToyTranslator()).scores([(1, line.split(), ["die"] * 10_000)])
    assert len(found.source) == 1001 and len(found.target) == 10_001 and math.isfinite(found.logprob)
    interpreter = Interpreter(ToyTranslator())
    a, b = ([t.text for t in ts] for ts in interpreter.translations(numbered(["dog bird", "<unk> <unk>"])))
    assert a == b and interpreter.source.oovs == 2


def test_bitexts_have_equal_sides_and_scores_base_10():
    pairs = side_by_side(numbered(["a", "b"]), numbered(["c"]), ("source", "target"))
    assert next(pairs) == (1, ["a"], ["c"])
    refused(lambda: next(pairs), "target: has 1 line, fewer than source")
    refused(lambda: next(side_by_side(numbered([]), numbered(["c"]), ("source", "target"))), "source: has 0 lines,")
    model = ToyTranslator()
    ids = np.array([[2], [0]], np.int32)
    (found,) = Interpreter(model).scores([(1, ["the"], ["die"])])
    assert found.logprob == pytest.approx(model.score(ids, ids).sum() / math.log(10))


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
