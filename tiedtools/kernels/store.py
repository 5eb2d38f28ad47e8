"""The rows of a matrix for many threads: changed at once by whoever comes, or by threads in step, in a fixed order.

A store is the tuple

    matrix   [V, P]
    slots    int32 [threads, V]: where a thread keeps its changes of a row, -1: it has none. [1, 0]: every change is
             made in `matrix` at once
    pending  [threads, most rows a thread changes in a round, P]: the changes
    changed  int32 [threads, the same]: their rows
    used     int64 [threads, 8]: column 0, how many rows that is
"""

from tiedtools.kernels.jit import jit
from tiedtools.kernels.prefetch import prefetch

AHEAD = 8  # rows to fetch before their turn


@jit
def gather(out, store, words, thread):
    """out[k] = row words[k], as `thread` sees it."""
    matrix, slots, pending, changed, used = store
    for k in range(words.size):
        word = words[k]
        slot = slots[thread, word] if slots.size else -1
        if slot < 0:
            for d in range(matrix.shape[1]):
                out[k, d] = matrix[word, d]
        else:
            for d in range(matrix.shape[1]):
                out[k, d] = matrix[word, d] + pending[thread, slot, d]


@jit
def scatter(store, words, change, thread):
    """Row words[k] += change[k], as `thread` sees it; a word may come more than once."""
    matrix, slots, pending, changed, used = store
    for k in range(words.size):
        word = words[k]
        row, add = matrix[word], change[k]
        if slots.size:
            row = pending[thread, slot_of(store, word, thread)]
        for d in range(row.size):
            row[d] += add[d]


@jit
def slot_of(store, word, thread):
    """Where `thread` keeps its changes of a row; from the first change on it has one, with zeros."""
    matrix, slots, pending, changed, used = store
    slot = slots[thread, word]
    if slot < 0:
        slot = used[thread, 0]
        used[thread, 0] += 1
        slots[thread, word], changed[thread, slot] = slot, word
        for d in range(matrix.shape[1]):
            pending[thread, slot, d] = 0
    return slot


@jit
def merge(store, thread):
    """Add the changes of all threads, in their order, to those rows of `matrix` that fall to `thread`.

    The changes of two threads are added up. Those of n > 2 count 1 / (n - 1) each: every thread has gone the whole way
    on its own, and the sum of many such ways, for frequent words, would lead far beyond.
    """
    matrix, slots, pending, changed, used = store
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
def forget(store, thread):
    """Begin a round without changes."""
    matrix, slots, pending, changed, used = store
    for k in range(used[thread, 0]):
        slots[thread, changed[thread, k]] = -1
    used[thread, 0] = 0


@jit
def merge_proj(proj, local, thread):
    """Add what the threads have changed in their copies of proj, likewise, in the rows that fall to `thread`.

    proj  [P, P] or [0, 0];  local  [threads, P, P]
    """
    threads = local.shape[0]
    for i in range(thread, proj.shape[0], threads):
        for d in range(proj.shape[1]):
            old = new = proj[i, d]
            for t in range(threads):
                new += (local[t, i, d] - old) / max(threads - 1, 1)
            proj[i, d] = new
