"""Predict the speed of `tiedtools w2v` on many machines.

A run of W words in E epochs on N machines, one rank each, of r words/s:

    run       = start + W/E / (N * counting) + E * epoch + V * size / writing
    epoch     = K periods, then an exchange of all V rows; K = W/E / default_period(N, W)
    period    = W/E / K / (N * r) + handling / cores        a core that handles changes does not train
    exchange  = handling + 2 (N-1)/N * bytes / bandwidth + blocks * 2 log2(N) * latency
    handling  = bytes in float32 / handled                  computing the changes, and combining them

Exchange j has the first min(V, FREQUENT * (j & -j)) rows of each matrix, in blocks of BLOCK. It starts at the end of
period j, or when exchange j - 1 is complete. Training waits at the end of period j + 2 until it is complete. An
all-reduce by halving and doubling sends 2 (N-1)/N of its bytes, as a ring does, in 2 log2(N) messages.

The time to merge vocabularies is omitted. The vocabulary does not depend on the text's length. One machine needs no
exchanges.
"""

import dataclasses
import math

from tiedtools.base.errors import Contradiction
from tiedtools.models.word2vec.exchange import BLOCK, FREQUENT
from tiedtools.models.word2vec.ranksrun import STEP, default_period

MACHINES, NETWORKS = (1, 2, 4, 8, 16, 32), (1, 10, 100)
GRID = [10 ** (k / 10) for k in range(60, 141)]  # words of a run, W


@dataclasses.dataclass
class Setup:
    """Parameters of one machine, its network, and the model; the defaults were measured, see docs/mpi.md.

    words_per_s     training speed of one machine        cores    cores of a machine
    matrices        1 if input and output vectors are tied, otherwise 2
    exchange_words  words of all machines between two exchanges; 0: as in `tiedtools w2v`
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
            except (KeyError, ValueError) as error:
                raise Contradiction(f"{name}={value}: give a number for one of {', '.join(types)}") from error
        return cls(**values)

    def exchange(self, n, rows):
        """Return (seconds to exchange the first `rows` rows, seconds in which a core handles them)."""
        numbers = self.matrices * rows * (-(-self.size // 16) * 16 + 1)  # rows are padded to cache lines
        messages = self.matrices * -(-rows // BLOCK) * 2 * math.ceil(math.log2(n))
        handling = 4 * numbers / self.handled
        sent = 2 * (n - 1) / n * numbers * self.bytes
        return handling + sent / (self.gbits * 1e9 / 8) + messages * self.latency, handling

    def epoch(self, n, words):
        """Return the seconds of one epoch of a run of `words` words on n machines."""
        epoch_words = words / self.epochs
        if n == 1:
            return epoch_words / self.words_per_s
        periods = max(1, round(epoch_words / (self.exchange_words or default_period(n, words))))
        training = epoch_words / periods / (n * self.words_per_s)
        cycle = 1 << max(0, math.ceil(math.log2(self.vocabulary / FREQUENT)))  # exchanges, of which one has all rows
        rows = [min(self.vocabulary, FREQUENT << k) for k in range(cycle.bit_length())]
        exchanges = [self.exchange(n, top) for top in rows]
        now, ends, times = 0.0, [0.0] * 3, {}
        simulated = min(periods - 1, 2 * cycle)
        for j in range(1, simulated + 1):
            seconds, handling = exchanges[min(j & -j, cycle).bit_length() - 1]
            now = max(now, ends[-3]) + training + handling / self.cores
            ends = [*ends[-2:], max(now, ends[-1]) + seconds]
            times[j] = now
        if simulated < periods - 1:  # the rest repeats the second cycle
            more = (times[2 * cycle] - times[cycle]) / cycle * (periods - 1 - simulated)
            now, ends = now + more, [end + more for end in ends]
        return max(max(now, ends[-3]) + training, ends[-1]) + self.exchange(n, self.vocabulary)[0]

    def run(self, n, words):
        """Return the seconds of a whole run of `words` words, all epochs together, on n machines."""
        once = words / self.epochs / (n * self.counting) + self.vocabulary * self.size / self.writing
        return (self.start if n == 1 else self.start_mpi) + once + self.epochs * self.epoch(n, words)

    def rate(self, n, words):
        """Return the training speed of n machines in words/s."""
        return words / (self.epochs * self.epoch(n, words))

    def words_for(self, n, speedup):
        """Return the smallest run of GRID from which n machines exceed this speedup; None: no run."""
        smallest = None
        for words in reversed(GRID):
            if self.run(1, words) <= speedup * self.run(n, words):
                break
            smallest = words
        return smallest


def table(setup, words):
    """Return the lines of a table: the speed for `words` words, and the runs for which several machines pay off."""
    lines = [
        f"{words / 1e9:g} billion words in {setup.epochs} epochs; runs in billions of words, 1 significant digit",
        "",
        "| Gbit/s | machines | million words/s | speedup | faster from | half-efficient from |",
        "|---|---|---|---|---|---|",
    ]
    for gbits in NETWORKS:
        s = dataclasses.replace(setup, gbits=gbits)
        for n in MACHINES:
            cells = [f"{gbits} | {n} | {s.rate(n, words) / 1e6:,.1f} | {s.run(1, words) / s.run(n, words):.2f}"]
            for least in [s.words_for(n, 1), s.words_for(n, n / 2)] if n > 1 else ["", ""]:
                cells.append("never" if least is None else least and f"{float(f'{least:.1g}') / 1e9:,g}")
            lines.append(f"| {' | '.join(cells)} |")
    return lines
