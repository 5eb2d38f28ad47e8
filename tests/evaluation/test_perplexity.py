"""Test perplexity, rescoring, and continuation against the definition, with a tiny model."""

import itertools
import math

import numpy as np
import pytest
import rnnlmcase
from common import refused
from fakelm import WORDS, FakeLM

from tiedtools.evaluation import lexicon as lexicon_module
from tiedtools.evaluation import perplexity as module
from tiedtools.evaluation.continuation import draw, generate, most_probable, read
from tiedtools.evaluation.lexicon import OOV, Lexicon
from tiedtools.evaluation.perplexity import Totals, by_line, rescore, score_lines, score_text
from tiedtools.training import scoring

TEXT = "the cat sat on the mat\n\nthe dog sat\n a\u00a0b caf\u00e9\tmat\r\ncat <unk> on the dog\n" * 7 + "the cat"
CLOSED = [word for word in WORDS if word != "<unk>"]


def tokens_of_text():
    lines = [[word for word in line.replace("\t", " ").strip("\r").split(" ") if word] for line in TEXT.split("\n")]
    return [word for line in lines for word in [*line, "</s>"]]


def expected(model, restart=False):
    """Return words and their natural log probabilities, -inf for words that cannot be scored."""
    unk = model.vocab.words.index("<unk>") if "<unk>" in model.vocab.words else None
    words = tokens_of_text()
    ids = [model.vocab.words.index(word) if word in model.vocab.words else unk for word in words]
    found = iter(model.by_definition([k for k in ids if k is not None], restart))
    return words, np.array([-np.inf if k is None else next(found) for k in ids])


@pytest.mark.parametrize("words", [WORDS, CLOSED], ids=["unk", "closed"])
@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("piece, block, time, positions, batch", [
    (1 << 14, 1 << 20, 256, 4096, None), (1, 1 << 20, 256, 4096, None), (5, 7, 3, 8, None),
    (64, 1 << 20, 1, 1, 3), (37, 50, 2, 4096, 5),
])  # fmt: skip
def test_scores_do_not_depend_on_block_or_batch_sizes(
    monkeypatch, text, words, independent, piece, block, time, positions, batch
):
    monkeypatch.setattr(lexicon_module, "PIECE", piece)
    monkeypatch.setattr("tiedtools.text.sources.BLOCK", block)
    monkeypatch.setattr(scoring, "TIME", time)
    monkeypatch.setattr(scoring, "POSITIONS", positions)
    model = FakeLM(words)
    scored = list(score_text(model, Lexicon(model.vocab), text, "strict", independent, batch if independent else None))
    tokens, logprobs = expected(model, independent)
    assert [w.replace("\n", "</s>") for part in scored for w in part.words] == tokens
    np.testing.assert_allclose(np.concatenate([part.logprobs for part in scored]), logprobs, rtol=1e-10)
    assert max(T * B for T, B in model.calls) <= max(positions, batch or module.BATCH)


@pytest.mark.parametrize("words", [WORDS, CLOSED], ids=["unk", "closed"])
@pytest.mark.parametrize("batch, time", [(2, 256), (3, 4), (10, 1), (1000, 256)])
def test_streams_of_equal_length(monkeypatch, text, words, batch, time):
    monkeypatch.setattr(scoring, "TIME", time)
    model = FakeLM(words)
    lexicon = Lexicon(model.vocab)
    totals = Totals(lexicon.unk)
    for piece in score_text(model, lexicon, text, batch=batch):
        totals.add(piece)
    ids = list(map(lexicon.index.get, (w.replace("</s>", "\n") for w in tokens_of_text())))
    ids = [lexicon.unk if k is None else k for k in ids if k is not None or lexicon.unk is not None]
    length, nats = math.ceil(len(ids) / batch), 0
    for start in range(0, len(ids), length):
        before, h = (0 if start == 0 else ids[start - 1]), np.zeros(5)
        for word in ids[start : start + length]:
            h = h / 2 + model.emb[before]
            nats += model.distribution(h)[word]
            before = word
    whole = Totals(lexicon.unk)
    for piece in score_text(model, lexicon, text):
        whole.add(piece)
    counts = 36, 121, 14 if "<unk>" in words else 21
    assert (totals.sentences, totals.words, totals.outside) == (whole.sentences, whole.words, whole.outside) == counts
    assert totals.nats.sum() == pytest.approx(nats, rel=1e-10) != whole.nats.sum()


def test_totals(text):
    lexicon = Lexicon(FakeLM().vocab)
    scored, totals, both = list(score_text(FakeLM(), lexicon, text)), Totals(lexicon.unk), Totals(lexicon.unk)
    for piece in scored:
        totals.add(piece)
    both += totals
    for line in by_line(scored):
        both.add(line)
    once, twice = totals.figures(), both.figures()
    assert both.words == 2 * totals.words and twice["ppl"] == pytest.approx(once["ppl"])
    assert twice["logprob"] == pytest.approx(2 * once["logprob"])
    model = FakeLM()
    model.emb[:] = 0
    totals = Totals(WORDS.index("<unk>"))
    for piece in score_text(model, Lexicon(model.vocab), text):
        totals.add(piece)
    assert totals.figures()["ppl"] == pytest.approx(len(WORDS))
    empty = Totals(2).as_dict()
    assert empty["ppl"] is None and empty["without_oovs"]["ppl1"] is None


