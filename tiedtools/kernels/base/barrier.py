"""Barrier, lock and work partition for threads in compiled code, which cannot use Python's."""

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from tiedtools.kernels.base.jit import jit

SPINS = 10_000  # tens of microseconds; after that, waiting threads yield the core
NEVER = np.zeros(1, np.uint8)
LOCK = 4  # index of the lock's counter in a gate
GROUPS = 64  # index of the barriers of groups of threads in a gate, two cache lines each

yield_core = types.ExternalFunction("sched_yield", types.int32())


@intrinsic
def add_atomically(typingctx, array, index, value):
    """Atomically add `value` to array[index] (int64), sequentially consistent; returns the old value."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", builder.gep(data, [args[1]]), args[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), codegen


@intrinsic
def load_atomically(typingctx, array, index):
    """Load array[index] (int64) atomically, sequentially consistent."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "seq_cst", 8)

    return types.int64(array, types.intp), codegen


@jit
def wait_for_all(gate, threads, stop):
    """Barrier: wait until `threads` threads have called this. Writes before it are visible to all threads after it.

    gate  int64 [16], initially zeros: number of arrivals and, one cache line on, how often the barrier has opened
    stop  uint8 [1]

    Returns False as soon as `stop` is not 0, so that no thread waits for one that has ended; the gate must not be used
    after that.
    """
    opened = load_atomically(gate, 8)
    if add_atomically(gate, 0, 1) == threads - 1:
        add_atomically(gate, 0, -threads)
        add_atomically(gate, 8, 1)
    spins = 0
    while load_atomically(gate, 8) == opened and stop[0] == 0:
        spins += 1
        if spins > SPINS:
            yield_core()
    return stop[0] == 0


@jit
def sync(worker):
    """Wait for all threads of a team.        worker  (thread, threads, gate): see network.threads.Team"""
    if worker[1] > 1:
        wait_for_all(worker[2], worker[1], NEVER)


@jit
def acquire(worker):
    """Acquire the team's lock (spinning); `release` releases it."""
    while add_atomically(worker[2], LOCK, 1):
        add_atomically(worker[2], LOCK, -1)
        yield_core()


@jit
def release(worker):
    """Release the team's lock."""
    add_atomically(worker[2], LOCK, -1)


@jit
def partition(worker, n, grain=1):
    """Return (begin, end), this thread's part of range(n); all parts but the last are multiples of `grain`."""
    thread, threads, _ = worker
    grains = -(-n // grain)
    return min(n, thread * grains // threads * grain), min(n, (thread + 1) * grains // threads * grain)
