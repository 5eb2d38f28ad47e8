"""Small translation models of every tying, and batches of sentence pairs."""

import numpy as np
import pytest

from tiedtools.models.translation.config import TranslationConfig
from tiedtools.models.translation.model import Translator
from tiedtools.text.vocab import Vocab
from tiedtools.training.batches import Batch

V_SOURCE, V = 41, 53
LENGTHS = (3, 5), (7, 4), (1, 1), (6, 6), (2, 7)  # of source and target, with </s>
SIZES = {"odd": dict(size=5, hidden=3), "lanes": dict(size=16, hidden=16), "long": dict(size=11, hidden=37)}
every_tying = pytest.mark.parametrize("tie", ["none", "decoder", "all"])
every_size = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)


def vocab(V):
    return Vocab(["</s>", "<unk>", *(f"w{k}" for k in range(2, V))], np.arange(V, 0, -1))


def model(tie="none", values=None, **options):
    target = vocab(V)
    source = target if tie == "all" else vocab(V_SOURCE)
    settings = {"size": 5, "hidden": 3, "init": 0.5, "dtype": "float64", **options}
    return Translator(source, target, TranslationConfig(tie=tie, **settings), values)


def sentences(lengths, words, seed):
    """Return random sentences of these lengths, each ending in 0."""
    rng = np.random.default_rng(seed)
    return [np.append(rng.integers(1, words, length - 1), 0).astype(np.int32) for length in lengths]


def padded(sentences, more=0):
    """Return sentences as columns [T, B], padded with -1, in `more` rows more than needed."""
    batch = np.full((max(map(len, sentences)) + more, len(sentences)), -1, np.int32)
    for column, sentence in zip(batch.T, sentences):
        column[: len(sentence)] = sentence
    return batch


def pairs(model, lengths=LENGTHS, seed=3):
    """Return random pairs of sentences: a list of the source and one of the target."""
    sizes, ends = zip(*lengths), (len(model.source_vocab), len(model.target_vocab))
    return [sentences(size, words, seed + k) for k, (size, words) in enumerate(zip(sizes, ends))]


def batch(model, lengths=LENGTHS, seed=3, order=slice(None), more=0):
    return Batch(*(padded(side, more)[:, order] for side in pairs(model, lengths, seed)))


def values(model):
    """Return float64 copies of all parameters under all of their names."""
    return {name: model.params[name].astype(float) for name in model.params.names}


def gradient(model, given=None, step=7, **options):
    """Return copies of all gradients of a step, and the nats; checks that padding is 0."""
    source, target, _ = given or batch(model, **options)
    nats, _, _ = model.train_step(source, target, (), step)
    found, rest = {}, model.params.grads.copy()
    for name in model.params.layout:
        part = model.params.cut(rest, name)
        found[name] = part.copy()
        part[:] = 0
    assert not rest.any(), "padding must be 0"
    return found, nats
