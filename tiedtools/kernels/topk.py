"""The most probable words of a softmax, without sorting the scores or storing probabilities."""

import math

import numpy as np

from tiedtools.kernels.barrier import partition
from tiedtools.kernels.jit import jit
from tiedtools.kernels.scalar import exp

WORDS, LANES = 64, 16  # words in a block, whose scores stay in the L1 cache; granularity of columns
TOP, PEAK, SUM, PART = range(4)  # rows of the statistics: of the block, maximum; maximum and sum; of the block, sum


@jit
def most_probable(worker, logprobs, ids, stats, Z, b):
    """Write the K most probable words of each column of scores Z + b and their log probabilities, highest first.

    logprobs  float64 [B, K]        ids  int32 [B, K]; of equally probable words, the first ones
    stats  [4, >= B]: scratch, of the type of Z
    Z  [V, >= B], changed        b  [V], or [0]: no bias

    NaN and -inf are never chosen: the rest of a row is -inf, with word -1. Threads divide the columns.
    """
    own, last = partition(worker, ids.shape[0], LANES)
    logprobs[own:last] = -np.inf
    ids[own:last] = -1
    mine = slice(own, last)
    top, peak, total, part = stats[TOP, mine], stats[PEAK, mine], stats[SUM, mine], stats[PART, mine]
    peak[:] = -1e30
    total[:] = 0
    for begin in range(0, Z.shape[0], WORDS):
        end = min(Z.shape[0], begin + WORDS)
        top[:] = -1e30
        part[:] = 0
        for word in range(begin, end):
            add_bias(top, Z[word, mine], b[word] if b.size else Z.dtype.type(0))
        for r in range(last - own):
            if top[r] > logprobs[own + r, -1]:
                insert(logprobs[own + r], ids[own + r], Z[:, own + r], begin, end)
        online(peak, total, top)
        for word in range(begin, end):
            add_exp(part, Z[word, mine], peak)
        add(total, part)
    for r in range(last - own):
        for k in range(logprobs.shape[1]):
            logprobs[own + r, k] -= peak[r] + math.log(total[r])


@jit
def insert(values, ids, scores, begin, end):
    """Insert the larger ones of the scores of words begin .. end - 1 among the best so far, values [K]."""
    for word in range(begin, end):
        if scores[word] > values[-1]:
            k = values.size - 1
            while k and scores[word] > values[k - 1]:
                values[k], ids[k] = values[k - 1], ids[k - 1]
                k -= 1
            values[k], ids[k] = scores[word], word


# The loops over columns r of these functions are vectorized.
@jit
def add_bias(top, z, b):
    """Add the bias of a word to its scores, and update the maxima."""
    for r in range(z.size):
        z[r] += b
        top[r] = z[r] if z[r] > top[r] else top[r]


@jit(relaxed=True)
def online(peak, total, top):
    """Take the maxima of a block into account: the sums are of exp(z - peak) (online softmax)."""
    for r in range(peak.size):
        new = top[r] if top[r] > peak[r] else peak[r]
        total[r] *= exp(peak[r] - new)
        peak[r] = new


@jit(relaxed=True)
def add_exp(part, z, peak):
    for r in range(z.size):
        part[r] += exp(z[r] - peak[r])


@jit
def add(total, part):
    for r in range(total.size):
        total[r] += part[r]