def test_a_literal_line_end_token_does_not_end_a_line(tmp_path, messages):
    (path := tmp_path / "marked").write_text("<s> the cat </s>\nthe </s> cat\n")
    model = FakeLM()
    lexicon = Lexicon(model.vocab)
    totals = Totals(WORDS.index("<unk>"))
    for piece in score_text(model, lexicon, str(path)):
        totals.add(piece)
    assert (totals.sentences, totals.words, totals.outside) == (2, 7, 3)
    assert messages().count("remove it") == 1
    assert "<s>" in FakeLM([*WORDS, "<s>"]).vocab.words
    assert Lexicon(FakeLM([*WORDS, "<s>"]).vocab).codes(["<s>", "</s>"]).tolist() == [len(WORDS), OOV]


@pytest.mark.parametrize("batch", [1, 2, 64])
def test_lines_in_batches(batch):
    model = FakeLM()
    lines = [np.array(line, np.int32) for line in ([3, 4, 0], [0], [1, 1, 1, 5, 2, 0], [8, 0], [1, 0])]
    for line, found in zip(lines, score_lines(model, lines, batch=batch)):
        np.testing.assert_allclose(found, model.by_definition(line), rtol=1e-10)
    assert max(B for _, B in model.calls) == min(batch, 3) and sum(T * B for T, B in model.calls) <= 2 * 14
    _, state = read(model, [0, 3, 4], model.start(1))
    for line, found in zip(lines, score_lines(model, lines, state, batch)):
        np.testing.assert_allclose(found, model.by_definition([3, 4, 0, *line])[3:], rtol=1e-10)


@pytest.mark.parametrize("batch", [1, 2, 64])
def test_rescoring_continues_from_the_best_hypothesis(batch):
    model = FakeLM()
    lexicon = Lexicon(model.vocab)
    lists = [["the cat", "cat", "the cat sat on the mat"], ["mat on", "on"], ["the dog", "sat"]]
    before, best = [], []
    for hypotheses in lists:
        scored = []
        for words in hypotheses:
            ids = lexicon.ids(lexicon.codes([*words.split(), "\n"])).tolist()
            logprob = model.by_definition([*before, *ids])[len(before) :].sum()
            scored.append((logprob, ids))
            best.append(logprob / math.log(10))
        before += max(scored)[1]
    named = [(k, words.split()) for k, hypotheses in enumerate(lists) for words in hypotheses]
    np.testing.assert_allclose(list(rescore(model, lexicon, named, batch)), best, rtol=1e-10)
    alone = list(rescore(model, lexicon, [(None, words) for _, words in named], batch))
    np.testing.assert_allclose(alone[:3], best[:3], rtol=1e-10)
    assert not np.allclose(alone[3:], best[3:], rtol=1e-4)


def test_reading_in_windows(monkeypatch, text):
    ids = [0, 3, 4, 5, 6, 1, 3, 4, 2]
    monkeypatch.setattr("tiedtools.evaluation.continuation.TIME", 3)
    for model in rnnlmcase.model(**rnnlmcase.DOC, doc_lr=0.5), FakeLM():
        windowed, state = read(model, ids, model.start(1))
        whole, expected_state = model.predict(np.array(ids, np.int32)[:, None], model.start(1))
        np.testing.assert_allclose(windowed, whole[0], rtol=1e-12)
        np.testing.assert_allclose(state[0], expected_state[0], rtol=1e-12)
    assert model.calls
    model.emb[3] = np.nan
    refused(lambda: list(score_text(model, Lexicon(model.vocab), text)), "NaN")
    refused(lambda: read(model, [0, 3], model.start(1)), "NaN")


def test_draws_follow_the_probabilities():
    p = np.array([0.5, 0.3, 0.15, 0.05, 0])
    with np.errstate(divide="ignore"):
        logprobs = np.log(p)

    def drawn(**options):
        rng = np.random.default_rng(5)
        return np.bincount([draw(logprobs, rng, **options) for _ in range(4000)], minlength=5) / 4000

    weights = np.sqrt(p)
    for found, target in (
        (drawn(), p), (drawn(temperature=2), weights / weights.sum()), (drawn(temperature=0.5), p**2 / (p**2).sum()),
        (drawn(top_k=2), [0.625, 0.375, 0, 0, 0]), (drawn(banned=0), [0, 0.6, 0.3, 0.1, 0]),
        (drawn(banned=0, top_k=1), [0, 1, 0, 0, 0]), (drawn(temperature=0), [1, 0, 0, 0, 0]),
        (drawn(temperature=1e-300), [1, 0, 0, 0, 0]),
    ):  # fmt: skip
        np.testing.assert_allclose(found, target, atol=0.03)
    refused(lambda: draw(np.full(3, -np.inf), np.random.default_rng(1)), "probability 0")
    logprobs = np.log([0.1, 0.4, 0.1, 0.4])
    assert most_probable(logprobs, 3) == [(1, pytest.approx(0.4)), (3, pytest.approx(0.4)), (0, pytest.approx(0.1))]
    assert len(most_probable(logprobs, 10)) == 4


def test_generated_words_become_context():
    model, seen = FakeLM(), []
    script = [3, 0, 4, 4, 0, 5]

    def choose(logprobs):
        seen.append(logprobs)
        return script[len(seen) - 1]

    for prompt, contexts in (
        (None, [[0, *script[:k]] for k in range(6)]),
        ([1, 6], [[0, 1, 6], [0, 1, 6, 3], [0, 1, 6], [0, 1, 6, 4], [0, 1, 6, 4, 4], [0, 1, 6]]),
    ):
        seen.clear()
        assert list(itertools.islice(generate(model, choose, prompt), 6)) == script
        for logprobs, context in zip(seen, contexts):
            np.testing.assert_allclose(logprobs, read(model, context, model.start(1))[0], rtol=1e-10)
