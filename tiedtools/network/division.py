"""How threads divide the steps of a recurrent layer; see kernels/cells/recurrence.py."""

import functools

# What a step takes: per nanosecond, bytes of packed weights from the second-level cache, if they fit CACHE, and from
# memory, operations, and bytes of states from other cores; in nanoseconds, a gate, and, for each thread, a barrier
# with the wait for threads that other processes delay. Magnitudes for a server CPU with matrix units.
CACHE, FROM_CACHE, FROM_MEMORY, OPERATIONS, FROM_CORES, GATE, BARRIER = 1 << 20, 80, 20, 1000, 10, 0.5, 150


@functools.cache
def divide(threads: int, B: int, n: int, gates: int, lanes: int) -> tuple[int, int]:
    """Return the number of groups of threads that divide B sequences of a layer of n units, and the threads of a group.

    A group of one thread needs no barrier and no states from other cores, but all of W_h; in a group of all threads,
    each needs only a part of W_h, but waits at each step. Chosen is what takes least time by `duration`; this may leave
    threads without a group, so more threads never take more time. Two threads form one group.
    """
    if threads <= 2:
        return 1, threads
    divisions = [(groups, side) for groups in range(1, min(threads, B) + 1) for side in range(1, threads // groups + 1)]
    return min(divisions, key=lambda pair: duration(pair[0], pair[1], B, n, gates, lanes))


def duration(groups: int, side: int, B: int, n: int, gates: int, lanes: int) -> float:
    """Return the estimated duration of a step in nanoseconds, by the constants above."""
    rows, columns = -(-B // groups), gates * lanes * -(-n // (lanes * side))
    size, operations = 2 * n * columns, 2 * n * rows * columns
    product = max(size / (FROM_CACHE if size <= CACHE else FROM_MEMORY), operations / OPERATIONS)
    waiting = rows * 2 * n / FROM_CORES + BARRIER * side if side > 1 else 0
    return product + GATE * rows * columns + waiting
