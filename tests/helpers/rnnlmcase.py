"""Small RNN language models and texts, and accessors for tests."""

import functools

import numpy as np
import pytest
import rnnlmreference as reference

from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.text.vocab import Vocab

V = 57
DOC = dict(doc_dim=3, sentences=True, learn_start=True)
CONFIGS = {
    "one step": dict(), "bptt 1": dict(bptt=1, bptt_block=10), "bptt 4, block 10": dict(bptt=4, bptt_block=10),
    "bptt 4, block 3": dict(bptt=4, bptt_block=3), "bptt 6, block 1": dict(bptt=6, bptt_block=1),
    "one step, apart": dict(independent=True), "bptt 4, block 3, apart": dict(independent=True, bptt=4, bptt_block=3),
    "bptt 4, block 10, apart": dict(independent=True, bptt=4, learn_start=True),
    "bptt 20, block 2, apart": dict(independent=True, bptt=20, bptt_block=2, learn_start=True),
    "sentences": dict(sentences=True), "sentences, start": dict(sentences=True, learn_start=True),
    "document": dict(DOC), "document, sum": dict(DOC, start_doc="sum"), "document, first": dict(DOC, start_doc="first"),
    "document, deferred": dict(DOC, defer=True),
    "document, apart": dict(doc_dim=3, independent=True, bptt=3, bptt_block=4),
    "document, without end": dict(doc_dim=3, bptt=3, bptt_block=4), "deferred": dict(bptt=4, bptt_block=3, defer=True),
    "cutoff": dict(cutoff=0.1, bptt=4, bptt_block=5), "cutoff, sentences": dict(DOC, cutoff=0.1),
    "no cutoff": dict(cutoff=0.0, bptt=4, bptt_block=5), "direct": dict(direct=1001, bptt=2, bptt_block=4),
    "direct, few": dict(direct=90, direct_order=6, independent=True),
    "direct, fewer than words": dict(direct=5, direct_order=4, bptt=2, bptt_block=4),
    "direct, document, deferred": dict(DOC, direct=800, direct_order=4, defer=True),
}  # fmt: skip
every_config = pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS)


def model(values=None, V=V, **options):
    """Return a model; without `values`, its parameters are large, so that errors are visible."""
    vocab = Vocab(["</s>", *(f"w{k}" for k in range(1, V))], np.concatenate([[50], 300 // np.arange(1, V)]))
    config = RnnlmConfig(**{"hidden": 5, "classes": 7, "beta": 0.0, "dtype": "float64", **options})
    m = Rnnlm(vocab, config, values)
    if values is None:
        rng = np.random.default_rng(3)
        for name, array in m.params.owners():
            if name != "start_hid":
                array[:] = rng.normal(scale=0.5, size=array.shape)
            elif config.learn_start:
                array[:] = rng.uniform(0.1, 0.9, array.shape)
    return m


def text(n, V=V, seed=5, oov=0.05, ends=0.12):
    """Return random int32 word IDs of lines; the last line is complete."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(1, V, n)
    ids[rng.random(n) < oov] = -1
    ids[rng.random(n) < ends] = 0
    ids[-1] = 0
    return ids.astype(np.int32)


def values(model):
    """Return float64 copies of all parameters by name."""
    return {name: array.astype(float) for name, array in model.params.owners()}


def referred(model, p=None):
    """Return run(ids, lr=None, docs=None), the reference with a model's parameters, or with p."""
    return functools.partial(reference.run, values(model) if p is None else p, model.config, model.starts)


def inputs(ids):
    """Return the input word before each word of a text, and the words: int32 [n, 1] each."""
    ids = np.asarray(ids, np.int32)
    return np.concatenate([[0], ids[:-1]]).astype(np.int32)[:, None], ids[:, None]


def score(model, ids):
    """Return the log probabilities of a text, float64 [n]."""
    return model.score(*inputs(ids), model.start(1))[0][:, 0]


def epochs(model, ids, n=1, lr=0.1):
    """Train for n epochs; returns the mean nats per word of each."""
    model.compile()
    pieces, learner, means = model.batches(ids), model.learner(0.0), []
    for epoch in range(n):
        pieces.begin(epoch)
        state, total, predicted = learner.begin(), 0.0, 0
        for k in range(pieces.steps):
            nll, words, _, state = learner.step(pieces[k], state, k, lr)
            total, predicted = total + nll, predicted + words
        assert predicted == pieces.words
        means.append(total / predicted)
    return means


def assert_close(ours, theirs, tolerance=1e-9):
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=tolerance, atol=tolerance, err_msg=name)
