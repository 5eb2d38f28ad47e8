"""Batches for truncated backpropagation through time: parallel streams, split into windows."""

import math

import numpy as np

from tiedtools.errors import TiedtoolsError
from tiedtools.text.sources import counted


class Windows:
    """The batches of a text, in the form that fit.py requires, for truncated BPTT.

    Window k of an epoch is (ids, targets), int32 [T, B] each; the last one may be shorter.

    Raises TiedtoolsError if the text is too short.
    """

    def __init__(self, ids, T, B):
        self.streams, self.T = streams(ids, B), T
        self.words = self.streams[1:].size
        self.starts = range(0, len(self.streams) - 1, T)
        self.steps = len(self.starts)

    @staticmethod
    def memory(config, n):
        """Return the bytes needed for a text of n words."""
        return 4 * n

    def begin(self, epoch):
        """Do nothing: the order is the same in all epochs."""

    def __getitem__(self, k):
        ids = self.streams[self.starts[k] : self.starts[k] + self.T + 1]
        return ids[:-1], ids[1:]


class Learner:
    """Learner that trains a model with an optimizer.

    The model must have:

    config      a dataclass with batch (B)
    start(batch)
                initial state, a tuple of arrays whose axis 1 has length batch
    train_step(ids, targets, state, number)
                int32 [T, B] each -> (nll_nats, n_predicted, state); leaves the gradient where the optimizer reads it.
                Target -1: not predicted. `number` counts the steps of all epochs and seeds all randomness.
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
    """Return the text as `batch` contiguous streams of equal length, int32 [length, batch]; drop the remainder."""
    length = len(ids) // batch
    if length < 2:
        few = f"{counted(len(ids), 'token')} {'is' if len(ids) == 1 else 'are'} too few"
        raise TiedtoolsError(f"{few} for batch size {batch}; lower `batch` or give more text")
    return np.ascontiguousarray(ids[: length * batch].reshape(batch, length).T)
