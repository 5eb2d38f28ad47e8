"""Test beam search against a search of one sentence and one hypothesis at a time, and its invariants."""

import itertools

import numpy as np
import pytest
from refusals import refused
from toytranslator import ToyTranslator, sentences

from tiedtools.models.translation.beam import force, search

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
    model = ToyTranslator(seed=seed)
    source = sentences(*LENGTHS, seed=seed)
    for (b, n), found in zip(enumerate(LENGTHS), search(model, source, 3, 6)):
        expected = plain_beam(model, source[: n + 1, b : b + 1], 3, 6)
        assert {tuple(h.ids) for h in found} == set(expected)
        for h in found:
            assert h.logprob == pytest.approx(expected[tuple(h.ids)], abs=1e-12)
        assert [h.logprob for h in found] == sorted([h.logprob for h in found], reverse=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_beam_1_is_greedy_search(seed):
    model, source = ToyTranslator(seed=seed), sentences(*LENGTHS, seed=seed)
    for (b, n), found in zip(enumerate(LENGTHS), search(model, source, 1, 9)):
        assert [h.ids.tolist() for h in found] == [plain_greedy(model, source[: n + 1, b : b + 1], 9)]


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


def test_neither_order_nor_batch_nor_padding_changes_anything():
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


def test_scores_and_weights_are_those_of_the_given_translation():
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


def test_given_translations_of_different_lengths():
    model, source, target = ToyTranslator(), sentences(5, 3), sentences(1, 6, seed=4)
    logprobs, _ = force(model, source, target)
    again, weights = force(model, source, target, align=True)
    np.testing.assert_allclose(again, logprobs, atol=1e-12)
    assert not logprobs[2:, 0].any() and logprobs[:2, 0].all() and weights.shape == (7, 2, 6)


def test_finished_hypotheses_are_removed_from_the_batch():
    model = ToyTranslator(seed=1)
    search(model, sentences(4, 4, 4), 5, 30)
    assert model.calls[0] == 3 and max(model.calls) <= 3 * 6 and model.calls[-1] < 15


def test_banned_word_and_longest_translation():
    model, source = ToyTranslator(seed=5, ending=-9), sentences(3, 6)
    found = search(model, source, 3, 4)
    assert {len(h.ids) for hs in found for h in hs} == {4}
    word = int(found[0][0].ids[0])
    assert all(word not in h.ids for hs in search(model, source, 3, 4, banned=word) for h in hs)


def test_more_hypotheses_than_words():
    found = search(ToyTranslator(target=["</s>", "<unk>", "a"]), sentences(2), 5, 3)
    assert len({tuple(h.ids) for h in found[0]}) == len(found[0]) >= 5


def test_nan():
    model = ToyTranslator()
    model.emb_out[2] = np.nan
    refused(lambda: search(model, sentences(2), 2), "outputs NaN")
