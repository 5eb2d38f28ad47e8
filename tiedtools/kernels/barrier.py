"""A barrier for threads inside compiled code, which cannot call Python's."""

import numpy as np
from numba.core import types
from numba.extending import intrinsic

from tiedtools.kernels.jit import jit

SPINS = 10_000  # tens of microseconds; then whoever waits lets others have the core
NEVER = np.zeros(1, np.uint8)
LOCK = 4  # where a gate counts who wants to be alone

yield_core = types.ExternalFunction("sched_yield", types.int32())


@intrinsic
def add_atomically(typingctx, array, index, value):
    """The old array[index] (int64), to which `value` is added in one step, in an order that all threads agree on."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.atomic_rmw("add", builder.gep(data, [args[1]]), args[2], "seq_cst")

    return types.int64(array, types.intp, types.int64), codegen


@intrinsic
def load_atomically(typingctx, array, index):
    """array[index] (int64) as it is in memory now."""

    def codegen(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "seq_cst", 8)

    return types.int64(array, types.intp), codegen


@jit
def wait_for_all(gate, threads, stop):
    """Wait until `threads` threads have called this; what each wrote before, all see after.

    gate  int64 [16], zeros at first: arrivals, and a cache line further the number of times it has opened
    stop  uint8 [1]

    Returns false at once where `stop` is not 0, so that nobody waits for a thread that is gone; the gate is then of no
    more use.
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
    """Wait until every thread of a team has come here.        worker  (thread, threads, gate): see parallel.Team"""
    if worker[1] > 1:
        wait_for_all(worker[2], worker[1], NEVER)


@jit
def begin_alone(worker):
    """Wait until no other thread of a team is between `begin_alone` and `end_alone`."""
    while add_atomically(worker[2], LOCK, 1):
        add_atomically(worker[2], LOCK, -1)
        yield_core()


@jit
def end_alone(worker):
    add_atomically(worker[2], LOCK, -1)


@jit
def partition(worker, n, grain=1):
    """(begin, end) of this thread's part of 0 .. n - 1, all but the last a multiple of `grain`."""
    thread, threads, _ = worker
    grains = -(-n // grain)
    return min(n, thread * grains // threads * grain), min(n, (thread + 1) * grains // threads * grain)
