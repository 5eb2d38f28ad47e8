"""Batches of sentence pairs of similar length."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.text.sources import counted
from tiedtools.training.learner import Batch

GROUP = 20  # batches whose pairs are sorted by length together, as in DL4MT


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
        return np.where(
            t < self.lengths[rows], self.ids[np.minimum(self.starts[rows] + t, len(self.ids) - 1)], np.int32(-1)
        )


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
        for omitted, reason in (empty, "empty on one side"), (long, f"longer than {longest} words"):
            if omitted.any():
                log.info(f"not trained on: {counted(np.count_nonzero(omitted), 'sentence pair')} {reason}")
        self.rows = np.flatnonzero(~(empty | long))
        if not len(self.rows):
            raise TiedtoolsError("no sentence pair to train on; give more text, or raise `max_length`")
        self.words = int(self.target.lengths[self.rows].sum())
        self.steps = self.most = -(-len(self.rows) // batch)
        self.begin(0)

    @staticmethod
    def memory(config: Any, n: int) -> int:
        """Return the bytes needed for both texts, n words together."""
        return 12 * n

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


def ordered(
    source: np.ndarray, target: np.ndarray, batch: int, positions: int = 1 << 15
) -> Iterator[tuple[np.ndarray, Batch]]:
    """Yield (rows, Batch) over all pairs of a bitext, in batches of similar length; see Pairs and by_length."""
    source, target = Lines(source), Lines(target)
    lengths = np.maximum(source.lengths, target.lengths)
    for rows in by_length(lengths, batch, positions):
        yield rows, Batch(source.padded(rows), target.padded(rows))
