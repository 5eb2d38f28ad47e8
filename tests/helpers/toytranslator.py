"""A small float64 translation model for tests: a running mean of words as state, and dot-product attention."""

import numpy as np

from tiedtools.files import modelfile
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.vectors import Vectors

SOURCE = "</s> <unk> the cat sat on mat".split()
TARGET = "</s> <unk> die katze sa\u00df auf matte x".split()


class Memory:
    """Annotations [S, B, E] and which positions exist, bool [S, B]."""

    def __init__(self, annotations, real):
        self.annotations, self.real = annotations, real

    def select(self, rows):
        return Memory(self.annotations[:, rows], self.real[:, rows])


class ToyTranslator:
    """State h = h_before / 2 + emb[previous]; attention softmax(c_j . h); scores of words: out . (h + sum a_j c_j).

    The score of `</s>` grows by `ending` with each word. `calls` records the numbers of rows of `predict`.
    """

    kind, settings = "nmt", None

    def __init__(self, source=SOURCE, target=TARGET, codes="", seed=0, E=6, ending=0.5):
        self.source_vocab, self.target_vocab = (Vocab(list(w), np.ones(len(w), np.int64)) for w in (source, target))
        self.vocab, self.codes, self.ending, self.calls = self.target_vocab, codes, ending, []
        rng = np.random.default_rng(seed)
        self.emb_source, self.emb_in, self.emb_out = (
            rng.standard_normal((len(words), E)) for words in (source, target, target)
        )

    def encode(self, source):
        assert source.dtype == np.int32 and source.min() >= -1 and (source == 0).sum() == source.shape[1]
        order = 1 + np.arange(len(source))[:, None, None] / 10
        return Memory(self.emb_source[source] * order, source >= 0)

    def start(self, memory):
        return (np.zeros((1, memory.real.shape[1], self.emb_in.shape[1])), np.zeros((1, memory.real.shape[1], 1)))

    def predict(self, previous, state, memory):
        self.calls.append(len(previous))
        assert previous.dtype == np.int32 and memory.real.shape[1] == len(previous) == state[0].shape[1]
        h = state[0][0] / 2 + np.where(previous[:, None] >= 0, self.emb_in[previous], 0)
        time = state[1] + 1
        e = np.where(memory.real, (memory.annotations * h).sum(-1), -np.inf)
        a = np.exp(e - e.max(0))
        a /= a.sum(0)
        scores = (h + (a[..., None] * memory.annotations).sum(0)) @ self.emb_out.T
        scores[:, 0] += self.ending * time[0, :, 0] - 2
        scores -= scores.max(1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(1, keepdims=True)), (h[None], time), a.T

    def best(self, previous, state, memory, k):
        logprobs, *after = self.predict(previous, state, memory)
        ids = np.argsort(-logprobs, axis=1, kind="stable")[:, :k].astype(np.int32)
        return np.take_along_axis(logprobs, ids, 1), ids, *after

    def score_next(self, words, previous, state, memory):
        logprobs, *after = self.predict(previous, state, memory)
        return np.where(words >= 0, logprobs[np.arange(len(words)), words], 0), *after

    def score(self, source, target):
        memory = self.encode(source)
        state, previous, found = self.start(memory), np.full(source.shape[1], -1, np.int32), []
        for row in target:
            logprobs, state, _ = self.score_next(row, previous, state, memory)
            found.append(logprobs)
            previous = row
        return np.array(found)

    def vectors(self, which):
        words = self.source_vocab.words if which == "source" else self.vocab.words
        return Vectors(words, {"source": self.emb_source, "in": self.emb_in, "out": self.emb_out}[which])

    def save(self, file):
        arrays = {name: getattr(self, name) for name in ("emb_source", "emb_in", "emb_out")}
        arrays |= dict(source_words=modelfile.as_array("\n".join(self.source_vocab.words)))
        arrays |= dict(codes=modelfile.as_array(self.codes))
        modelfile.save(file, self.kind, {"tie": "none"}, self.vocab.words, arrays)

    @classmethod
    def load(cls, path, threads=None):
        _, words, arrays = modelfile.load(path)
        source, codes = (modelfile.as_bytes(arrays[name]).decode() for name in ("source_words", "codes"))
        model = cls(source.split("\n"), words, codes)
        for name in "emb_source", "emb_in", "emb_out":
            setattr(model, name, arrays[name])
        return model


def sentences(*lengths, seed=1):
    """Return random sentences of these lengths as int32 [S, B], each with `</s>`, padded with -1."""
    rng = np.random.default_rng(seed)
    found = np.full((max(lengths) + 1, len(lengths)), -1, np.int32)
    for b, n in enumerate(lengths):
        found[:n, b], found[n, b] = rng.integers(1, len(SOURCE), n), 0
    return found
