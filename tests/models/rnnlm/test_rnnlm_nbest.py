"""Test `rnnlm -nbest` against rnnlm 0.4b: the states and n-gram histories from which it reads each hypothesis."""

import numpy as np
import pytest
import rnnlmreference as reference
from rnnlmcase import V, model, values

from tiedtools.evaluation import rnnlmtest

LENGTHS = {"a": [3, 0, 1, 2], "b": [2], "c": [0, 4], "a again": [1, 1]}


def utterances():
    """Return (utterance, list of IDs with the line end) of each hypothesis; -1 is out of the vocabulary."""
    rng = np.random.default_rng(2)
    return [
        (utterance[0], [*(int(k) if k > 9 else -1 for k in rng.integers(1, V, n)), 0])
        for utterance, lengths in LENGTHS.items()
        for n in lengths
    ]


def by_rnnlm(m, hypotheses):
    """Return the log10 probability of each hypothesis, word by word and in the order of rnnlm 0.4b.

    Its hidden state is saved after the first hypothesis of an utterance and restored before each hypothesis of the
    next. `-independent` sets it to ones after each line end, but not before the first. The n-gram history is that of
    the lines read, whatever the utterance; `-independent` clears it.
    """
    p, c = values(m), m.config
    step = lambda h, word: 1 / (1 + np.exp(-(h @ p["hid"] + (p["emb_in"][word] if word >= 0 else 0))))
    history, after_first, last = [0] * c.direct_order, step(np.zeros(c.hidden), 0), None
    scores = []
    for utterance, ids in hypotheses:
        first = utterance != last
        if first:
            start, last = after_first, utterance
        h, total = start, 0
        for before, word in zip([0, *ids], ids):
            h = step(h, before)
            probability = reference.outputs(p, c, m.starts, h, history, word)[0] if word >= 0 else 1e-5
            total += np.log10(probability)
            history = [word, *history[:-1]]
        if c.independent:
            h, history = np.ones(c.hidden), [0] * c.direct_order
        if first:
            after_first = h
        scores.append(total)
    return scores


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("direct", [0, 1001])
@pytest.mark.parametrize("batch", [1, 2, 64])
def test_hypotheses_have_the_contexts_of_rnnlm(tmp_path, monkeypatch, independent, direct, batch):
    monkeypatch.setattr("tiedtools.evaluation.rnnlmtest.BATCH", batch)
    m, hypotheses, printed = model(independent=independent, direct=direct, direct_order=5), utterances(), []
    word = lambda k: m.vocab.words[k] if k > 0 else "unknown"
    lines = [f"{utterance} {' '.join(map(word, ids[:-1]))}\n" for utterance, ids in hypotheses]
    (tmp_path / "lists").write_text("".join(lines))
    rnnlmtest.nbest(m, str(tmp_path / "lists"), printed.append, debug=0)
    np.testing.assert_allclose(np.array(printed, float), by_rnnlm(m, hypotheses), atol=1e-6)


def test_a_learned_initial_state_starts_each_line(tmp_path):
    """The program rnnlm has no such models."""
    m, printed = model(sentences=True, learn_start=True), []
    (tmp_path / "lists").write_text("a w5 w6\na w7\nb w5 w6\n")
    rnnlmtest.nbest(m, str(tmp_path / "lists"), printed.append, debug=0)
    logs, _ = reference.run(values(m), m.config, m.starts, [5, 6, 0, 7, 0])
    total = lambda some: some.sum() / np.log(10)
    expected = [total(logs[:3]), total(logs[3:]), total(logs[:3])]
    np.testing.assert_allclose(np.array(printed, float), expected, atol=1e-6)
