"""Exchange of changes between the ranks that train one word2vec model.

Each rank trains its own copy. An exchange sums the changes of a range of rows over all ranks, in blocks and while
training continues, and replaces each rank's changes by a share of the sum; see kernels.word2vec.exchange.combine.
"""

import math
import time
from typing import Any

import numpy as np

from tiedtools.kernels.base.arrays import aligned, imagining, line_up
from tiedtools.kernels.word2vec import exchange
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.parallel.ranks import Ranks
from tiedtools.text.vocab import Vocab

BLOCK = 1 << 13  # rows summed together
FREQUENT = 1 << 10  # most frequent rows, in each exchange; every second exchange has twice as many, and so on

# Occurrences of a word after which its row has moved a fraction 1 - 1/e toward its optimum, at the learning rate of
# one process, chosen by held-out loss and correlations on 8 ranks (docs/mpi.md): (whether CBOW, whether tied).
SATURATION = {(True, False): 120.0, (True, True): 60.0, (False, False): 80.0, (False, True): 23.0}


class SharedMatrix:
    """A matrix that all ranks train, with its rows in order of decreasing frequency.

    base   the values after the last exchange of each row, equal on all ranks
    rates  occurrences of each row per token of the text, in saturations; float64 [rows]
    since  number of the token of the whole run up to which each row was exchanged; int64 [rows]
    """

    def __init__(self, values: np.ndarray, rates: np.ndarray, now: int) -> None:
        self.values, self.rates = values, rates
        self.base = aligned(*values.shape)
        self.base[:] = values
        self.since = np.full(len(values), now)


def shared_matrices(model: Word2Vec, thresholds: np.ndarray, lr_factor: float, now: int) -> list[SharedMatrix]:
    """Return the SharedMatrix objects of a Word2Vec; see Exchange."""
    emb_in, emb_out, proj = model.padded
    config, counts, V = model.config, model.vocab.counts, len(model.vocab)
    sampled = thresholds / 0xFFFFFFFF  # fraction of the occurrences that subsampling leaves
    rates = counts / counts.sum() * sampled * lr_factor / SATURATION[config.cbow, model.tied]
    matrices = [SharedMatrix(emb_in[:V], rates, now)]
    if model.ngrams:
        owners = np.repeat(np.arange(V), np.diff(model.ngrams.starts))
        rates_of_rows = np.bincount(model.ngrams.rows, rates[owners], len(emb_in))
        matrices.append(SharedMatrix(emb_in[V:], rates_of_rows[V:], now))
    if not model.tied and config.negative:
        matrices.append(SharedMatrix(emb_out[:V], rates, now))
    if config.hs:
        matrices.append(SharedMatrix(emb_out[model.first_node :][::-1], np.full(V - 1, math.inf), now))
    if proj.size:
        matrices.append(SharedMatrix(proj, np.full(len(proj), math.inf), now))
    return matrices


def memory(vocab: Vocab, config: Config) -> int:
    """Return the bytes that an Exchange needs for a model."""
    with imagining() as sizes:
        Word2Vec(vocab, config, drawn=False)
    return sum(sizes) + 3 * 4 * BLOCK * (config.size + 1)


