"""Softmax cross entropy over the full vocabulary: loss and gradient in one call.

The rows of X, one per prediction, are processed several hundred at a time, and the words in blocks of WORDS; each
thread owns some of the words. Scores are stored transposed, Z [words, rows], so that rows of W are read contiguously
and elementwise operations are vectorized over predictions.

The first pass turns scores into exp(score - peak), where peak is the running maximum of the row (online softmax,
Milakov and Gimelshein 2018). Once the sums over all words are known, the second pass turns these into the gradient.
"""

from typing import Any, NamedTuple

import numpy as np

from tiedtools.kernels.base import shared
from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.bfloat16 import left, paired, right
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import pack_down, product, transpose_down
from tiedtools.kernels.base.scalar import exp

WORDS = 100  # block size; the scores of a block and its rows of W fit the L2 cache
PEAK, SUM, TOP, FACTOR, TOTAL = range(5)  # rows of a thread's statistics


class Weights(NamedTuple):
    """The output layer, whose scores are X W^T + b."""

    W: Any  # [V, n]
    b: Any  # [V], or [0]: no bias
    apart: Any  # [N], the scores of targets V, which are not rows of W; or [0]


class Gradients(NamedTuple):
    """Gradients of X and the Weights, and whether to add to those of W and b instead of overwriting them."""

    dX: Any
    dW: Any
    db: Any
    d_apart: Any
    accumulate: bool
    accumulate_b: bool


class Scratch(NamedTuple):
    """Scratch for blocks of R rows of X."""

    Z: Any  # [V, R]; [threads * WORDS, R] without gradients
    XT: Any  # [n, R]
    peaks: Any  # [ceil(V / WORDS) + threads, R]
    stats: Any  # [threads, 5, R]
    parts: Any  # [threads, R, n], each thread's part of dX
    bf16: Any  # X and X^T packed down columns and, per thread, W and Z along rows and down: see bfloat16.py


