"""Barrier, lock and work partition for threads in compiled code, which cannot use Python's."""

import platform
import sys

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.base.jit import jit

SPINS = 10_000  # tens of microseconds; after that, waiting threads rest
NEVER = np.zeros(1, np.uint8)
# Elements of a gate besides those of `wait_for_all`: the number of threads that sleep; the number of coming calls of
# `rest` that will sleep, and its last initial value; the lock's counter; barriers of groups, two cache lines each.
SLEEPERS, SLEEPS, GRANTED, LOCK, GROUPS = 1, 2, 3, 4, 64
LONG = 300_000  # nanoseconds; in a yield that takes longer, another process has used the core
FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0) if sys.platform.startswith("linux") else 0
WAIT, WAKE, ALL = 128, 129, 1 << 30  # FUTEX_PRIVATE_FLAG included
TIMEOUT = np.array([0, 10**7])  # seconds and nanoseconds, after which a thread looks whether it should stop
CLOCK = 1 if sys.platform.startswith("linux") else 6  # CLOCK_MONOTONIC

system_call = types.ExternalFunction("syscall", types.int64(*[types.int64] * 5))
sleep_briefly = types.ExternalFunction("usleep", types.int32(types.int32))
yield_core = types.ExternalFunction("sched_yield", types.int32())


@intrinsic
def now(typingctx):
    """Return the time in nanoseconds."""

    def codegen(context, builder, signature, args):
        i64 = ir.IntType(64)
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(32), i64.as_pointer()])
        clock = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        time = cgutils.alloca_once(builder, i64, 2)
        builder.call(clock, [ir.IntType(32)(CLOCK), time])
        seconds, nanoseconds = (builder.load(builder.gep(time, [ir.IntType(32)(k)])) for k in range(2))
        return builder.add(builder.mul(seconds, i64(10**9)), nanoseconds)

    return types.int64(), codegen


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
def sleep(gate, word, value, timeout=0):
    """Sleep until `wake`, but not if gate[word] is not `value`.        timeout  address of a timespec, or 0: none"""
    add_atomically(gate, SLEEPERS, 1)
    if FUTEX:
        system_call(FUTEX, gate[word:].ctypes.data, WAIT, value, timeout)
    else:
        sleep_briefly(100)
    add_atomically(gate, SLEEPERS, -1)


@jit
def wake(gate, word):
    """Wake the threads that sleep until gate[word] changes."""
    if FUTEX and load_atomically(gate, SLEEPERS):
        system_call(FUTEX, gate[word:].ctypes.data, WAKE, ALL, 0)


@jit
def rest(gate, word, value):
    """Yield the core to other processes; or, if they have used it for long, sleep until gate[word] is not `value`.

    A thread that yields gets the core back only after a time slice of the other process, milliseconds later, and all
    threads that meet it at a barrier wait as long.
    """
    if gate[SLEEPS] > 0:
        gate[SLEEPS] -= 1
        sleep(gate, word, value, TIMEOUT.ctypes.data)
        return
    began = now()
    yield_core()
    if FUTEX and now() - began > LONG:
        gate[SLEEPS] = gate[GRANTED] = min(4 * gate[GRANTED] + 100, 1_000)
    else:
        gate[GRANTED] //= 2


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
        wake(gate, 8)
    spins = 0
    while load_atomically(gate, 8) == opened and stop[0] == 0:
        spins += 1
        if spins > SPINS:
            rest(gate, 8, opened)
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