class Exchange:
    """Sums the changes of all ranks in the background.

    thresholds  the result of tables.subsampling_thresholds
    ranks       the Ranks
    lr_factor   learning rate, relative to training in one process
    half        send changes as bfloat16
    delay       minimum duration of an exchange in seconds, to simulate a slow network
    now         number of tokens that all ranks have trained on before
    flags       sum of the ranks' flags in the last exchange
    losses      share of time that each rank had lost, as given to `start` of the last exchange; float32 [ranks]
    seconds     time this rank has spent on computing and combining changes
    sent        bytes summed by this rank
    """

    def __init__(
        self, model: Word2Vec, thresholds: np.ndarray, ranks: Ranks, lr_factor: float = 1.0, half: bool = False,
        delay: float = 0.0, now: int = 0,
    ) -> None:  # fmt: skip
        self.matrices, self.ranks, self.delay = shared_matrices(model, thresholds, lr_factor, now), ranks, delay
        width = model.padded[0].shape[1]
        rows = min(BLOCK, max(len(matrix.values) for matrix in self.matrices))
        size = (rows * (width + 1) + ranks.size) // 2 * 2 + 2  # at least `sent_size` of any block, and even
        self.changes, self.total = line_up(size), line_up(size)
        self.narrow = [line_up(size // 2, np.uint32) for _ in range(2 * half)]  # changes and total, as bfloat16
        self.pending: list[Any] = []
        self.complete: Any = None
        self.flags = self.sent = self.count = 0
        self.losses, self.seconds = np.zeros(ranks.size, np.float32), 0.0

    @property
    def busy(self) -> bool:
        """Whether an exchange is under way."""
        return bool(self.pending)

    def start(self, flag: bool, now: int, lost: float = 0.0, stretch: float = 1.0, everything: bool = False) -> None:
        """Start an exchange of the most frequent rows, or of all.

        flag     0 or 1; the sum over all ranks is in `flags` when the exchange is complete
        now      number of tokens that all ranks have trained on, equal on all ranks
        lost     share of the time since the last exchange that this rank has lost; `losses` then has those of all ranks
        stretch  factor of the saturation, equal on all ranks
        """
        self.count += 1
        top = FREQUENT * (self.count & -self.count)
        self.flag, self.now, self.lost, self.stretch = flag, now, lost, stretch
        self.due = time.monotonic() + self.delay
        self.pending = [
            (matrix, first, min(first + BLOCK, last))
            for matrix in self.matrices
            for last in [len(matrix.values) if everything else min(top, len(matrix.values))]
            for first in range(0, last, BLOCK)
        ]
        self.send()

    def views(self, buffer: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return views of a buffer for the first pending block: changes [rows, P], ranks [rows], flags [1 + ranks]."""
        matrix, first, last = self.pending[0]
        rows, width = last - first, matrix.values.shape[1]
        n = rows * width
        return buffer[:n].reshape(rows, width), buffer[n : n + rows], buffer[n + rows : n + rows + 1 + self.ranks.size]

    def sent_size(self) -> int:
        """Return the number of elements to send for the first pending block, rounded up to an even number."""
        return (sum(view.size for view in self.views(self.changes)) + 1) // 2 * 2

    def send(self) -> None:
        """Start the sum of the first pending block."""
        since = time.monotonic()
        matrix, first, last = self.pending[0]
        changes, ranks, flags = self.views(self.changes)
        exchange.take_changes(changes, ranks, matrix.values[first:last], matrix.base[first:last])
        flags[:] = 0
        flags[0], flags[1 + self.ranks.rank] = self.flag, self.lost
        size = self.sent_size()
        if self.narrow:
            message, total = (packed[: size // 2] for packed in self.narrow)
            exchange.narrow(message, self.changes[:size])
            self.complete = self.ranks.start_sum(total, message, exchange.add_narrow)
        else:
            message = self.changes[:size]
            self.complete = self.ranks.start_sum(self.total[:size], message)
        self.sent += message.nbytes
        self.seconds += time.monotonic() - since

    def poll(self) -> bool:
        """Apply each complete sum, and start the next. Returns whether the exchange has just been completed."""
        while self.pending and self.complete():
            if len(self.pending) == 1 and time.monotonic() < self.due:
                self.complete = lambda: True
                return False
            self.receive()
            if not self.pending:
                return True
            self.send()
        return False

    def receive(self) -> None:
        """Replace this rank's changes of the first pending block by its share of the sum."""
        since = time.monotonic()
        matrix, first, last = self.pending[0]
        (changes, _, _), (total, ranks, flags) = self.views(self.changes), self.views(self.total)
        if self.narrow:
            size = self.sent_size()
            exchange.widen(self.total[:size], self.narrow[1][: size // 2])
        occurrences = np.minimum(matrix.rates[first:last] * (self.now - matrix.since[first:last]) / self.stretch, 1e9)
        occurrences[np.isnan(occurrences)] = 0
        rows = slice(first, last)
        exchange.combine(matrix.values[rows], matrix.base[rows], changes, total, ranks, occurrences)
        matrix.since[rows] = self.now
        self.flags, self.losses = int(flags[0]), flags[1:].copy()
        del self.pending[0]
        self.seconds += time.monotonic() - since

    def restore(self) -> None:
        """Set the matrices to their values after the last exchange; if it had all rows, all ranks are then equal."""
        for matrix in self.matrices:
            matrix.values[:] = matrix.base
