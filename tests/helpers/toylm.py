"""A minimal language model with the full interface that `tiedtools.training.fit` and the command line need.

Scores of the next word: a row of W [V, V] for the last word, plus u [V] times a scalar state of the words before.
"""

import dataclasses
import math

import numpy as np

from tiedtools.files import modelfile
from tiedtools.models.lm.config import LstmConfig
from tiedtools.network.optimizers import Optimizer
from tiedtools.network.threads import Team
from tiedtools.text.vocab import Vocab
from tiedtools.training.batches import Learner, Windows
from tiedtools.vectors.vectors import Vectors


class Params:
    def __init__(self, values):
        self.values, self.grads, self.team = values, np.zeros_like(values), Team(1)

    def set(self, values):
        self.values[:] = values


class Descent(Optimizer):
    """SGD with gradient clipping."""

    def update(self, lr):
        params = self.params
        norm = float(np.sqrt(np.square(params.grads, dtype=float).sum()))
        if np.isfinite(norm):
            params.values -= np.float32(lr * min(1, self.clip / norm if self.clip else 1)) * params.grads
        return norm


class ToyLM(modelfile.Stored):
    kind = "toy"
    KERNELS = 1

    def __init__(self, vocab, config=None):
        config = config or LstmConfig()
        self.vocab, self.config, self.V = vocab, config, len(vocab)
        values = np.random.default_rng(config.seed).uniform(-config.init, config.init, self.V * (self.V + 1))
        self.params = Params(values.astype(np.float32))
        self.W, self.u = self.split(self.params.values)

    def split(self, flat):
        return flat[: self.V**2].reshape(self.V, self.V), flat[self.V**2 :]

    @property
    def n_params(self):
        return self.params.values.size

    @property
    def uniform_loss(self):
        return math.log(self.V)

    @staticmethod
    def warm_up(config):
        pass

    @staticmethod
    def memory(vocab, config):
        return 4 * len(vocab) * (len(vocab) + 1)

    def compile(self):
        pass

    def start(self, batch):
        return (np.zeros((1, batch), np.float32),)

    def begin(self):
        return self.start(self.config.batch)

    def forward(self, ids, state, mask=1.0):
        memory = np.empty(ids.shape, np.float32)
        (last,) = state[0]
        for t, row in enumerate(ids):
            memory[t] = last = np.float32(0.5) * last + row / np.float32(self.V)
        scores = (self.W * mask)[ids] + memory[..., None] * self.u
        top = scores.max(-1, keepdims=True)
        return memory, scores - top - np.log(np.exp(scores - top).sum(-1, keepdims=True)), (last[None].copy(),)

    def batches(self, ids):
        return Windows(ids, self.config.steps, self.config.batch)

    def learner(self, clip):
        return Learner(self, Descent(self.params, clip))

    def train_step(self, ids, targets, state, step):
        drop = self.config.drop_out
        mask = (np.random.default_rng([self.config.seed, step]).random(self.V) >= drop) / np.float32(1 - drop)
        memory, logs, state = self.forward(ids, state, mask)
        predicted = targets >= 0
        picked = np.take_along_axis(logs, np.maximum(targets, 0)[..., None], -1)[..., 0] * predicted
        delta = np.exp(logs) - np.eye(self.V)[targets]
        delta *= predicted[..., None] / predicted.sum()
        dW, du = self.split(self.params.grads)
        dW[:] = 0
        np.add.at(dW, ids, delta * mask)
        du[:] = (delta * memory[..., None]).sum((0, 1))
        return -picked.sum(dtype=float), int(predicted.sum()), state

    def score(self, ids, targets, state, sample=None):
        mask = 1.0 if sample is None else np.random.default_rng(sample).random(self.V) * 2
        _, logs, state = self.forward(ids, state, mask)
        return np.take_along_axis(logs, np.maximum(targets, 0)[..., None], -1)[..., 0] * (targets >= 0), state

    def vectors(self, which):
        return Vectors(self.vocab.words, self.W)

    def save(self, file):
        arrays = dict(values=self.params.values, emb_in=self.W, counts=self.vocab.counts)
        modelfile.save(file, self.kind, dataclasses.asdict(self.config), self.vocab.words, arrays)

    @classmethod
    def of_file(cls, config, words, arrays):
        model = cls(Vocab(words, arrays["counts"]), LstmConfig(**config))
        model.params.set(arrays["values"])
        return model
