"""Prediction of the speed of `tiedtools w2v` on many machines: python -m tiedtools.benchmark.mpiprediction [--help]

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

import argparse
import dataclasses
import math

from tiedtools.models.word2vec.exchange import BLOCK, FREQUENT
from tiedtools.models.word2vec.ranksrun import STEP, default_period

MACHINES, NETWORKS = (1, 2, 4, 8, 16, 32), (1, 10, 100)
GRID = [10 ** (k / 10) for k in range(60, 141)]  # words of a run, W


def option(default, help):
    """Return a field of Setup, with the help of its option."""
    return dataclasses.field(default=default, metadata=dict(help=help))


@dataclasses.dataclass
class Setup:
    """Figures of one machine, its network, and the model; defaults as measured, see docs/mpi.md."""

    words_per_s: float = option(3.7e6, "training speed of one machine")
    cores: int = option(2, "cores of a machine")
    vocabulary: int = option(400_000, "words")
    size: int = option(300, "dimension of the vectors")
    matrices: int = option(2, "1 if input and output vectors are tied, otherwise 2")
    epochs: int = option(5, "number of epochs")
    exchange_words: float = option(0.0, "words of all machines between two exchanges; 0: that of `tiedtools w2v`")
    bytes: int = option(4, "bytes of an exchanged number; 2: bfloat16")
    gbits: float = option(10.0, "bandwidth in each direction in Gbit/s")
    latency: float = option(4 * STEP, "seconds per message; MPICH polls about 4 times")
    handled: float = option(0.7e9, "bytes/s of changes that a core computes and combines")
    counting: float = option(28e6, "words/s that one machine counts")
    writing: float = option(50e6, "numbers/s that one machine writes")
    start: float = option(1.1, "seconds to start one process")
    start_mpi: float = option(2.0, "seconds to start ranks")

    def exchange(self, n, rows):
        """Return (seconds of an exchange of the first `rows` rows, seconds of a core to handle it)."""
        numbers = self.matrices * rows * (-(-self.size // 16) * 16 + 1)  # rows are padded to cache lines
        messages = self.matrices * -(-rows // BLOCK) * 2 * math.ceil(math.log2(n))
        handling = 4 * numbers / self.handled
        sent = 2 * (n - 1) / n * numbers * self.bytes
        return handling + sent / (self.gbits * 1e9 / 8) + messages * self.latency, handling

    def epoch(self, n, words):
        """Return the seconds of one epoch of a run of `words` words on n machines."""
        each = words / self.epochs
        if n == 1:
            return each / self.words_per_s
        periods = max(1, round(each / (self.exchange_words or default_period(n, words))))
        alone = each / periods / (n * self.words_per_s)
        cycle = 1 << max(0, math.ceil(math.log2(self.vocabulary / FREQUENT)))  # exchanges, of which one has all rows
        rows = [min(self.vocabulary, FREQUENT << k) for k in range(cycle.bit_length())]
        known = [self.exchange(n, top) for top in rows]
        now, ends, passed = 0.0, [0.0] * 3, {}
        simulated = min(periods - 1, 2 * cycle)
        for j in range(1, simulated + 1):
            seconds, handling = known[min(j & -j, cycle).bit_length() - 1]
            now = max(now, ends[-3]) + alone + handling / self.cores
            ends = [*ends[-2:], max(now, ends[-1]) + seconds]
            passed[j] = now
        if simulated < periods - 1:  # the rest repeats the second cycle
            more = (passed[2 * cycle] - passed[cycle]) / cycle * (periods - 1 - simulated)
            now, ends = now + more, [end + more for end in ends]
        return max(max(now, ends[-3]) + alone, ends[-1]) + self.exchange(n, self.vocabulary)[0]

    def run(self, n, words):
        """Return the seconds of a whole run of `words` words, all epochs together, on n machines."""
        once = words / self.epochs / (n * self.counting) + self.vocabulary * self.size / self.writing
        return (self.start if n == 1 else self.start_mpi) + once + self.epochs * self.epoch(n, words)

    def rate(self, n, words):
        """Return the words/s of training of n machines."""
        return words / (self.epochs * self.epoch(n, words))

    def words_for(self, n, speedup):
        """Return the least words of GRID from which on n machines have more than this speedup; None: never."""
        enough = None
        for words in reversed(GRID):
            if self.run(1, words) <= speedup * self.run(n, words):
                break
            enough = words
        return enough


def table(setup, words):
    """Return the lines of a table: the speed of a run of `words` words, and for which runs several machines pay."""
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
            for found in [s.words_for(n, 1), s.words_for(n, n / 2)] if n > 1 else ["", ""]:
                cells.append("never" if found is None else found and f"{float(f'{found:.1g}') / 1e9:,g}")
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def main():
    about = __doc__.partition(":")[0]
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--words", type=float, default=1e10, help="words of the run, all epochs together")
    for field in dataclasses.fields(Setup):
        if field.name != "gbits":
            name, default = f"--{field.name.replace('_', '-')}", field.default
            parser.add_argument(name, type=type(default), default=default, help=field.metadata["help"])
    given = vars(parser.parse_args())
    words = given.pop("words")
    print("\n".join(table(Setup(**given), words)))


if __name__ == "__main__":
    main()
