"""An epoch of a text as truncated backpropagation through time walks it: streams side by side, window after window."""

import math

import numpy as np

from tiedtools.errors import TiedtoolsError


class Windows:
    """The batches, as fit.py wants them, of models that are trained by windows.

    Window k of an epoch is (ids, targets), int32 [T, B] each; the last one may be shorter.

    Raises TiedtoolsError for too short a text.
    """

    def __init__(self, ids, T, B):
        self.streams, self.T = streams(ids, B), T
        self.words = self.streams[1:].size
        self.starts = range(0, len(self.streams) - 1, T)
        self.steps = len(self.starts)

    @staticmethod
    def memory(config, n):
        """Bytes for a text of n words."""
        return 4 * n

    def begin(self, epoch):
        """The order is the same in all epochs."""

    def __getitem__(self, k):
        ids = self.streams[self.starts[k] : self.starts[k] + self.T + 1]
        return ids[:-1], ids[1:]


class Learner:
    """Trains by an optimizer a model with

    config      a dataclass with batch (B)
    start(batch)
                state, a tuple of arrays, axis 1 of length batch: before any word
    train_step(ids, targets, state, number)
                int32 [T, B] each -> (nll_nats, n_predicted, state); the gradient goes to where the optimizer finds it.
                Target -1: not predicted. `number` is that of the step among those of all epochs, and seeds all that is
                random.
    """

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def begin(self):
        return self.model.start(self.model.config.batch)

    def step(self, window, state, number, lr):
        nll, predicted, state = self.model.train_step(*window, state, number)
        norm = self.optimizer.update(lr) if math.isfinite(nll) else math.nan
        return nll, predicted, norm, state


def streams(ids, batch):
    """The text as `batch` equal, contiguous streams side by side, without the remainder: int32 [length, batch]."""
    length = len(ids) // batch
    if length < 2:
        raise TiedtoolsError(f"{len(ids):,} tokens are too few for {batch} streams: lower `batch` or give more text")
    return np.ascontiguousarray(ids[: length * batch].reshape(batch, length).T)