@jit
def loss_and_gradient(worker, nll, gradients, scratch, X, weights, targets, scale):
    """Compute the cross entropy, and the gradient of `scale` times its sum over the rows.

    nll  float64 [N], nats        X  [N, n]        targets  int32 [N]; -1: the row is ignored; V: it is scored apart
    """
    dX, dW, db, d_apart, accumulate, accumulate_b = gradients
    Z, _, peaks, stats, parts, bf16 = scratch
    W, b, apart = weights
    thread = worker[0]
    part, stat = parts[thread], stats[thread]
    x_down, _, _, w_down, z_along, z_down = bf16
    begin, end = words_of(worker, W.shape[0])
    if begin == end:
        part[:] = 0
    for start in range(0, X.shape[0], parts.shape[1]):
        stop = min(X.shape[0], start + parts.shape[1])
        rows, x, target, aside = stop - start, X[start:stop], targets[start:stop], apart[start:stop]
        pack_down(worker, x_down, x)
        first_pass_shared(worker, nll[start:stop], scratch, x, Weights(W, b, aside), target, True)
        # From here on, SUM holds scale / sum; this thread also computes the gradients of some scores apart.
        for r in range(rows):
            stat[SUM, r] = scale / stat[SUM, r] if target[r] >= 0 else 0
        first, last = partition(worker, aside.size)
        for r in range(first, last):
            is_apart = target[r] == W.shape[0]
            d_apart[start + r] = exp(aside[r] - stat[TOP, r]) * stat[SUM, r] - scale if is_apart else 0
        # The second pass turns the scores of this thread's words into their gradient, and multiplies by it.
        for word in range(begin, end, WORDS):
            stop = min(end, word + WORDS)
            z = Z[word:stop]
            to_gradient(z, stat, peaks[word // WORDS + thread], rows)
            for r in range(rows):
                if word <= target[r] < stop:
                    z[target[r] - word, r] -= scale
            add_sums(db[word:stop], z, rows, accumulate_b)
            half = thread * WORDS // 2, 0
            product(part[:rows], right(z_down, half, z).T[:rows], right(w_down, half, W[word:stop]), word > begin)
            product(dW[word:stop], left(z_along, (thread * WORDS, 0), z[:, :rows]), paired(x_down, x), accumulate)
        sync(worker)
        first, last = partition(worker, rows)
        add_parts(dX[start:][first:last], parts[:, first:last])
        accumulate = accumulate_b = True


@jit
def log_probabilities(worker, logp, scratch, X, weights, targets):
    """Compute log P(targets[k]), logp float64 [N]; it is 0 if the target is -1."""
    R = scratch.stats.shape[2]
    for start in range(0, X.shape[0], R):
        rows = slice(start, min(X.shape[0], start + R))
        first_pass_shared(worker, logp[rows], scratch, X[rows], weights, targets[rows], False)
        sync(worker)
    begin, end = partition(worker, logp.size)
    for k in range(begin, end):
        logp[k] *= -1


@jit
def scores(worker, Z, XT, X, W):
    """Z = W X^T, without bias.        Z  [V, B]        XT  [n, B]: scratch        X  [B, >= n]        W  [V, >= n]"""
    n, (begin, end) = XT.shape[0], partition(worker, W.shape[0], WORDS)
    if X.shape[0] == 1:
        row_scores(Z[begin:end, 0], W[begin:end], X[0, :n])
        return
    transpose_down(worker, XT, None, X, n)
    sync(worker)
    product(Z[begin:end], W[begin:end, :n], XT, False)


@jit(relaxed=True)
def row_scores(z, W, x):
    """z = W x, for a single x; the tiles would compute a full vector of columns."""
    for k in range(z.size):
        row, total = W[k], x[0] - x[0]
        for j in range(x.size):
            total += row[j] * x[j]
        z[k] = total


@jit
def first_pass(worker, nll, scratch, X, weights, targets, stored):
    """Compute nll of the targets, in nats, and in this thread's statistics the sum and the maximum of each row.

    stored  store exp(score - peak) of all words in Z, and the running maxima of each block of WORDS in `peaks`
    """
    Z, XT, peaks, stats, _, bf16 = scratch
    W, b, apart = weights
    thread, threads, _ = worker
    stat = stats[thread]
    rows, n = X.shape[0], XT.shape[0]
    _, xt_down, w_along, _, _, _ = bf16
    transpose_down(worker, XT, xt_down, X, n)
    stat[PEAK] = -1e30
    stat[SUM] = 0
    begin, end = words_of(worker, W.shape[0])
    sync(worker)
    for word in range(begin, end, WORDS):
        stop = min(end, word + WORDS)
        z = Z[word:stop] if stored else Z[thread * WORDS :][: stop - word]
        product(z, left(w_along, (thread * WORDS, 0), W[word:stop, :n]), paired(xt_down, XT), False)
        raise_peak(z, stat, peaks[word // WORDS + thread], b[word:stop])
        for r in range(rows):
            if word <= targets[r] < stop:
                nll[r] = -z[targets[r] - word, r] - (b[targets[r]] if b.size else 0)
        exponentials(z, stat, b[word:stop])
    sync(worker)
    # Combine the statistics of all threads for some rows, and add the scores apart, into those of the first thread.
    begin, end = partition(worker, rows)
    for r in range(begin, end):
        top, total = combined(stats, threads, PEAK, r)
        if apart.size and targets[r] == W.shape[0]:
            higher = max(top, apart[r])
            total = total * exp(top - higher) + exp(apart[r] - higher)
            top = higher
            nll[r] = -apart[r]
        stats[0, TOP, r], stats[0, TOTAL, r] = top, total
        nll[r] = nll[r] + np.float64(top) + np.log(np.float64(total)) if targets[r] >= 0 else 0
    sync(worker)
    for r in range(rows):
        stat[TOP, r], stat[SUM, r] = stats[0, TOP, r], stats[0, TOTAL, r]


@jit
def words_of(worker, V):
    """Return (begin, end), the words of this thread: whole blocks, or tenths where many threads share few blocks."""
    return partition(worker, V, WORDS if worker[1] <= 2 else WORDS // 10)


first_pass_shared = shared.caller(lambda kinds: first_pass)


@jit
def combined(stats, threads, k, r):
    """Return (maximum, sum of exp(score - maximum)) of row r over all threads, from their statistics k and k + 1."""
    top = stats[0, k, r]
    for t in range(threads):
        top = max(top, stats[t, k, r])
    total = top - top
    for t in range(threads):
        total += stats[t, k + 1, r] * exp(stats[t, k, r] - top)
    return top, total


@jit(relaxed=True)
def raise_peak(z, stat, new, b):
    """Update the running maximum of scores plus bias, in PEAK and in `new`, and rescale the sum accordingly."""
    peak, total = stat[PEAK], stat[SUM]
    for r in range(peak.size):
        new[r] = peak[r]
    for k in range(z.shape[0]):
        row, add = z[k], b[k] if b.size else total.dtype.type(0)
        for r in range(peak.size):
            score = row[r] + add
            new[r] = score if score > new[r] else new[r]
    for r in range(peak.size):
        total[r] *= exp(peak[r] - new[r])
    for r in range(peak.size):
        peak[r] = new[r]


@jit(relaxed=True)
def exponentials(z, stat, b):
    """z = exp(score - peak); add it to the running sums."""
    # A large sum loses small terms that are added one by one, so those of a block are summed first.
    peak, total, part = stat[PEAK], stat[SUM], stat[FACTOR]
    for r in range(peak.size):
        part[r] = 0
    for k in range(z.shape[0]):
        row, add = z[k], b[k] if b.size else total.dtype.type(0)
        for r in range(peak.size):
            row[r] = exp(row[r] + add - peak[r])
        for r in range(peak.size):
            part[r] += row[r]
    for r in range(peak.size):
        total[r] += part[r]


@jit(relaxed=True)
def to_gradient(z, stat, peak, rows):
    """Turn exp(score - peak) into scaled probabilities; stat[SUM] is scale / sum of exp(score - top)."""
    factor, top, inverse = stat[FACTOR], stat[TOP], stat[SUM]
    for r in range(rows):
        factor[r] = exp(peak[r] - top[r]) * inverse[r]
    for k in range(z.shape[0]):
        row = z[k]
        for r in range(rows):
            row[r] *= factor[r]


@jit(relaxed=True)
def add_sums(db, z, rows, accumulate):
    """Compute the gradient of the bias, the sum over the rows."""
    for k in range(db.size):
        total = z[k, 0] - z[k, 0]
        for r in range(rows):
            total += z[k, r]
        db[k] = total + db[k] if accumulate else total


@jit(relaxed=True)
def add_parts(dX, parts):
    """dX = the sum of the threads' contributions."""
    for r in range(dX.shape[0]):
        row = dX[r]
        for j in range(row.size):
            row[j] = parts[0, r, j]
        for t in range(1, parts.shape[0]):
            for j in range(row.size):
                row[j] += parts[t, r, j]
