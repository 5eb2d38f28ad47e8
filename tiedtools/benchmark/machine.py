"""What this machine is, and how fast it can multiply."""

import os
import sys
import time

import numpy as np

from tiedtools.benchmark.processes import Worker
from tiedtools.kernels import probe
from tiedtools.kernels.arrays import aligned
from tiedtools.messages import log
from tiedtools.training import hogwild

TILE = 80  # rows and columns of the products measured: whole cache lines, and whole tiles of all kinds
SIZE = 304  # of the tiles' rows where a model has no one size: an odd number of cache lines, see buffers.stride
SIDE = 2048  # of the matrices that NumPy multiplies
SECONDS = 0.1  # of one measurement
TRIES = 3  # of which the best is taken: a limit is what no disturbance allows to pass
BLAS_THREADS = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"


def warn_if_busy():
    """Log a warning where other processes keep the machine busy."""
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.5:
        log.warning(f"others keep {os.getloadavg()[0]:.1f} cores busy: all figures will be lower than they could be")


def tile_rate(size, threads, bf16=False):
    """Floating point operations a second, of all threads, in products of tiles of rows of `size`, in the cache.

    bf16  of bfloat16, not float32
    """
    kind = np.uint32 if bf16 else np.float32
    sums, factors = [(TILE, TILE), (TILE, size)], [(TILE, TILE), (TILE, size), (TILE, size)]
    tiles = [[aligned(*s) for s in sums] + [aligned(*s, kind) for s in factors] for _ in range(threads)]
    none = np.empty(0, np.int32)
    multiply = lambda way: best_rate(lambda t, n: probe.multiply(*tiles[t], none, n, way), threads)
    return (4 if bf16 else 2) * TILE * TILE * size * max(map(multiply, range(3)))


def row_rate(rows, words, threads):
    """Bytes a second, read and written, all threads together, in gathering rows[words] and adding to them.

    rows  float32 [any, P]        words  int32, a multiple of probe.TOGETHER
    """
    size = rows.shape[1]
    ways = [np.roll(words, t * words.size // threads) for t in range(threads)]  # each thread goes its own
    buffers = [aligned(probe.TOGETHER, size) for _ in ways]

    def move(t, n):
        for _ in range(n):
            probe.move(rows, buffers[t], ways[t])

    return 2 * 4 * size * words.size * best_rate(move, threads)


def best_rate(work, threads):
    """Calls a second, of all threads together, of what work(thread, n) does n times."""

    def seconds(n):
        began = time.perf_counter()
        hogwild.run(lambda thread, job: work(job, n), range(threads), threads, lambda: None)
        return time.perf_counter() - began

    work(0, 1)
    n = 1
    while (taken := seconds(n)) < SECONDS:
        n = max(2 * n, int(n * SECONDS / taken))
    return threads * n / min(taken, *(seconds(n) for _ in range(TRIES - 1)))


def touched(rows, size):
    """tiles.aligned, and each page of it a page of its own: untouched, all would be one page of zeros in the cache."""
    matrix = aligned(rows, size)
    matrix[:] = 0
    return matrix


def keep_best(rates, key, rate):
    """Set rates[key] to `rate` where that is greater."""
    rates[key] = max(rates.get(key, 0), rate)


class Peaks:
    """Peaks of this machine at computing and at moving rows, with each number of threads. The best of all tries counts.

    flops  {threads: operations a second of tile products in the cache nearest to a core}
    bytes  {(threads, kind of rows): bytes a second, read and written, of rows as a text asks for them}
    size   of the tiles' rows;  rows  {kind: (matrix, words)} as of row_rate
    """

    def __init__(self, size, rows):
        self.size, self.rows = size, rows
        self.flops, self.bytes = {}, {}

    def measure(self, threads):
        keep_best(self.flops, threads, tile_rate(self.size, threads))
        for kind, (rows, words) in self.rows.items():
            keep_best(self.bytes, (threads, kind), row_rate(rows, words, threads))

    def limit(self, flops, moved, threads, kind):
        """(how often a second so many operations and bytes can be done, "flops" or "bytes", whichever takes longer)"""
        slow = {"flops": flops / self.flops[threads], "bytes": moved / self.bytes[threads, kind]}
        bound = max(slow, key=slow.__getitem__)
        return 1 / slow[bound], bound


class Multiplication:
    """Peaks of this machine at multiplying and adding, with each number of threads. The best of all counts.

    tiles, sgemm  {threads: operations a second} of tile products, and of NumPy, where `blas` is what it calls: float32
    bfloat16      the same of tile products in bfloat16, where asked for
    """

    def __init__(self, processes, precision):
        """processes  an ExitStack for NumPy's, which are told the number of threads at their start"""
        self.processes, self.precision, self.workers = processes, precision, {}
        self.tiles, self.sgemm, self.bfloat16, self.blas = {}, {}, {}, None

    def measure(self, threads):
        if threads not in self.workers:
            command = [sys.executable, "-m", "tiedtools.benchmark.sgemm"]
            limits = dict.fromkeys(BLAS_THREADS, str(threads))
            self.workers[threads] = Worker("NumPy", command, self.processes, limits)
        rate, self.blas = self.workers[threads]([SIDE, TRIES])
        keep_best(self.sgemm, threads, rate)
        keep_best(self.tiles, threads, tile_rate(SIZE, threads))
        if self.precision == "bfloat16":
            keep_best(self.bfloat16, threads, tile_rate(SIZE, threads, bf16=True))

    def peak(self, threads, precision="float32"):
        best = max(self.tiles[threads], self.sgemm[threads])
        return best if precision == "float32" else max(best, self.bfloat16[threads])

    def gflops(self, threads):
        """{kind of products: 10^9 operations a second}"""
        kinds = dict(tiles=self.tiles, sgemm=self.sgemm, bfloat16=self.bfloat16)
        return {kind: rates[threads] / 1e9 for kind, rates in kinds.items() if rates}
