"""Batches and learner for threads that train word by word on separate parts of a text."""

from typing import Any

import numpy as np

from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.network.network import State
from tiedtools.network.optimizers import Optimizer
from tiedtools.text.encoding import ranges

STEP = 8192  # words that a thread trains on per step of Fit


class Pieces:
    """Batches, as fit.py requires, for a model trained word by word: each thread has a part of the text.

    Batch k of an epoch is (text, cuts), the arguments of Rnnlm.train: a piece for each thread. If sentences are
    independent, pieces consist of whole sentences, which may be shuffled in every epoch.
    """

    def __init__(self, ids: np.ndarray, config: RnnlmConfig) -> None:
        c, self.config, self.epoch = config, config, -1
        self.length, self.words = len(ids), int(np.count_nonzero(np.asarray(ids) >= 0))
        self.source = self.text = np.concatenate([np.zeros(1, np.int32), ids], dtype=np.int32)
        self.sentences = np.flatnonzero(self.source[:-1] == 0) if c.independent else None
        self.steps = self.most = max(1, -(-self.length // (c.threads * STEP)))
        self.starts = self.sentences

    @staticmethod
    def memory(config: RnnlmConfig, n: int) -> int:
        """Return the bytes needed for a text of n words, including those for shuffling."""
        return n * (4 + 24 * config.shuffle)

    def begin(self, epoch: int) -> None:
        """Put the sentences into the order of an epoch; an unfinished last sentence stays last."""
        if epoch == self.epoch or not self.config.shuffle or self.sentences is None:
            return
        self.epoch = epoch
        lengths = np.diff(self.sentences, append=self.length)
        finished = len(lengths) - (self.source[-1] != 0)
        order = np.arange(len(lengths))
        order[:finished] = np.random.default_rng([self.config.seed, epoch]).permutation(finished)
        lengths, self.starts = lengths[order], np.cumsum(lengths[order]) - lengths[order]
        self.text = np.append(self.source[:1], self.source[1:][ranges(self.sentences[order], lengths)])

    def __getitem__(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self.text, np.stack([self.cut(k), self.cut(k + 1)], 1)

    def cut(self, k: int) -> np.ndarray:
        """Return the start of each thread's k-th piece, int64 [threads]."""
        threads, grain = self.config.threads, self.config.block
        parts = self.align(np.arange(threads + 1) * self.length // threads, grain)
        begin, size = parts[:-1], np.diff(parts)
        positions = self.align(begin + size * k // self.steps, 1 if self.starts is not None else grain)
        return parts[1:] if k == self.steps else np.minimum(positions, parts[1:])

    def align(self, positions: np.ndarray, grain: int) -> np.ndarray:
        """Round positions up to the next sentence start; without sentences, down to a multiple of `grain`."""
        if self.starts is not None:
            return np.append(self.starts, self.length)[np.searchsorted(self.starts, positions)]
        return np.where(positions == self.length, self.length, positions // grain * grain)


class OnlineLearner:
    """Learner for an Rnnlm, which updates itself after each word; its optimizer does nothing.

    States: see Rnnlm.carried.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.optimizer = model, Optimizer(model.params)
        self.remedy = "lower `lr`, `cutoff`, or `doc_lr`" if model.config.doc_dim else "lower `lr` or `cutoff`"

    def begin(self) -> State:
        self.model.begin()
        return self.state()

    def state(self) -> State:
        return tuple(array.copy() for array in self.model.carried())

    def step(
        self, pieces: tuple[np.ndarray, np.ndarray], state: State, number: int, lr: float
    ) -> tuple[float, int, float, State]:
        """Train each thread on its piece; return (nats, words predicted, 0.0, state)."""
        for array, value in zip(self.model.carried(), state):
            array[:] = value
        text, cuts = pieces
        nats = -float(self.model.train(text, cuts, lr).sum())
        predicted = sum(np.count_nonzero(text[begin + 1 : end + 1] >= 0) for begin, end in cuts)
        return nats, int(predicted), 0.0, self.state()
