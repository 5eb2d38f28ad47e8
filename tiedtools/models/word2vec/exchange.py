"""Exchange of changes between the ranks that train one word2vec model.

Each rank trains its own copy. An exchange sums the changes of a range of rows over all ranks, in blocks and while
training continues, and replaces each rank's own changes by a share of the sum; see kernels.exchange.combine.
"""

import math
import time
from typing import Any

import numpy as np

from tiedtools.kernels.base.arrays import aligned, imagining, line_up
from tiedtools.kernels.word2vec import exchange
from tiedtools.models.word2vec.model import Word2Vec

BLOCK = 1 << 13  # rows that are summed together
FREQUENT = 1 << 10  # most frequent rows, part of each exchange; every second has twice as many, and so on

# Occurrences of a word after which its row has moved a fraction 1 - 1/e towards its optimum, at the learning rate of
# one process, chosen by held-out loss and correlations on 8 ranks (docs/mpi.md): (whether CBOW, whether tied).
SATURATION = {(True, False): 120.0, (True, True): 60.0, (False, False): 80.0, (False, True): 23.0}


class Part:
    """A matrix with its rows in order of decreasing frequency.

    base   the matrix as of the last exchange of each row, equal on all ranks
    rates  occurrences of each row per token of the text, in saturations; float64 [rows]
    since  number of the token of the whole run up to which each row was exchanged; int64 [rows]
    """

    def __init__(self, matrix, rates, now):
        self.matrix, self.rates = matrix, rates
        self.base = aligned(*matrix.shape)
        self.base[:] = matrix
        self.since = np.full(len(matrix), now)


def parts(model, thresholds, lr_factor, now):
    """Return the Parts of a Word2Vec; see Exchange."""
    emb_in, emb_out, proj = model.padded
    config, counts, V = model.config, model.vocab.counts, len(model.vocab)
    kept = thresholds / 0xFFFFFFFF  # in subsampling
    rates = counts / counts.sum() * kept * lr_factor / SATURATION[config.cbow, model.tied]
    found = [Part(emb_in, rates, now)]
    if not model.tied and config.negative:
        found.append(Part(emb_out[:V], rates, now))
    if config.hs:
        found.append(Part(emb_out[model.first_node :][::-1], np.full(V - 1, math.inf), now))
    if proj.size:
        found.append(Part(proj, np.full(len(proj), math.inf), now))
    return found


def memory(vocab, config):
    """Return the bytes that an Exchange needs for a model."""
    with imagining() as sizes:
        Word2Vec(vocab, config, drawn=False)
    return sum(sizes) + 3 * 4 * BLOCK * (config.size + 1)


class Exchange:
    """Sums of changes in the background.

    thresholds  of subsampling, as tables.subsampling_thresholds
    ranks       the Ranks
    lr_factor   by which the learning rate exceeds that of one process
    half        send changes as bfloat16
    delay       seconds that each exchange takes at least, to simulate a slow network
    now         number of tokens that all ranks have trained on before
    flags       sum of the flags that the ranks gave with the last exchange
    sent        bytes summed by this rank
    """

    def __init__(self, model, thresholds, ranks, lr_factor=1.0, half=False, delay=0.0, now=0):
        self.parts, self.ranks, self.delay = parts(model, thresholds, lr_factor, now), ranks, delay
        width = model.padded[0].shape[1]
        rows = min(BLOCK, max(len(part.matrix) for part in self.parts))
        size = rows * (width + 1) + 2
        self.own, self.total = line_up(size), line_up(size)
        self.narrow = [line_up(size // 2, np.uint32) for _ in range(2 * half)]  # own and total, as bfloat16
        self.pending: list[Any] = []
        self.complete: Any = None
        self.flags = self.sent = self.count = 0

    @property
    def busy(self):
        """Whether an exchange is under way."""
        return bool(self.pending)

    def start(self, flag, now, everything=False):
        """Start an exchange of the most frequent rows, or of all.

        flag  0 or 1; the sum over all ranks is in `flags` when the exchange is complete
        now   number of tokens that all ranks have trained on, equal on all ranks
        """
        self.count += 1
        top = FREQUENT * (self.count & -self.count)
        self.flag, self.now, self.due = flag, now, time.monotonic() + self.delay
        self.pending = [
            (part, first, min(first + BLOCK, last))
            for part in self.parts
            for last in [len(part.matrix) if everything else min(top, len(part.matrix))]
            for first in range(0, last, BLOCK)
        ]
        self.send()

    def views(self, buffer):
        """Return the parts of a buffer for the first pending block: changes [rows, P], ranks [rows], flags [1]."""
        part, first, last = self.pending[0]
        rows, width = last - first, part.matrix.shape[1]
        n = rows * width
        return buffer[:n].reshape(rows, width), buffer[n : n + rows], buffer[n + rows : n + rows + 1]

    def used(self):
        """Return the numbers of a buffer that are sent for the first pending block, an even number."""
        own, ranks, flag = self.views(self.own)
        return (own.size + ranks.size + flag.size + 1) // 2 * 2

    def send(self):
        """Start the sum of the first pending block."""
        part, first, last = self.pending[0]
        own, ranks, flag = self.views(self.own)
        exchange.take_changes(own, ranks, part.matrix[first:last], part.base[first:last])
        flag[0] = self.flag
        used = self.used()
        if self.narrow:
            mine, everyones = (packed[: used // 2] for packed in self.narrow)
            exchange.narrow(mine, self.own[:used])
            self.complete = self.ranks.start_sum(everyones, mine, exchange.add_narrow)
        else:
            mine = self.own[:used]
            self.complete = self.ranks.start_sum(self.total[:used], mine)
        self.sent += mine.nbytes

    def poll(self):
        """Complete what is complete, and start the next block. Returns whether the exchange has just been completed."""
        while self.pending and self.complete():
            if len(self.pending) == 1 and time.monotonic() < self.due:
                self.complete = lambda: True
                return False
            self.receive()
            if not self.pending:
                return True
            self.send()
        return False

    def receive(self):
        part, first, last = self.pending[0]
        (own, _, _), (total, ranks, flags) = self.views(self.own), self.views(self.total)
        if self.narrow:
            used = self.used()
            exchange.widen(self.total[:used], self.narrow[1][: used // 2])
        occurrences = np.minimum(part.rates[first:last] * (self.now - part.since[first:last]), 1e9)
        occurrences[np.isnan(occurrences)] = 0
        rows = slice(first, last)
        exchange.combine(part.matrix[rows], part.base[rows], own, total, ranks, occurrences)
        part.since[rows] = self.now
        self.flags = int(flags[0])
        del self.pending[0]

    def settle(self):
        """Set the matrices to their values after the last exchange; if it was of all rows, all ranks are then equal."""
        for part in self.parts:
            part.matrix[:] = part.base
