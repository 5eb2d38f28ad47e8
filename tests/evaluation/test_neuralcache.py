"""Test the continuous cache against its definition, position by position."""

import itertools
import math

import lmcase
import numpy as np
import pytest
import rnnlmcase
import subwordcase
from common import refused

from tiedtools.evaluation import neuralcache as module
from tiedtools.evaluation.continuation import generate, read
from tiedtools.evaluation.lexicon import Lexicon
from tiedtools.evaluation.neuralcache import cached
from tiedtools.evaluation.perplexity import score_lines, score_text
from tiedtools.kernels.output.neuralcache import KEYS, ROWS
from tiedtools.training import scoring

THETA, LAMBDA = 0.7, 0.3
MODELS = {
    "untied": lambda **options: lmcase.model(hidden=17, **options),
    "linear": lambda **options: lmcase.model(tying="linear", hidden=17, **options),
    "subwords": lambda **options: subwordcase.model("morphs", **options),
    "rnnlm": lambda **options: rnnlmcase.model(doc_dim=3, **options),
    "rnnlm, direct": lambda **options: rnnlmcase.model(direct=90, **options),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def text(n, seed=1):
    """Return random int32 IDs of few words, with line ends."""
    return np.random.default_rng(seed).choice(np.arange(20, dtype=np.int32), n, p=[0.2, *[0.8 / 19] * 19])


def by_definition(model, ids, size, theta=THETA, weight=LAMBDA):
    """Return the log probabilities of all words before each of `ids`, float64 [n, V], read after `</s>`."""
    state, cache, found, before = model.start(1), [], [], None
    for k, word in enumerate([0, *ids[:-1]]):
        logs, state, (((*h,),),) = model.predict(np.array([[word]], np.int32), state, outputs=True)
        p = np.exp(logs[0])
        if k:
            cache.append((before, word))
        seen = np.zeros(len(p))
        for key, following in cache[-size:]:
            if following >= 0:
                seen[following] += math.exp(theta * np.dot(h, key))
        if seen.any():
            p = (1 - weight) * p + weight * seen / seen.sum()
        found.append(np.log(p))
        before = h
    return np.array(found)


def of_targets(logs, ids):
    return logs[np.arange(len(ids)), ids]


@every_model
@pytest.mark.parametrize("size", [7, 150, 1000])
def test_probabilities_are_those_of_the_definition(make, size):
    """The text is longer than a block of keys, of positions, and the smaller caches."""
    model, ids = make(), text(2 * KEYS + ROWS // 2)
    expected, lm = by_definition(model, ids, size), cached(model, size, THETA, LAMBDA)
    words, targets = rnnlmcase.inputs(ids)
    logs, _ = lm.score(words, targets, lm.start(1))
    np.testing.assert_allclose(logs[:, 0], of_targets(expected, ids), rtol=1e-10)
    state = lm.start(1)
    for n, t in ((1, 0), (1, 1), (199, 200), (len(words) - 201, len(words) - 1)):
        logs, state = lm.predict(words[t - n + 1 : t + 1] if t else words[:1], state)
        np.testing.assert_allclose(logs[0], expected[t], rtol=1e-10)
        assert np.exp(logs).sum() == pytest.approx(1, abs=1e-12)
    assert not np.allclose(of_targets(expected, ids), of_targets(by_definition(model, ids, size, THETA, 1e-9), ids))


@every_model
def test_streams_have_caches_of_the_inputs_of_the_softmax(make):
    model, ids = make(), text(9)
    state = model.start(1)
    for words in ids[:, None, None]:
        logs, after, x = model.predict(words, state, outputs=True)
        other, _, y = model.score(words, words, state, outputs=True)
        np.testing.assert_array_equal(x, y)
        np.testing.assert_allclose(other[0, 0], logs[0, words[0, 0]], rtol=1e-12)
        if model.kind == "rnnlm":
            np.testing.assert_array_equal(x, after[0])
        else:
            scores = x[0] @ model.network.output.weights()[0][:, : x.shape[2]].T
            scores = scores + model.params["emb_out.b"]
            np.testing.assert_allclose(logs, scores - np.log(np.exp(scores).sum()), rtol=1e-10)
        state = after
    lm = cached(make(), 30, THETA, LAMBDA)
    streams = [rnnlmcase.inputs(text(100, seed)) for seed in range(5)]
    words, targets = (np.concatenate(parts, axis=1) for parts in zip(*streams))
    together, state = lm.score(words, targets, lm.start(5))
    following, _ = lm.predict(words[:3], state)
    for b, stream in enumerate(streams):
        alone, state = lm.score(*stream, lm.start(1))
        np.testing.assert_allclose(together[:, [b]], alone, rtol=1e-10)
        np.testing.assert_allclose(following[[b]], lm.predict(words[:3, [b]], state)[0], rtol=1e-10)


@every_model
@pytest.mark.parametrize("size, chunk", [(1, 8), (20, 1), (20, 256), (1000, 8)])
def test_results_do_not_depend_on_windows(monkeypatch, make, size, chunk):
    """Nor on the sizes of the arrays that hold the keys, which are bounded by the cache and the window."""
    monkeypatch.setattr(module, "TIME", chunk)
    ids = text(210)
    lm = cached(make(), size, THETA, LAMBDA)
    words, targets = rnnlmcase.inputs(ids)
    whole, _ = lm.score(words, targets, lm.start(1))
    for step in (1, 13, 70):
        state, found = lm.start(1), []
        for t in range(0, len(ids), step):
            logs, state = lm.score(words[t : t + step], targets[t : t + step], state)
            found.append(logs)
            keys = sum(map(len, state[lm.parts + 1 :]))
            assert keys == len(state[lm.parts]) < size + 2 * step + 2 * chunk
            assert len(state[lm.parts + 1 :]) <= 1 + keys // chunk
        np.testing.assert_allclose(np.concatenate(found), whole, rtol=1e-10)


def test_words_enter_the_cache_when_they_are_predicted_or_generated():
    """Targets do not enter the cache, and neither do words outside the vocabulary, which rnnlm reads as -1."""
    ids, lm = text(80), cached(lmcase.model(), 20, THETA, LAMBDA)
    words, targets = rnnlmcase.inputs(ids)
    hidden = np.where(np.arange(80)[:, None] % 3, targets, -1).astype(np.int32)
    whole, found = (lm.score(words, wanted, lm.start(1))[0] for wanted in (targets, hidden))
    np.testing.assert_array_equal(found, np.where(hidden < 0, 0, whole))
    ids[[5, 6, 40]] = -1
    model = rnnlmcase.model(doc_dim=3)
    expected, lm = by_definition(model, ids, 20), cached(model, 20, THETA, LAMBDA)
    logs, _ = lm.score(*rnnlmcase.inputs(ids), lm.start(1))
    known = ids >= 0
    np.testing.assert_allclose(logs[known, 0], of_targets(expected, ids)[known], rtol=1e-10)
    assert not logs[~known].any()
    model, script, seen = lmcase.model(), [3, 3, 0, 5, 3], []
    lm = cached(model, 4, THETA, LAMBDA)

    def choose(logprobs):
        seen.append(logprobs)
        return script[len(seen) - 1]

    for _ in zip(script, generate(lm, choose)):
        pass
    np.testing.assert_allclose(seen[: len(script)], by_definition(model, script, 4), rtol=1e-10)


@pytest.mark.parametrize("batch", [1, 2, 64])
@every_model
def test_lines_and_hypotheses(make, batch):
    """Each line starts from the state and the cache that it is given."""
    model = make()
    lm = cached(model, 12, THETA, LAMBDA)
    lines = [np.array(line, np.int32) for line in ([3, 4, 0], [0], [1, 1, 1, 5, 2, 0], [8, 0], [1, 0])]
    context = [3, 4, 3, 0]
    _, state = read(lm, [0, *context[:-1]], lm.start(1))
    for start, before in ((None, []), (state, context)):
        for line, found in zip(lines, score_lines(lm, lines, start, batch)):
            ids = [*before, *line.tolist()]
            np.testing.assert_allclose(found, of_targets(by_definition(model, ids, 12), ids)[len(before) :], rtol=1e-10)


@pytest.mark.parametrize(
    "options", [{}, dict(independent=True), dict(batch=3), dict(independent=True, batch=2)], ids=str
)
def test_texts(monkeypatch, tmp_path, options):
    """The cache is reset at the start of a text, of each line that is independent, and of each stream."""
    monkeypatch.setattr(scoring, "TIME", 10)
    model = lmcase.model()
    ids = [*text(59, 2).tolist(), 0]
    path = tmp_path / "text"
    path.write_text(" ".join(model.vocab.words[i] for i in ids).replace("</s> ", "\n").replace("</s>", "\n"))
    lm = cached(model, 25, THETA, LAMBDA)
    found = [p.logprobs for p in score_text(lm, Lexicon(model.vocab), str(path), **options)]
    if options.get("independent"):
        ends = [-1, *(k for k, word in enumerate(ids) if not word)]
        parts = [ids[i + 1 : j + 1] for i, j in itertools.pairwise(ends)]
        expected = [of_targets(by_definition(model, part, 25), part) for part in parts]
    elif options:
        parts = [[ids[start - 1], *ids[start : start + 20]] for start in (0, 20, 40)]
        expected = [of_targets(started_at(model, part), part[1:]) for part in parts]
        found = [np.sort(np.concatenate(found))]
        expected = [np.sort(np.concatenate(expected))]
    else:
        expected = [of_targets(by_definition(model, ids, 25), ids)]
    np.testing.assert_allclose(np.concatenate(found), np.concatenate(expected), rtol=1e-10)


def started_at(model, ids):
    """Return by_definition of ids[1:] read after ids[0] instead of `</s>`."""

    class Other:
        start = model.start
        first = True

        def predict(self, words, state, outputs):
            words, self.first = (np.array([[ids[0]]], np.int32) if self.first else words), False
            return model.predict(words, state, outputs)

    return by_definition(Other(), ids[1:], 25)


def test_float32_threads_and_samples():
    ids = text(300)
    for theta in (0, 0.7, 30, 1000):
        double = lmcase.model()
        values = lmcase.values(double)
        logs, exact = [], of_targets(by_definition(double, ids, 100, min(theta, 30)), ids)
        for threads in (1, 3):
            lm = cached(lmcase.model(values, dtype="float32", threads=threads), 100, theta, LAMBDA)
            logs.append(lm.score(*rnnlmcase.inputs(ids), lm.start(1))[0][:, 0])
        np.testing.assert_allclose(*logs, rtol=1e-5)
        assert np.isfinite(logs[0]).all()
        if theta <= 30:
            np.testing.assert_allclose(logs[0], exact, rtol=1e-4)
    model, ids = lmcase.model(tying="tied", **lmcase.GAL), text(60)
    lm = cached(model, 20, THETA, LAMBDA)
    words, targets = rnnlmcase.inputs(ids)
    for sample in (0, 1):
        plain, _, x = model.score(words, targets, model.start(1), sample, outputs=True)
        found, (*_, keys) = lm.score(words, targets, lm.start(1), sample=sample)
        np.testing.assert_array_equal(keys, x)
        scores = [[THETA * np.dot(x[t, 0], x[i, 0]) for i in range(max(0, t - 20), t)] for t in range(60)]
        for t in range(1, 60):
            weights = np.exp(scores[t])
            p = weights[ids[max(0, t - 20) : t] == ids[t]].sum() / weights.sum()
            assert found[t, 0] == pytest.approx(math.log((1 - LAMBDA) * math.exp(plain[t, 0]) + LAMBDA * p), rel=1e-10)


def test_another_vocabulary_and_nan(tmp_path):
    model = subwordcase.lettered()
    other = model.of_words(["</s>", "<unk>", "catly", "dogcat", "owlowl"])
    ids = np.random.default_rng(3).integers(0, 5, 50).astype(np.int32)
    lm = cached(other, 10, THETA, LAMBDA)
    logs, _ = lm.score(*rnnlmcase.inputs(ids), lm.start(1))
    expected = of_targets(by_definition(other, ids, 10), ids)
    np.testing.assert_allclose(logs[:, 0], expected, rtol=1e-4)
    model = lmcase.model()
    model.params["emb_in"][3] = np.nan
    lm = cached(model, 5, THETA, LAMBDA)
    refused(lambda: read(lm, [0, 3], lm.start(1)), "NaN")
    (tmp_path / "text").write_text("w1 w3 w1\n")
    refused(lambda: list(score_text(lm, Lexicon(model.vocab), str(tmp_path / "text"))), "NaN")
