"""Test the RNN language model: probabilities, gradients, and n-best lists."""

import numpy as np
import pytest
import rnnlmreference as reference
from modelsizes import rnnlm_params
from rnnlmcase import CONFIGS, DOC, V, every_config, inputs, model, referred, score, text, values

from tiedtools.evaluation import rnnlmtest
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm


def states(options, batch=3):
    """Return a model and its state after a few words of each sequence."""
    m = model(**options)
    ids = np.array([text(5, seed=k) for k in range(batch)]).T.copy()
    ids[-1] = np.arange(batch) + 3
    return m, m.predict(ids, m.start(batch))[1]


# Initialization


def test_initial_parameters():
    m = model(hidden=17, doc_dim=3, direct=100)
    C = len(m.starts) - 1
    assert m.starts.dtype == np.int64 and m.starts[0] == 0 and m.starts[-1] == V and C == 7
    assert m.class_of.dtype == np.int32
    np.testing.assert_array_equal(m.starts[m.class_of] <= np.arange(V), True)
    np.testing.assert_array_equal(m.starts[m.class_of + 1] > np.arange(V), True)
    shapes = dict(emb_in=(V, 17), hid=(17, 17), class_hid=(17, C), class_doc=(3, C), word_out=(V, 20))
    shapes.update(start_hid=(17,), start_doc=(3,), direct=(100,))
    assert {name: array.shape for name, array in m.params.owners()} == shapes
    assert set(values(model(hidden=17))) == {"emb_in", "hid", "class_hid", "word_out", "start_hid"}
    # Weights are sums of three uniform numbers, as in rnnlm; n-gram features are 0, the start state is 0.1.
    m = Rnnlm(model().vocab, RnnlmConfig(hidden=40, doc_dim=20, direct=1000))
    for name in "emb_in", "hid", "class_hid", "class_doc", "word_out":
        assert 0.2 < np.abs(m.params[name]).max() < 0.3 and m.params[name].std() == pytest.approx(0.1, rel=0.1), name
    assert m.params["start_doc"].any() and not m.params["direct"].any()
    np.testing.assert_allclose(m.params["start_hid"], 0.1, rtol=1e-6)
    other = Rnnlm(m.vocab, RnnlmConfig(hidden=40, doc_dim=20, direct=1000, seed=2))
    assert not np.array_equal(m.params["emb_in"], other.params["emb_in"])
    h, d, words, *_ = m.start(3)
    assert (h.shape, d.shape, words.shape) == ((1, 3, 40), (1, 3, 20), (1, 3, 3))
    assert not words.any() and (h == m.params["start_hid"]).all() and (d == m.params["start_doc"]).all()


