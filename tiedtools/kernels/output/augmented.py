"""Softmax with the augmented loss of Inan, Khosravi and Socher (2017, section 3): loss and gradient in one call.

The loss is the cross entropy of softmax(z), z = z0 + b, z0 = X W^T, plus tau KL(y~ || y^), where

    y~ = softmax(a), a_j = e_t . e_j / tau        y^ = softmax(z0 / tau)

with input embeddings E, of which e_t is the target's row. The gradient of tau KL with respect to z0 is y^ - y~. Unless
y~ is detached, its gradient with respect to a is tau y~ (log y~ - log y^ - KL); row j of E receives e_t / tau times it.

Rows of X are processed in blocks. Rows of a block with the same target share a and y~, which are computed once per
distinct target. The gradient of a depends on z0 only through its sum over these rows. The rows are in levels: first one
of each distinct target, then, in the same order, the second of each target that has one, and so on, with the most
frequent targets first. Loops over the rows of a level and their targets are then over consecutive elements of both.

The passes and their order are as in softmax.py, except that the scores of both softmaxes are stored and their
exponentials are recomputed in each pass.
"""

from typing import Any, NamedTuple

import numpy as np

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.bfloat16 import left, paired, right
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import pack_down, product, transpose_down
from tiedtools.kernels.base.scalar import exp
from tiedtools.kernels.base.tiles import VECTOR
from tiedtools.kernels.output.softmax import WORDS, add_parts, combined, words_of

# Rows of a thread's statistics. Per row of X: maximum and sum for the softmaxes of z and of z0 / tau. Per distinct
# target: the same for a, and a sum for KL. The rest is scratch.
Z_PEAK, Z_SUM, Y_PEAK, Y_SUM, A_PEAK, A_SUM, CROSS, NEW, FIRST, SECOND, N_STATS = range(11)


class Inputs(NamedTuple):
    """Inputs of the kernel. K is the number of distinct targets of each block of R rows, summed over the blocks."""

    X: Any  # [N, n]
    W: Any  # [V, n]
    b: Any  # [V], or [0]: no bias
    Et: Any  # [K, m], the rows of E for the distinct targets
    E: Any  # [V, m]


class Targets(NamedTuple):
    words: Any  # int32 [N]; -1: ignored
    sizes: Any  # int64 [levels of all blocks]: rows of each level
    levels: Any  # int64 [blocks + 1]: the first level of each block


class Gradients(NamedTuple):
    """Gradients of the Inputs, and whether to add to the gradients of W, b, and E instead of overwriting them."""

    dX: Any
    dW: Any
    db: Any
    dEt: Any
    dE: Any
    accumulate_w: bool
    accumulate_b: bool
    accumulate_e: bool


class Objective(NamedTuple):
    """The objective: `scale` times the sum of cross entropies plus `scale_kl` times the sum of tau KL."""

    scale: float
    scale_kl: float
    inverse_tau: float
    flow: bool  # whether to backpropagate through y~


class Scratch(NamedTuple):
    """Scratch for blocks of R rows of X."""

    Z: Any  # [V, R]
    A: Any  # [V, R]
    D: Any  # [threads WORDS, R]
    XT: Any  # [n, R]
    EtT: Any  # [m, R]
    stats: Any  # [2 threads, N_STATS, R]
    parts: Any  # [threads, R, n]
    parts_e: Any  # [threads, R, m]
    bf16: Any  # as in softmax.Scratch
    bf16_e: Any  # the same for Et, E and A


