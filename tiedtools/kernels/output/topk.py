"""The most probable words of a softmax, without storing their scores or sorting them."""

import math

import numpy as np

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import product, transpose_down
from tiedtools.kernels.base.scalar import exp
from tiedtools.kernels.base.tiles import VECTOR
from tiedtools.kernels.output.softmax import combined, row_scores

WORDS = 40  # block size; the scores of a block and 160 rows fit the L1 cache
PEAK, SUM, TOP, PART = range(4)  # rows of a thread's statistics: maximum and sum, and the same of a block


@jit
def most_probable(worker, logprobs, ids, Z, XT, stats, X, W, b):
    """Find the K words with the highest scores X W^T + b for each row of X, and their log probabilities, highest first.

    logprobs  float64 [threads, B, K]        ids  int32 [threads, B, K]: the result is in [0]; of equally probable
              words, the first ones
    X  [B, >= n]        W  [V, n]        b  [V], or [0]: no bias
    Z  [threads * WORDS, B], XT  [n, B] and stats  [threads, 4, B]: scratch

    NaN and -inf are never chosen: the rest of a row is -inf, with word -1. Threads divide the words.
    """
    thread, threads, _ = worker
    n, (_, rows, K) = XT.shape[0], ids.shape
    values, words, stat = logprobs[thread], ids[thread], stats[thread]
    top, peak, total, part = stat[TOP, :rows], stat[PEAK, :rows], stat[SUM, :rows], stat[PART, :rows]
    values[:] = -np.inf
    words[:] = -1
    peak[:] = -1e30
    total[:] = 0
    transpose_down(worker, XT, None, X, n)
    sync(worker)
    lanes = VECTOR // Z.itemsize
    columns = -(-rows // lanes) * lanes
    begin, end = partition(worker, W.shape[0], WORDS)
    for word in range(begin, end, WORDS):
        # The scores of a block of words; then candidates; then the sums.
        stop = min(end, word + WORDS)
        z = Z[thread * WORDS :][: stop - word]
        if rows == 1:
            row_scores(z[:, 0], W[word:stop, :n], X[0, :n])
        else:
            product(z[:, :columns], W[word:stop, :n], XT[:, :columns], False)
        top[:] = -1e30
        for k in range(stop - word):
            add_bias(top, z[k], b[word + k] if b.size else z.dtype.type(0))
        for r in range(rows):
            if top[r] > values[r, K - 1]:
                for k in range(stop - word):
                    insert(values[r], words[r], z[k, r], word + k)
        add_block(peak, total, part, top, z)
    # Merge the candidates of all threads.
    sync(worker)
    begin, end = partition(worker, rows)
    for r in range(begin, end):
        for t in range(1, threads):
            for k in range(K):
                insert(logprobs[0, r], ids[0, r], logprobs[t, r, k], ids[t, r, k])
        highest, whole = combined(stats, threads, PEAK, r)
        for k in range(K):
            logprobs[0, r, k] -= highest + math.log(whole)


@jit
def insert(values, ids, value, word):
    """Insert a word among the best so far, values [K], highest first, if its value exceeds the last."""
    k = values.size - 1
    if value > values[k]:
        while k and value > values[k - 1]:
            values[k], ids[k] = values[k - 1], ids[k - 1]
            k -= 1
        values[k], ids[k] = value, word


# The loops over columns r of these functions are vectorized.
@jit
def add_bias(top, z, b):
    """Add the bias of a word to its scores, and update the maxima."""
    for r in range(top.size):
        z[r] += b
        top[r] = z[r] if z[r] > top[r] else top[r]


@jit(relaxed=True)
def add_block(peak, total, part, top, z):
    """Add the sum of exp(z - peak) over a block with the maxima `top` to `total`, updating `peak` (online softmax)."""
    for r in range(peak.size):
        new = top[r] if top[r] > peak[r] else peak[r]
        total[r] *= exp(peak[r] - new)
        peak[r] = new
    part[:] = 0
    for k in range(z.shape[0]):
        row = z[k]
        for r in range(part.size):
            part[r] += exp(row[r] - peak[r])
    for r in range(total.size):
        total[r] += part[r]