@every_config
def test_scores_and_numbers_of_parameters_match_reference(options):
    m = model(**options)
    assert rnnlm_params(m.config, V) + m.config.hidden + m.config.direct == sum(a.size for _, a in m.params.owners())
    m, ids = model(**options), text(150)
    expected, docs = referred(m)(ids)
    np.testing.assert_allclose(score(m, ids), expected, rtol=1e-9, atol=1e-12)
    d = m.score(*inputs(ids[:-1]), m.start(1))[1][1]
    np.testing.assert_allclose(d[0, 0], docs[-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(score(model(dtype="float32", **options), ids), expected, rtol=1e-4, atol=1e-4)


# Scores


@every_config
def test_predictions_equal_scores_and_sum_to_1(options):
    m, state = states(options)
    last = np.array([[4, 0, -1]], np.int32)
    predicted, end = m.predict(last, state)
    assert predicted.shape == (3, V) and predicted.dtype == np.float64
    np.testing.assert_allclose(np.exp(predicted).sum(1), 1, rtol=1e-12)
    for word in range(V):
        logs, _ = m.score(last, np.full((1, 3), word, np.int32), state)
        np.testing.assert_allclose(logs[0], predicted[:, word], rtol=1e-9)


@every_config
def test_scores_do_not_depend_on_window_length(options, dtype="float64", tolerance=1e-12):
    m, ids = model(dtype=dtype, **options), text(61)
    whole, end = m.score(*inputs(ids), m.start(1))
    for steps in 1, 7, 60:
        state, logs = m.start(1), []
        for start in range(0, len(ids), steps):
            read, words = (part[start : start + steps] for part in inputs(ids))
            more, state = m.score(read, words, state)
            logs.append(more)
        np.testing.assert_allclose(np.concatenate(logs), whole, rtol=tolerance, atol=tolerance)
        for ours, theirs in zip(state, end):
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


def test_single_precision_scores_do_not_depend_on_window_length():
    test_scores_do_not_depend_on_window_length(CONFIGS["direct, document, deferred"], "float32", 1e-5)


@every_config
def test_sequences_and_calls_are_independent(options):
    m, state = states(options)
    columns = [inputs(text(20, seed=30 + k)) for k in range(3)]
    ids, targets = (np.concatenate(part, 1) for part in zip(*columns))
    logs, end = m.score(ids, targets, state)
    assert logs.dtype == np.float64 and logs.shape == (20, 3) and not logs[targets < 0].any() and (targets < 0).any()
    for b in range(3):
        alone, alone_end = m.score(ids[:, b : b + 1], targets[:, b : b + 1], tuple(s[:, b : b + 1] for s in state))
        np.testing.assert_allclose(alone[:, 0], logs[:, b], rtol=1e-12)
        for ours, theirs in zip(alone_end, end):
            np.testing.assert_allclose(ours[:, 0], theirs[:, b], rtol=1e-12)
    m, state = states(options, 1)
    read, words = inputs(text(30))
    before = [part.copy() for part in state]
    for call in (lambda: m.score(read, words, state), lambda: m.predict(read, state)):
        first, end = call()
        kept = first.copy(), [part.copy() for part in end]
        m.score(read[::-1].copy(), words, end)
        m.learn(words[:, 0], 0.0)
        np.testing.assert_array_equal(first, kept[0])
        for now, then in zip((*state, *end), (*before, *kept[1])):
            np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("name", [name for name in CONFIGS if "independent" in CONFIGS[name] or "sentences" in name])
def test_nothing_leaks_between_sentences(name):
    """This requires `learn_start`: otherwise the first sentence of a text has a different start state."""
    m = model(**{**CONFIGS[name], "learn_start": True})
    lines = [text(n, seed=n) for n in (3, 1, 9, 5, 14)]
    lines = [np.append(np.where(line == 0, 3, line), 0) for line in lines]
    alone = [score(m, line) for line in lines]
    for order in np.random.default_rng(1).permutation([range(5)] * 4, axis=1):
        together = score(m, np.concatenate([lines[k] for k in order]))
        np.testing.assert_allclose(together, np.concatenate([alone[k] for k in order]), rtol=1e-12)


# The document vector


def test_the_document_vector_depends_on_scored_words_only():
    m, ids = model(**DOC, doc_lr=0.5), text(80, oov=0)
    logs, run = score(m, ids), referred(m)
    right, docs = run(ids)
    np.testing.assert_allclose(logs, right, rtol=1e-9)
    inside = ids != 0  # after </s>, the next vector belongs to the next sentence
    swapped, _ = run(ids, docs=np.roll(docs, -1, 0))
    assert np.abs(swapped - logs)[inside].min() > 1e-6 and (swapped - logs)[inside].mean() > 0.1

    # If the vector depends on past words only, the probabilities of all next words sum to 1 at every position.
    for t in (0, 7, 20):
        every = [score(m, np.append(ids[:t], word))[-1] for word in range(V)]
        assert np.exp(every).sum() == pytest.approx(1, rel=1e-12)
    m = model(**DOC)
    line = np.array([3, 9, 4, 0], np.int32)
    d = m.score(*inputs(line), m.start(1))[1][1]
    assert np.abs(d[0, 0] - m.params["start_doc"]).max() > 1e-3, "the vector is kept after </s>"
    longer = np.concatenate([text(20), line])
    np.testing.assert_allclose(m.score(*inputs(longer), m.start(1))[1][1], d, rtol=1e-12)
    outside = np.array([-1, -1, -1], np.int32)
    for same in (
        m.score(*inputs(outside), m.start(1)),
        m.predict(np.zeros((1, 1), np.int32), m.start(1)),
        model(**DOC, doc_lr=0.0).score(*inputs(line), m.start(1)),
    ):
        np.testing.assert_array_equal(same[1][1][0, 0], m.params["start_doc"])


@pytest.mark.parametrize("name", ["document", "direct, document, deferred", "document, without end", "direct"])
def test_prediction_and_scoring_update_the_document_vector_alike(name):
    """A word's probability is the same whether its context is read word by word or at once, predicted or scored."""
    m, ids = model(**CONFIGS[name]), text(25)
    read, expected = inputs(ids)[0], score(m, ids)
    state = m.start(1)
    for t, word in enumerate(ids):
        predicted, state = m.predict(read[t : t + 1], state)
        at_once, _ = m.predict(read[: t + 1], m.start(1))
        if word >= 0:
            assert predicted[0, word] == pytest.approx(expected[t], rel=1e-9)
            assert at_once[0, word] == pytest.approx(expected[t], rel=1e-9), f"{t + 1} words at once"


PLAIN = dict(sentences=True, learn_start=True, defer=True, cutoff=0.0)
DOCUMENT = dict(PLAIN, doc_dim=3, start_doc="sum")
OPTIONS = {
    "no document vector": PLAIN,
    "wide": dict(PLAIN, hidden=17, V=23, classes=4),
    "fixed document vector": dict(DOCUMENT, doc_lr=0.0),
    "fixed document vector, n-grams": dict(DOCUMENT, doc_lr=0.0, direct=300),
    "updated document vector": dict(DOCUMENT, doc_lr=0.3),
    "updated document vector, n-grams": dict(DOCUMENT, doc_lr=0.3, direct=300, hidden=17),
}
LR = 1e-3


def sentence(m):
    ids = text(12, len(m.vocab), ends=0.0)
    ids[[3, 8]] = -1, ids[6]  # an out-of-vocabulary word and a repeated word
    return ids


def gradient(m, ids):
    """Return the gradient of the sum of log probabilities, by name; parameters are restored."""
    before = values(m)
    m.learn(ids, LR)
    found = {name: (array - before[name]) / LR for name, array in values(m).items()}
    for name, array in m.params.owners():
        array[:] = before[name]
    return found


def difference(m, ids, name, way, docs=None, e=1e-5):
    """Return the slope along a direction. `docs` fixes the document vectors except for changes of start_doc."""
    array, ends = m.params[name], []
    middle = array.copy()
    for side in e, -e:
        array[:] = middle + side * way
        if docs is None:
            ends.append(score(m, ids).sum())
        else:
            ends.append(referred(m)(ids, docs=docs + (side * way if name == "start_doc" else 0))[0].sum())
    array[:] = middle
    return (ends[0] - ends[1]) / (2 * e)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_gradients_match_finite_differences(options):
    """Document-vector updates are not differentiated: each word keeps the vector it was scored with."""
    m = model(**options)
    ids, rng = sentence(m), np.random.default_rng(1)
    ours = gradient(m, ids)
    docs = referred(m)(ids)[1] if options.get("doc_lr") else None
    for name, array in m.params.owners():
        for _ in range(5):
            way = rng.normal(size=array.shape)
            expected = difference(m, ids, name, way, docs)
            assert (ours[name] * way).sum() == pytest.approx(expected, rel=1e-6, abs=1e-7), name
        assert np.abs(ours[name]).max() > 1e-3, name


def test_start_doc_gradient_is_the_sum_mean_or_first_term():
    ids = sentence(model(**DOC))
    found = {kind: gradient(model(**{**DOCUMENT, "start_doc": kind}), ids) for kind in ("sum", "mean", "first")}
    predicted = np.count_nonzero(ids >= 0)
    np.testing.assert_allclose(found["mean"]["start_doc"], found["sum"]["start_doc"] / predicted, rtol=1e-8)
    m = model(**DOCUMENT)
    one_word = [difference(m, ids[:1], "start_doc", way) for way in np.eye(3)]
    np.testing.assert_allclose(found["first"]["start_doc"], one_word, rtol=1e-6)
    for kind in "mean", "first":
        np.testing.assert_array_equal(found[kind]["word_out"], found["sum"]["word_out"])


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
