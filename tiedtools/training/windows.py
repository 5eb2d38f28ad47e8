"""Batches for truncated backpropagation through time: parallel streams, split into windows."""

from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.text.sources import counted
from tiedtools.training.learner import Batch

# Lengths of random windows: standard deviation, minimum, and probability of the mean T instead of T / 2, as in the code
# of Merity et al. 2018.
DEVIATION, SHORTEST, FULL = 5, 5, 0.95


class Windows:
    """The batches of a text, in the form that fit.py requires, for truncated BPTT.

    Batch k of an epoch has T steps; the last one may be shorter.

    Raises TiedtoolsError if the text is too short.
    """

    def __init__(self, ids: np.ndarray, T: int, B: int) -> None:
        self.streams, self.T = streams(ids, B), T
        self.words = self.streams[1:].size
        self.starts = np.arange(0, len(self.streams) - 1, T)
        self.steps = self.most = len(self.starts)

    @staticmethod
    def memory(config: Any, n: int) -> int:
        """Return the bytes needed for a text of n words."""
        return 4 * n

    def begin(self, epoch: int) -> None:
        """Do nothing: the order is the same in all epochs."""

    def __getitem__(self, k: int) -> Batch:
        ids = self.streams[self.starts[k] : self.starts[k] + self.T + 1]
        return Batch(ids[:-1], ids[1:])


class RandomWindows(Windows):
    """Windows of random lengths, drawn for each epoch (Merity et al. 2018, section 5).

    A length is normal with mean T, or T / 2 with probability .05, and standard deviation 5; it is at least 5.

    scaled  multiply the learning rate by the length / T, because the objective is a mean over the window
    """

    def __init__(self, ids: np.ndarray, T: int, B: int, seed: int, scaled: bool) -> None:
        super().__init__(ids, T, B)
        self.seed, self.scaled = seed, scaled
        self.most = (len(self.streams) - 2) // SHORTEST + 1
        self.begin(0)

    @staticmethod
    def longest(T: int) -> int:
        """Return a length that windows practically never exceed."""
        return max(SHORTEST, T + 5 * DEVIATION)

    def begin(self, epoch: int) -> None:
        """Draw the lengths of an epoch's windows."""
        rng, T = np.random.default_rng([self.seed, epoch]), self.T
        means = np.where(rng.random(self.most) < FULL, T, T / 2)
        ends = np.maximum(SHORTEST, rng.normal(means, DEVIATION).astype(np.int64)).cumsum()
        last = len(self.streams) - 1
        self.starts = np.append(0, ends[ends < last])
        self.ends = np.append(self.starts[1:], last)
        self.steps = len(self.starts)

    def __getitem__(self, k: int) -> Batch:
        ids = self.streams[self.starts[k] : self.ends[k] + 1]
        return Batch(ids[:-1], ids[1:], (len(ids) - 1) / self.T if self.scaled else 1.0)


def streams(ids: np.ndarray, batch: int) -> np.ndarray:
    """Return the text as `batch` contiguous streams of equal length, int32 [length, batch]; drop the remainder."""
    length = len(ids) // batch
    if length < 2:
        problem = f"{counted(len(ids), 'token')} {'is' if len(ids) == 1 else 'are'} too few"
        raise TiedtoolsError(f"{problem} for batch size {batch}; lower `batch` or give more text")
    return np.ascontiguousarray(ids[: length * batch].reshape(batch, length).T)
