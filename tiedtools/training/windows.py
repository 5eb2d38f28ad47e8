"""An epoch of a text as truncated backpropagation through time walks it: streams side by side, window after window."""

import math

import numpy as np

from tiedtools.errors import TiedtoolsError


class Windows:
    """The feed, as fit.py wants it, of a model with

    config      a dataclass with steps (T), batch (B)
    start(batch)
                state, a tuple of arrays, axis 1 of length batch: before any word
    train_step(ids, targets, state, step)
                int32 [T, B] each -> (nll_nats, n_predicted, state); the gradient goes to where `update` finds it.
                Target -1: not predicted. `step` numbers the steps of all epochs and seeds all that is random.
    update(lr, clip)
                a step of SGD, the global norm of the gradient scaled down to `clip` (0: not); returns the norm before
                that. Where it is not finite, the parameters stay as they were.

    Raises TiedtoolsError for too short a text.
    """

    def __init__(self, model, ids):
        self.model, self.streams = model, streams(ids, model.config.batch)
        self.words = self.streams[1:].size
        self.starts = range(0, len(self.streams) - 1, model.config.steps)
        self.steps = len(self.starts)

    @staticmethod
    def memory(config, n):
        """Bytes for a text of n words."""
        return 4 * n

    def begin(self, epoch):
        return self.model.start(self.model.config.batch)

    def step(self, epoch, k, state, lr, clip):
        start = self.starts[k]
        ids = self.streams[start : start + self.model.config.steps + 1]
        nll, predicted, state = self.model.train_step(ids[:-1], ids[1:], state, epoch * self.steps + k)
        norm = self.model.update(lr, clip) if math.isfinite(nll) else math.nan
        return nll, predicted, norm, state


def streams(ids, batch):
    """The text as `batch` equal, contiguous streams side by side, without the remainder: int32 [length, batch]."""
    length = len(ids) // batch
    if length < 2:
        raise TiedtoolsError(f"{len(ids):,} tokens are too few for {batch} streams: lower `batch` or give more text")
    return np.ascontiguousarray(ids[: length * batch].reshape(batch, length).T)
