"""Measure the peak speed of this machine at matrix products and memory transfers."""

import os
import time

import numpy as np

from benchmarks import probe
from benchmarks.processes import Worker, worker
from tiedtools.base.messages import log
from tiedtools.kernels.base.arrays import aligned
from tiedtools.training import hogwild

TILE = 80  # rows and columns of the products measured: whole cache lines, and whole tiles of all kinds
SIZE = 304  # row length of the tiles if a model has several sizes: an odd number of cache lines, see params.stride
SIDE = 2048  # rows and columns of the matrices that NumPy multiplies
SECONDS = 0.1  # minimum duration of one measurement
TRIES = 3  # measurements; the best counts, since disturbances only slow down
BLAS_THREADS = "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"


def warn_if_busy():
    """Log a warning if other processes keep the machine busy."""
    if hasattr(os, "getloadavg") and os.getloadavg()[0] > 0.5:
        log.warning(f"other processes keep {os.getloadavg()[0]:.1f} cores busy; all measured speeds will be too low")


def tile_rate(size, threads, bf16=False):
    """Return floating-point operations per second, all threads together, of tile products in the cache.

    size  row length of the tiles
    bf16  use bfloat16 operands instead of float32
    """
    kind = np.uint32 if bf16 else np.float32
    sums, factors = [(TILE, TILE), (TILE, size)], [(TILE, TILE), (TILE, size), (TILE, size)]
    tiles = [[aligned(*s) for s in sums] + [aligned(*s, kind) for s in factors] for _ in range(threads)]

    def multiply(way):
        return best_rate(lambda t, n: probe.multiply(*tiles[t], np.empty(0, np.int32), n, way), threads)

    return (4 if bf16 else 2) * TILE * TILE * size * max(map(multiply, range(3)))


def row_rate(rows, words, threads):
    """Return bytes per second, read and written by all threads, of gathering rows[words] and adding to them.

    rows   float32 [any, P]
    words  int32, of a length that is a multiple of probe.GROUP
    """
    size = rows.shape[1]
    orders = [np.roll(words, t * words.size // threads) for t in range(threads)]  # each thread starts elsewhere
    buffers = [aligned(probe.GROUP, size) for _ in orders]

    def move(t, n):
        for _ in range(n):
            probe.move(rows, buffers[t], orders[t])

    return 2 * 4 * size * words.size * best_rate(move, threads)


def best_rate(work, threads):
    """Return repetitions per second, all threads together; work(thread, n) does n repetitions."""

    def seconds(n):
        began = time.perf_counter()
        hogwild.run(lambda thread, job: work(job, n), range(threads), threads, lambda: None)
        return time.perf_counter() - began

    work(0, 1)
    n = 1
    while (elapsed := seconds(n)) < SECONDS:
        n = max(2 * n, int(n * SECONDS / elapsed))
    return threads * n / min(elapsed, *(seconds(n) for _ in range(TRIES - 1)))


def touched(rows, size):
    """Return arrays.aligned with all pages touched; untouched pages would all map to one zero page in the cache."""
    matrix = aligned(rows, size)
    matrix[:] = 0
    return matrix


def keep_best(rates, key, rate):
    """Set rates[key] to `rate` if that is greater."""
    rates[key] = max(rates.get(key, 0), rate)


class Peaks:
    """Peak compute and transfer rates of this machine by number of threads, the best of all measurements.

    flops  {threads: operations per second of tile products in the L1 cache}; bfloat16  the same in bfloat16
    bytes  {(threads, kind of rows): bytes per second, read and written, of rows in the access order of a text}
    size   row length of the tiles
    rows   {kind: (matrix, words)}, the arguments of row_rate
    """

    def __init__(self, size, rows):
        self.size, self.rows = size, rows
        self.flops, self.bfloat16, self.bytes = {}, {}, {}

    def measure(self, threads):
        keep_best(self.flops, threads, tile_rate(self.size, threads))
        keep_best(self.bfloat16, threads, tile_rate(self.size, threads, bf16=True))
        for kind, (rows, words) in self.rows.items():
            keep_best(self.bytes, (threads, kind), row_rate(rows, words, threads))

    def half(self, threads):
        """Return the number of operations in bfloat16 that take as long as one in float32."""
        return self.bfloat16[threads] / self.flops[threads]

    def limit(self, flops, moved, threads, kind):
        """Return (maximum rate per second of a unit of work, its bottleneck: "flops" or "bytes").

        flops, moved  operations and bytes of a unit of work
        """
        slow = {"flops": flops / self.flops[threads], "bytes": moved / self.bytes[threads, kind]}
        bound = max(slow, key=slow.__getitem__)
        return 1 / slow[bound], bound


class Multiplication:
    """Peak rates of matrix products by number of threads, the best of all measurements.

    tiles     {threads: operations per second} of tile products in float32
    sgemm     the same for NumPy's products in float32; `blas` names the library
    bfloat16  the same for tile products in bfloat16, if the precision is "bfloat16"
    """

    def __init__(self, processes, precision):
        """Prepare the measurement. processes: an ExitStack for NumPy's processes, one per number of threads."""
        self.processes, self.precision, self.workers = processes, precision, {}
        self.tiles, self.sgemm, self.bfloat16, self.blas = {}, {}, {}, None

    def measure(self, threads):
        if threads not in self.workers:
            limits = dict.fromkeys(BLAS_THREADS, str(threads))
            self.workers[threads] = Worker("NumPy", worker("sgemm:Products"), self.processes, limits)
        rate, self.blas = self.workers[threads]([SIDE, TRIES])
        keep_best(self.sgemm, threads, rate)
        keep_best(self.tiles, threads, tile_rate(SIZE, threads))
        if self.precision == "bfloat16":
            keep_best(self.bfloat16, threads, tile_rate(SIZE, threads, bf16=True))

    def peak(self, threads, precision="float32"):
        best = max(self.tiles[threads], self.sgemm[threads])
        return best if precision == "float32" else max(best, self.bfloat16[threads])

    def gflops(self, threads):
        """Return {kind of products: 10^9 operations per second}."""
        kinds = dict(tiles=self.tiles, sgemm=self.sgemm, bfloat16=self.bfloat16)
        return {kind: rates[threads] / 1e9 for kind, rates in kinds.items() if rates}
