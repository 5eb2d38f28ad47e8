"""Scores of a continuous cache, whose sums give the probability of each target (evaluation/neuralcache.py).

Scores of keys and positions are computed in blocks, transposed as in softmax.py, with the running maximum of each
position (online softmax, Milakov and Gimelshein 2018). Threads divide the positions.
"""

from tiedtools.kernels.base.barrier import partition
from tiedtools.kernels.base.bfloat16 import contiguous
from tiedtools.kernels.base.elementwise import transpose
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import product
from tiedtools.kernels.base.scalar import exp

NONE, HIDDEN = -1e30, -2e30  # maximum of no scores; score of a key that a position does not see
LANES = 16  # positions computed at a time
KEYS, ROWS = 128, 64  # keys and positions in a block; its scores fit the L1 cache


@jit
def add_scores(worker, sums, Z, XT, X, keys, words, targets, first, size):
    """Add the scores of some keys to the sums of all positions.

    sums  [3, B, T]: of position t of stream b, the maximum of its scores X[t, b] . key; the sum of
          exp(score - maximum); and the part of this sum whose word is targets[b, t]
    Z  [threads, KEYS + 2, ROWS] and XT  [threads, n, ROWS]: scratch
    X  [T, B, n]    targets  int32 [B, T]    keys  [>= K, B, n]    words  int32 [K, B], each key's word; -1: none
    first  time of the first key, if X[0] is time 0; at time t, the keys of times t - size .. t - 1 are visible
    """
    thread, (T, _, _), K = worker[0], X.shape, words.shape[0]
    z, xt = Z[thread], XT[thread]
    begin, end = partition(worker, targets.size)
    while begin < end:
        b, t = begin // T, begin % T
        stop = min(T, t + ROWS, t + end - begin)
        block, wide = slice(t, stop), -(-(stop - t) // LANES) * LANES
        transpose(xt[:, :wide], X[block, b])
        last = min(K, stop - 1 - first)
        for k in range(max(0, t - size - first), last, KEYS):
            seen = slice(k, min(last, k + KEYS))
            scores = z[: seen.stop - k]
            product(scores[:, :wide], keys[seen, b], xt[:, :wide], False)
            add(sums[:, b, block], z[KEYS:], scores, words[seen, b], targets[b, block], first + k - t, size)
        begin += stop - t


@jit(relaxed=True)
def add(sums, scratch, z, words, targets, first, size):
    """Add a block of scores, z [keys, >= rows], to the sums [3, rows]; the first row is at time 0.

    scratch  [2, >= rows]        words  int32 [keys]        targets  int32 [rows]        first, size: as above
    """
    # Large sums lose small terms that are added one by one, so those of a block are summed first.
    peak, total, matched, old, own = contiguous(sums[0], sums[1], sums[2], scratch[0], scratch[1])
    rows = peak.size
    for k in range(words.size):
        begin, end = (first + k + 1, first + k + 1 + size) if words[k] >= 0 else (0, 0)
        z[k, : max(0, begin)] = HIDDEN
        z[k, max(0, end) :] = HIDDEN
    for r in range(rows):
        old[r] = peak[r]
    for k in range(words.size):
        score = z[k]
        for r in range(rows):
            peak[r] = score[r] if score[r] > peak[r] else peak[r]
    for r in range(rows):
        factor = exp(old[r] - peak[r])
        total[r] *= factor
        matched[r] *= factor
    scratch[:, :rows] = 0  # from here on, the sums of this block
    for k in range(words.size):
        score = z[k]
        for r in range(rows):
            score[r] = exp(score[r] - peak[r])
        for r in range(rows):
            old[r] += score[r]
        for r in range(rows):
            if targets[r] == words[k]:
                own[r] += score[r]
    for r in range(rows):
        total[r] += old[r]
        matched[r] += own[r]
