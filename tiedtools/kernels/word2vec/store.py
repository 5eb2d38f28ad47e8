"""Row updates of a matrix shared by threads: in place without locks (Hogwild), or deferred and merged in fixed order.

A store is the tuple

    matrix   [V, P]
    changes  None: updates are applied to `matrix` at once. For deterministic threads, which synchronize every round:
             slots    int32 [threads, V]: index of a row's pending changes in a thread, -1: none
             pending  [threads, maximum number of rows that a thread changes per round, P]: the changes
             changed  int32 [threads, same]: their rows
             used     int64 [threads, 8]: column 0 is the number of changed rows
    frozen   uint8 [V]: whether a row is never changed; [0]: none is
"""

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch

AHEAD = 8  # prefetch distance in rows


@jit
def look_up(rows, numbers, words):
    """rows[k] = row of words[k]: its number, or 0 if that is -1; without numbers, the word."""
    for k in range(words.size):
        rows[k] = words[k] if numbers is None else max(numbers[words[k]], 0)


@jit
def gather(out, matrix, changes, words, thread):
    """out[k] = row words[k] as seen by `thread`: with its pending changes."""
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
def scatter(matrix, changes, frozen, words, change, thread):
    """Add change[k] to row words[k] unless frozen, at once or as pending changes of `thread`; words may repeat."""
    for k in range(words.size):
        if frozen.size and frozen[words[k]]:
            continue
        row, add = matrix[words[k]], change[k]
        if changes is not None:
            row = changes[1][thread, slot_of(changes, words[k], thread)]
        for d in range(row.size):
            row[d] += add[d]


@jit
def slot_of(changes, word, thread):
    """Return the slot of a row's pending changes in `thread`; allocates a zero-filled one at the first change."""
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
    """Add the pending changes of all threads, in thread order, to the rows of `matrix` that `thread` merges.

    If n > 2 threads have changed a row, their changes are scaled by 1 / (n - 1): each thread has made the full update,
    so for frequent words the plain sum would overshoot.
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
    """Discard the pending changes of `thread`, at the start of a round."""
    slots, _, changed, used = changes
    for k in range(used[thread, 0]):
        slots[thread, changed[thread, k]] = -1
    used[thread, 0] = 0


@jit
def merge_proj(proj, local, thread):
    """Add the threads' changes to their copies of proj, scaled as in `merge`, in the rows that `thread` merges.

    proj  [P, P];  local  [threads, P, P]
    """
    threads = local.shape[0]
    for i in range(thread, proj.shape[0], threads):
        for d in range(proj.shape[1]):
            old = new = proj[i, d]
            for t in range(threads):
                new += (local[t, i, d] - old) / max(threads - 1, 1)
            proj[i, d] = new
