"""A small float64 language model for tests, whose state depends on many previous words."""

import dataclasses

import numpy as np

from tiedtools.files import modelfile
from tiedtools.files.families import FAMILIES
from tiedtools.text.vocab import Vocab

FAMILIES["fake"] = dataclasses.replace(FAMILIES["lstm"], kind="fake", model="fakelm:FakeLM", warm_up={})
WORDS = "</s> the <unk> cat sat mat on caf\u00e9 a\u00a0b".split(" ")


class FakeLM:
    """A model with h_t = h_{t-1} / 2 + emb[w_t], p = softmax(out h_t). `calls` records the shapes passed to `score`."""

    kind, config, settings = "fake", None, None

    def __init__(self, words=WORDS, seed=1, never=()):
        self.vocab = Vocab(list(words), np.ones(len(words), np.int64))
        self.emb, self.out = np.random.default_rng(seed).standard_normal((2, len(words), 5)) / 2
        self.never = np.array(never, np.int64)
        self.calls = []

    def start(self, batch):
        return (np.zeros((1, batch, 5)),)

    def distribution(self, h):
        scores = h @ self.out.T
        scores[..., self.never] = -np.inf
        peak = scores.max(axis=-1, keepdims=True)
        return scores - peak - np.log(np.exp(scores - peak).sum(axis=-1, keepdims=True))

    def steps(self, ids, state):
        assert ids.dtype == np.int32 and ids.min() >= 0 and ids.max() < len(self.vocab)
        h = state[0][0]
        assert h.shape == (ids.shape[1], 5)
        for row in ids:
            h = h / 2 + self.emb[row]
            yield h

    def score(self, ids, targets, state):
        assert ids.shape == targets.shape and targets.dtype == np.int32
        self.calls.append(ids.shape)
        logprobs = np.zeros(ids.shape)
        for t, h in enumerate(self.steps(ids, state)):
            found = np.take_along_axis(self.distribution(h), np.maximum(targets[t], 0)[:, None], axis=1)[:, 0]
            logprobs[t] = np.where(targets[t] >= 0, found, 0)
        return logprobs, (h[None],)

    def predict(self, ids, state):
        *_, h = self.steps(ids, state)
        return self.distribution(h), (h[None],)

    def save(self, file):
        modelfile.save(file, self.kind, {}, self.vocab.words, {"emb": self.emb, "out": self.out, "never": self.never})

    @classmethod
    def load(cls, path, threads=None):
        _, words, arrays = modelfile.load(path)
        model = cls(words, never=arrays["never"])
        model.emb, model.out = arrays["emb"], arrays["out"]
        return model

    def by_definition(self, ids, restart=False):
        """Return the natural log probability of each of `ids`, starting at `</s>`; `restart` resets h at each line."""
        h, last, found = np.zeros(5), 0, []
        for word in ids:
            if restart and last == 0:
                h = np.zeros(5)
            h = h / 2 + self.emb[last]
            found.append(self.distribution(h)[word])
            last = word
        return np.array(found)
