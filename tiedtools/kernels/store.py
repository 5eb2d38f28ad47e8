"""The rows of a matrix for many threads: changed at once by whoever comes, or by threads in step, in a fixed order.

A store is the tuple

    matrix   [V, P]
    changes  None: every change is made in `matrix` at once; or, of threads in step,
             slots    int32 [threads, V]: where a thread keeps its changes of a row, -1: it has none
             pending  [threads, most rows a thread changes in a round, P]: the changes
             changed  int32 [threads, the same]: their rows
             used     int64 [threads, 8]: column 0, how many rows that is
"""

from tiedtools.kernels.jit import jit
from tiedtools.kernels.prefetch import prefetch

AHEAD = 8  # rows to fetch before their turn


@jit
def gather(out, matrix, changes, words, thread):
    """out[k] = row words[k], as `thread` sees it."""
    for k in range(words.size):
        row = matrix[words[k]]
        for d in range(row.size):
            out[k, d] = row[d]
        if changes is not None:
            slots, pending = changes[:2]
            slot = slots[thread, words[k]]
            if slot >= 0:
                for d in range(row.size):
                    out[k, d] += pending[thread, slot, d]


@jit
def scatter(matrix, changes, words, change, thread):
    """Row words[k] += change[k], as `thread` sees it; a word may come more than once."""
    for k in range(words.size):
        row, add = matrix[words[k]], change[k]
        if changes is not None:
            row = changes[1][thread, slot_of(changes, words[k], thread)]
        for d in range(row.size):
            row[d] += add[d]


@jit
def slot_of(changes, word, thread):
    """Where `thread` keeps its changes of a row; from the first change on it has one, with zeros."""
    slots, pending, changed, used = changes
    slot = slots[thread, word]
    if slot < 0:
        slot = used[thread, 0]
        used[thread, 0] += 1
        slots[thread, word], changed[thread, slot] = slot, word
        for d in range(pending.shape[2]):
            pending[thread, slot, d] = 0
    return slot


@jit
def merge(matrix, changes, thread):
    """Add the changes of all threads, in their order, to those rows of `matrix` that fall to `thread`.

    The changes of two threads are added up. Those of n > 2 count 1 / (n - 1) each: every thread has gone the whole way
    on its own, and the sum of many such ways, for frequent words, would lead far beyond.
    """
    slots, pending, changed, used = changes
    threads = used.shape[0]
    for t in range(threads):
        for k in range(used[t, 0]):
            if k + AHEAD < used[t, 0] and changed[t, k + AHEAD] % threads == thread:
                prefetch(matrix, changed[t, k + AHEAD])
            word = changed[t, k]
            if word % threads == thread:
                row, add = matrix[word], pending[t, k]
                sharers = 0
                for other in range(threads):
                    sharers += slots[other, word] >= 0
                part = row.dtype.type(1 / max(sharers - 1, 1))
                for d in range(row.size):
                    row[d] += part * add[d]


@jit
def forget(changes, thread):
    """Begin a round without changes."""
    slots, _, changed, used = changes
    for k in range(used[thread, 0]):
        slots[thread, changed[thread, k]] = -1
    used[thread, 0] = 0


@jit
def merge_proj(proj, local, thread):
    """Add what the threads have changed in their copies of proj, likewise, in the rows that fall to `thread`.

    proj  [P, P];  local  [threads, P, P]
    """
    threads = local.shape[0]
    for i in range(thread, proj.shape[0], threads):
        for d in range(proj.shape[1]):
            old = new = proj[i, d]
            for t in range(threads):
                new += (local[t, i, d] - old) / max(threads - 1, 1)
            proj[i, d] = new
