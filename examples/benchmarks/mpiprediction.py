"""Predict the speed of `tiedtools w2v` on many machines.

A run of W words in E epochs on N machines, one rank each, of r words/s:

    run       = start + W/E / (N * counting) + E epochs + V * size / writing
    epoch     = intervals until W/E words are done, then an exchange of all V rows
    interval  = words / (N * r) + handling / cores          a core that handles changes does not train
    exchange  = handling + 2 (N-1)/N * bytes / bandwidth + blocks * 2 log2(N) * latency
    handling  = bytes in float32 / handled                  computing the changes, and combining them

Exchange j has the first min(V, FREQUENT * (j & -j)) rows of each matrix, in blocks of BLOCK. It starts at the end of
interval j, or when exchange j - 1 is complete. Training waits at the end of interval j + 2 until it is complete, and
intervals adapt as in training (`Interval`). An all-reduce by halving and doubling sends 2 (N-1)/N of its bytes, as a
ring does, in 2 log2(N) messages.

The time to merge vocabularies is omitted. The vocabulary does not depend on the text's length. One machine needs no
exchanges.
"""

import dataclasses
import math

from tiedtools.base.errors import Contradiction
from tiedtools.models.word2vec.exchange import BLOCK, FREQUENT
from tiedtools.models.word2vec.ranksrun import STEP, Interval

MACHINES, NETWORKS = (1, 2, 4, 8, 16, 32), (1, 10, 100)
GRID = [10 ** (k / 10) for k in range(60, 141)]  # words of a run, W


@dataclasses.dataclass
class Setup:
    """Parameters of one machine, its network, and the model; the defaults were measured, see docs/mpi.md.

    words_per_s     training speed of one machine        cores    cores of a machine
    matrices        1 if input and output vectors are tied, otherwise 2
    exchange_words  words of all machines between two exchanges; 0: adapted, as in `tiedtools w2v`
    bytes           bytes of an exchanged number; 2: bfloat16
    gbits           bandwidth in each direction in Gbit/s
    latency         seconds per message; MPICH polls about 4 times
    handled         bytes/s of changes that a core computes and combines
    counting        words/s that one machine counts        writing  numbers/s that one machine writes
    start           seconds to start one process           start_mpi  seconds to start ranks
    """

    words_per_s: float = 3.7e6
    cores: int = 2
    vocabulary: int = 400_000
    size: int = 300
    matrices: int = 2
    epochs: int = 5
    exchange_words: float = 0.0
    bytes: int = 4
    gbits: float = 10.0
    latency: float = 4 * STEP
    handled: float = 0.7e9
    counting: float = 28e6
    writing: float = 50e6
    start: float = 1.1
    start_mpi: float = 2.0

    @classmethod
    def of(cls, settings):
        """Parse "name=value" strings. Raises TiedtoolsError for an unknown name or a value that is not a number."""
        types, values = {field.name: type(field.default) for field in dataclasses.fields(cls)}, {}
        for name, _, value in (setting.partition("=") for setting in settings):
            try:
                values[name] = types[name](float(value))
            except (KeyError, ValueError, OverflowError):
                raise Contradiction(f"{name}={value}: give a number for one of {', '.join(types)}") from None
            if not (0 < values[name] < math.inf or values[name] == 0 and name in ("exchange_words", "latency")):
                raise Contradiction(f"{name}={value}: give a positive number")
        return cls(**values)

    def exchange(self, n, rows):
        """Return (seconds to exchange the first `rows` rows, seconds in which a core handles them)."""
        numbers = self.matrices * rows * (-(-self.size // 16) * 16 + 1)  # rows are padded to cache lines
        messages = self.matrices * -(-rows // BLOCK) * 2 * math.ceil(math.log2(n))
        handling = 4 * numbers / self.handled
        sent = 2 * (n - 1) / n * numbers * self.bytes
        return handling + sent / (self.gbits * 1e9 / 8) + messages * self.latency, handling

    def training(self, n, words):
        """Return the seconds of training on `words` words, all epochs together, on n machines."""
        if n == 1:
            return words / self.words_per_s
        cycle = 1 << max(0, math.ceil(math.log2(self.vocabulary / FREQUENT)))  # exchanges, of which one has all rows
        exchanges = [self.exchange(n, min(self.vocabulary, FREQUENT << k)) for k in range(cycle.bit_length())]
        interval = Interval(n, words, True, self.exchange_words or None)
        first, *others = (self.epoch(n, words / self.epochs, interval, exchanges) for _ in range(min(2, self.epochs)))
        return first + (self.epochs - 1) * sum(others) + self.epochs * exchanges[-1][0]

    def epoch(self, n, words, interval, exchanges):
        """Return the seconds of an epoch without its last exchange.

        interval   an Interval, which is adapted
        exchanges  results of `exchange` for FREQUENT rows, twice as many, and so on
        """
        cycle, done, now, ends = 1 << len(exchanges) - 1, 0.0, 0.0, [0.0] * 3
        times, share = [(done, now)], 0.0
        while done + 1.5 * interval.words < words and len(times) <= 3 * cycle + 100:
            j = len(times)
            seconds, handling = exchanges[min(j & -j, cycle).bit_length() - 1]
            waited = max(0.0, ends[-3] - now)
            duration = waited + interval.words / (n * self.words_per_s) + handling / self.cores
            now, done = now + duration, done + interval.words
            ends = [*ends[-2:], max(now, ends[-1]) + seconds]
            interval.adapt(share)  # of the exchange before
            share = (waited + handling / self.cores) / duration
            times.append((done, now))
        if done + 1.5 * interval.words < words:  # the rest repeats the last cycle
            start, since = times[-1 - cycle]
            more = (now - since) * (words - done) / (done - start)
            return max(now + more, ends[-1] + more)
        return max(max(now, ends[-3]) + (words - done) / (n * self.words_per_s), ends[-1])

    def run(self, n, words):
        """Return the seconds of a whole run of `words` words, all epochs together, on n machines."""
        once = words / self.epochs / (n * self.counting) + self.vocabulary * self.size / self.writing
        return (self.start if n == 1 else self.start_mpi) + once + self.training(n, words)

    def rate(self, n, words):
        """Return the training speed of n machines in words/s."""
        return words / self.training(n, words)

    def words_for(self, n, speedup):
        """Return the smallest run of GRID from which n machines exceed this speedup; None: no run."""
        smallest = None
        for words in reversed(GRID):
            if self.run(1, words) <= speedup * self.run(n, words):
                break
            smallest = words
        return smallest


def table(setup, words):
    """Return the lines of a table: the speed for `words` words, and the runs for which several machines pay off.

    It has rows for each bandwidth in NETWORKS, or for the setup's own if that is not the default.
    """
    lines = [
        f"{words / 1e9:g} billion words in {setup.epochs} epochs; runs in billions of words, 1 significant digit",
        "",
        "| Gbit/s | machines | million words/s | speedup | faster from | half-efficient from |",
        "|---|---|---|---|---|---|",
    ]
    for gbits in NETWORKS if setup.gbits == Setup.gbits else [setup.gbits]:
        s = dataclasses.replace(setup, gbits=gbits)
        for n in MACHINES:
            cells = [f"{gbits} | {n} | {s.rate(n, words) / 1e6:,.1f} | {s.run(1, words) / s.run(n, words):.2f}"]
            for least in [s.words_for(n, 1), s.words_for(n, n / 2)] if n > 1 else ["", ""]:
                cells.append("never" if least is None else least and f"{float(f'{least:.1g}') / 1e9:,g}")
            lines.append(f"| {' | '.join(cells)} |")
    return lines
