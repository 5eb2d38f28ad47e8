"""Batches of texts and of sentence pairs, and the learner that trains networks of batched layers on them."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.network.network import State
from tiedtools.network.optimizers import Optimizer
from tiedtools.text.sources import counted

# Lengths of random windows: standard deviation, minimum, and probability of the mean T instead of T / 2, as in the code
# of Merity et al. 2018.
DEVIATION, SHORTEST, FULL = 5, 5, 0.95
GROUP = 20  # batches whose pairs are sorted by length together, as in DL4MT


class Batch(NamedTuple):
    """Words of a step, int32 [T, B] each, and a factor of its learning rate.

    For a translation model, ids are the source sentences, which may be longer or shorter than the targets.
    """

    ids: np.ndarray
    targets: np.ndarray
    lr_factor: float = 1.0


class Learner:
    """Learner that trains a model with an optimizer, as fit.py requires, on batches. The model must have:

    begin()     initial state of an epoch, a tuple of arrays
    train_step(ids, targets, state, number)
                int32 [T, B] each -> (nll_nats, n_predicted, state); leaves the gradient where the optimizer reads it.
                Target -1: not predicted. `number` counts the steps of all epochs and seeds all randomness.
    """

    def __init__(self, model: Any, optimizer: Optimizer) -> None:
        self.model, self.optimizer = model, optimizer

    def begin(self) -> State:
        return self.model.begin()

    def step(self, batch: Batch, state: State, number: int, lr: float) -> tuple[float, int, float, State]:
        ids, targets, lr_factor = batch
        nll, predicted, state = self.model.train_step(ids, targets, state, number)
        norm = self.optimizer.update(lr * lr_factor) if math.isfinite(nll) else math.nan
        return nll, predicted, norm, state


class Windows:
    """The batches of a text, in the form that fit.py requires, for truncated BPTT.

    Batch k of an epoch has T steps; the last one may be shorter.

    Raises TiedtoolsError if the text is too short.
    """

    scaled = False  # see RandomWindows

    def __init__(self, ids: np.ndarray, T: int, B: int) -> None:
        self.streams, self.T = streams(ids, B), T
        self.words = self.streams[1:].size
        self.bounds = np.append(np.arange(0, len(self.streams) - 1, T), len(self.streams) - 1)
        self.steps = self.most = len(self.bounds) - 1

    @staticmethod
    def memory(config: Any, n: int) -> int:
        """Return the bytes needed for a text of n words."""
        return 4 * n

    def begin(self, epoch: int) -> None:
        """Do nothing: the order is the same in all epochs."""

    def __getitem__(self, k: int) -> Batch:
        ids = self.streams[self.bounds[k] : self.bounds[k + 1] + 1]
        return Batch(ids[:-1], ids[1:], (len(ids) - 1) / self.T if self.scaled else 1.0)


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
        self.bounds = np.concatenate([[0], ends[ends < last], [last]])
        self.steps = len(self.bounds) - 1


def streams(ids: np.ndarray, batch: int) -> np.ndarray:
    """Return the text as `batch` contiguous streams of equal length, int32 [length, batch]; drop the remainder."""
    length = len(ids) // batch
    if length < 2:
        problem = f"{counted(len(ids), 'token')} {'is' if len(ids) == 1 else 'are'} too few"
        raise TiedtoolsError(f"{problem} for batch size {batch}; lower `batch` or give more text")
    return np.ascontiguousarray(ids[: length * batch].reshape(batch, length).T)


class Lines:
    """The lines of a text of int32 ids, each ended by 0: their starts, and their lengths including the 0."""

    def __init__(self, ids: np.ndarray) -> None:
        self.ids = ids
        ends = np.flatnonzero(ids == 0) + 1
        self.starts = np.append(0, ends[:-1])
        self.lengths = ends - self.starts

    def padded(self, rows: np.ndarray) -> np.ndarray:
        """Return the lines `rows` as the columns of an array, int32 [longest, rows], padded with -1."""
        t = np.arange(self.lengths[rows].max(initial=0))[:, None]
        positions = np.minimum(self.starts[rows] + t, len(self.ids) - 1)
        return np.where(t < self.lengths[rows], self.ids[positions], np.int32(-1))


class Pairs:
    """The batches of a bitext, in the form that fit.py requires: ids of the source, [S, B], and of the target, [T, B].

    Each sentence is ended by `</s>` (0) and padded with -1.

    An epoch visits the pairs in random order, in groups of 20 batches. The pairs of a group are sorted by the lengths
    of target and source and cut into batches, so that a batch has little padding; then the batches of all groups are
    shuffled, which DL4MT does not do. The order depends only on `seed` and the epoch.

    source, target  int32 ids, 0 at the end of each line
    batch    pairs in a batch; the last of an epoch may have fewer
    longest  omit pairs with more words, `</s>` included, on either side; None: no limit. Pairs with an empty side are
             always omitted

    Raises TiedtoolsError if no pair remains.
    """

    def __init__(
        self, source: np.ndarray, target: np.ndarray, batch: int, seed: int, longest: int | None = None
    ) -> None:
        self.source, self.target, self.batch, self.seed = Lines(source), Lines(target), batch, seed
        lengths = np.stack([self.source.lengths, self.target.lengths])
        empty = lengths.min(0) == 1
        long = ~empty & (lengths.max(0) > (longest or lengths.max()))
        most = longest and longest - 1  # without `</s>`
        for omitted, reason in (empty, "empty on one side"), (long, f"longer than {most} words or symbols"):
            if omitted.any():
                log.info(f"not trained on: {counted(np.count_nonzero(omitted), 'sentence pair')} {reason}")
        self.rows = np.flatnonzero(~(empty | long))
        if not len(self.rows):
            raise TiedtoolsError("no sentence pair to train on; give more text, or raise `max_length`")
        self.words = int(self.target.lengths[self.rows].sum())
        self.steps = self.most = -(-len(self.rows) // batch)
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """Put the pairs into the order of an epoch."""
        rng = np.random.default_rng([self.seed, epoch])
        rows = rng.permutation(self.rows)
        group = np.arange(len(rows)) // (GROUP * self.batch)
        rows = rows[np.lexsort((self.source.lengths[rows], self.target.lengths[rows], group))]
        batches = np.split(rows, range(self.batch, len(rows), self.batch))
        self.order = [batches[k] for k in rng.permutation(len(batches))]

    def __getitem__(self, k: int) -> Batch:
        return Batch(self.source.padded(self.order[k]), self.target.padded(self.order[k]))


def by_length(lengths: Any, batch: int, positions: int) -> Iterator[np.ndarray]:
    """Yield rows, int arrays, of texts in batches of similar length, longest first.

    lengths    int [n]; each text is in one batch
    batch      most texts in a batch
    positions  most positions in a batch, padding included, unless it is a single text
    """
    order = np.argsort(-np.asarray(lengths), kind="stable")
    while len(order):
        n = min(batch, max(1, positions // max(1, lengths[order[0]])))
        yield order[:n]
        order = order[n:]