@jit
def loss_and_gradient(worker, nll, gradients, scratch, inputs, targets, objective):
    """Compute the cross entropy, nll float64 [N] in nats, and the gradient of the Objective (cf. softmax.py)."""
    X, W, b, Et, E = inputs
    dX, dW, db, dEt, dE, add_w, add_b, add_e = gradients
    Z, A, D, _, _, stats, parts, parts_e, bf16, bf16_e = scratch
    scale, scale_kl, inverse_tau, flow = objective
    thread, threads, _ = worker
    part, part_e, stat = parts[thread], parts_e[thread], stats[threads + thread]
    last = np.int64(0)
    x_down, _, _, w_down, z_along, z_down = bf16
    et_down, _, _, e_down, a_along, a_down = bf16_e
    begin, end = words_of(worker, W.shape[0])
    part[:] = 0
    part_e[:] = 0
    for start in range(0, X.shape[0], parts.shape[1]):
        stop = min(X.shape[0], start + parts.shape[1])
        rows, x, target = stop - start, X[start:stop], targets.words[start:stop]
        block = start // parts.shape[1]
        sizes = targets.sizes[targets.levels[block] : targets.levels[block + 1]]
        many, first = sizes[0], last
        last += many
        et = Et[first:last]
        pack_down(worker, x_down, x)
        pack_down(worker, et_down, et)
        first_pass(worker, nll[start:stop], scratch, Inputs(x, W, b, et, E), target, sizes, objective)
        # From here on, the SUM rows hold scale / sum, and CROSS the offset: log y~ - log y^ - KL = D - CROSS.
        for k in range(many):
            stat[CROSS, k] /= stat[A_SUM, k]
            stat[A_SUM, k] = (scale_kl if target[k] >= 0 else 0) / stat[A_SUM, k]
        for r in range(rows):
            stat[Z_SUM, r] = (scale if target[r] >= 0 else 0) / stat[Z_SUM, r]
            stat[Y_SUM, r] = (scale_kl if target[r] >= 0 else 0) / stat[Y_SUM, r]
        # The second pass turns the scores of this thread's words into gradients, and multiplies by them.
        for word in range(begin, end, WORDS):
            stop = min(end, word + WORDS)
            z, a, d = Z[word:stop], A[word:stop], D[thread * WORDS :][: stop - word]
            if flow:
                differences(d, a, z, sizes, inverse_tau)
            to_gradient(db[word:stop], z, a, d, stat, b[word:stop], sizes, inverse_tau, add_b)
            for r in range(rows):
                if word <= target[r] < stop:
                    z[target[r] - word, r] -= scale
                    if b.size:
                        db[target[r]] -= scale
            at, half = (thread * WORDS, 0), (thread * WORDS // 2, 0)
            product(part[:rows], right(z_down, half, z).T[:rows], right(w_down, half, W[word:stop]), word > begin)
            product(dW[word:stop], left(z_along, at, z[:, :rows]), paired(x_down, x), add_w)
            if flow:
                product(part_e[:many], right(a_down, half, a).T[:many], right(e_down, half, E[word:stop]), word > begin)
                product(dE[word:stop], left(a_along, at, a[:, :many]), paired(et_down, et), add_e)
        sync(worker)
        low, high = partition(worker, rows)
        add_parts(dX[start:][low:high], parts[:, low:high])
        if flow:
            low, high = partition(worker, many)
            add_parts(dEt[first:][low:high], parts_e[:, low:high])
        add_w = add_b = add_e = True


@jit
def first_pass(worker, nll, scratch, inputs, targets, sizes, objective):
    """Compute the scores Z and A and, in this thread's second set of statistics, maxima and sums over all words."""
    X, W, b, Et, E = inputs
    Z, A, D, XT, EtT, stats, _, _, bf16, bf16_e = scratch
    _, _, inverse_tau, flow = objective
    thread, threads, _ = worker
    stat, final = stats[thread], stats[threads + thread]
    rows, many, n, m = X.shape[0], Et.shape[0], XT.shape[0], EtT.shape[0]
    lanes = VECTOR // A.itemsize
    wide = -(-many // lanes) * lanes
    _, xt_down, w_along, _, _, _ = bf16
    _, ett_down, e_along, _, _, _ = bf16_e
    transpose_down(worker, XT, xt_down, X, n)
    transpose_down(worker, EtT, ett_down, Et, m)
    stat[:] = 0
    for k in (Z_PEAK, Y_PEAK, A_PEAK):
        stat[k] = -1e30
    begin, end = words_of(worker, W.shape[0])
    sync(worker)
    for word in range(begin, end, WORDS):
        stop = min(end, word + WORDS)
        z, a, d = Z[word:stop], A[word:stop], D[thread * WORDS :][: stop - word]
        at = thread * WORDS, 0
        product(z, left(w_along, at, W[word:stop, :n]), paired(xt_down, XT), False)
        product(a[:, :wide], left(e_along, at, E[word:stop, :m]), paired(ett_down, EtT), False)
        for r in range(rows):
            if word <= targets[r] < stop:
                nll[r] = -z[targets[r] - word, r] - (b[targets[r]] if b.size else 0)
        if flow:
            differences(d, a, z, sizes, inverse_tau)
        add_scores(z, d, stat, Z_PEAK, rows, b[word:stop], z.dtype.type(1))
        add_scores(z, d, stat, Y_PEAK, rows, b[:0], inverse_tau)
        add_scores(a, d, stat, A_PEAK, many, b[:0], inverse_tau)
    # Combine the statistics of all threads.
    sync(worker)
    for r in range(rows):
        for k in (Z_PEAK, Y_PEAK):
            final[k, r], final[k + 1, r] = combined(stats, threads, k, r)
    for k in range(many):
        final[A_PEAK, k], final[A_SUM, k] = combined(stats, threads, A_PEAK, k)
        final[CROSS, k] = 0
        for t in range(threads):
            final[CROSS, k] += stats[t, CROSS, k] * exp(stats[t, A_PEAK, k] - final[A_PEAK, k])
    begin, end = partition(worker, rows)
    for r in range(begin, end):
        lse = np.float64(final[Z_PEAK, r]) + np.log(np.float64(final[Z_SUM, r]))
        nll[r] = nll[r] + lse if targets[r] >= 0 else 0


@jit(relaxed=True)
def differences(d, a, z, sizes, inverse_tau):
    """Sum (e_t . e_j - z0) / tau over the rows of each target."""
    for j in range(d.shape[0]):
        total, dot, start = d[j], a[j], 0
        for k in range(sizes[0]):
            total[k] = 0
        for level in range(sizes.size):
            score = z[j, start:]
            for k in range(sizes[level]):
                total[k] += (dot[k] - score[k]) * inverse_tau
            start += sizes[level]


@jit(relaxed=True)
def add_scores(scores, D, stat, k, size, b, factor):
    """Update maximum stat[k] and sum stat[k + 1] for factor * scores + b; for a, also the sum of exp times D."""
    peak, total, cross, new, q = stat[k], stat[k + 1], stat[CROSS], stat[NEW], stat[FIRST]
    for r in range(size):
        new[r] = peak[r]
    for j in range(scores.shape[0]):
        row, add = scores[j], (b[j] if b.size else factor - factor)
        for r in range(size):
            x = row[r] * factor + add
            new[r] = x if x > new[r] else new[r]
    for r in range(size):
        q[r] = exp(peak[r] - new[r])
        total[r] *= q[r]
        peak[r], new[r] = new[r], 0  # from here on, `new` is the sum of this block
    if k == A_PEAK:
        for r in range(size):
            cross[r] *= q[r]
    for j in range(scores.shape[0]):
        row, difference, add = scores[j], D[j], (b[j] if b.size else factor - factor)
        for r in range(size):
            q[r] = exp(row[r] * factor + add - peak[r])
        for r in range(size):
            new[r] += q[r]
        if k == A_PEAK:
            for r in range(size):
                cross[r] += q[r] * difference[r]
    for r in range(size):
        total[r] += new[r]


@jit(relaxed=True)
def to_gradient(db, z, a, d, stat, b, sizes, inverse_tau, accumulate):
    """Turn the scores Z and A into the gradients of z0, without the one-hot targets, and of e_t . e_j, in place."""
    q, p, y, offset, rows = stat[FIRST], stat[SECOND], stat[NEW], stat[CROSS], sizes.sum()
    z_peak, z_factor, y_peak, y_factor = stat[Z_PEAK], stat[Z_SUM], stat[Y_PEAK], stat[Y_SUM]
    a_peak, a_factor = stat[A_PEAK], stat[A_SUM]
    for j in range(z.shape[0]):
        row, dot, difference, add = z[j], a[j], d[j], (b[j] if b.size else inverse_tau - inverse_tau)
        for r in range(rows):
            q[r] = exp(row[r] + add - z_peak[r]) * z_factor[r]
        for r in range(rows):
            p[r] = exp(row[r] * inverse_tau - y_peak[r]) * y_factor[r]
        for k in range(sizes[0]):
            y[k] = exp(dot[k] * inverse_tau - a_peak[k]) * a_factor[k]
        for k in range(sizes[0]):
            dot[k] = y[k] * (difference[k] - offset[k])
        start = 0
        for level in range(sizes.size):
            gradient, one, other = row[start:], q[start:], p[start:]
            for k in range(sizes[level]):
                gradient[k] = one[k] + other[k] - y[k]
            start += sizes[level]
        if db.size:
            total = db[j] if accumulate else q[0] - q[0]
            for r in range(rows):
                total += q[r]
            db[j] = total
