"""Calls of a kernel by all threads of a team (network/threads.py), without Python on any but the first.

The first thread converts the arguments once. The others wait in `serve`, in compiled code, for the address of a task,
which calls the kernel with these arguments. With any number of threads, a call costs a few microseconds, or tens if
threads have to be woken, because none of them needs the interpreter's lock.
"""

import functools

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.base import inner
from tiedtools.kernels.base.barrier import SPINS, add_atomically, load_atomically, now, rest, sleep, wake
from tiedtools.kernels.base.jit import Cache, compiled, jit

# Elements of a gate besides those in barrier.py: number of jobs so far, the task of the current one and its data,
# whether threads may spin; number of threads that have finished it.
JOBS, TASK, DATA, RESTLESS, DONE = 16, 17, 18, 19, 32
YIELDS = SPINS + 2_000  # turns of a millisecond or more, after which threads sleep
PLACE = types.voidptr, types.intp  # arguments of a task: data, thread


@intrinsic
def perform(typingctx, task, data, thread):
    """Call the task at an address."""

    def codegen(context, builder, signature, args):
        kind = context.call_conv.get_function_type(types.none, PLACE)
        slots = [cgutils.alloca_once(builder, slot.pointee) for slot in kind.args[:2]]
        task, data, thread = args
        builder.call(builder.inttoptr(task, kind.as_pointer()), [*slots, builder.inttoptr(data, kind.args[2]), thread])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.intp), codegen


@jit
def publish(worker, task, data):
    """Let the other threads perform a task; 0: let them return."""
    _, threads, gate = worker
    if threads > 1:
        gate[TASK], gate[DATA], gate[DONE] = task, data, 0
        add_atomically(gate, JOBS, 1)
        wake(gate, JOBS)


@jit
def await_all(worker, patience):
    """Wait until the other threads have finished the job, but for no more than `patience` nanoseconds."""
    _, threads, gate = worker
    turns, began = 0, now()
    while threads > 1:
        done = load_atomically(gate, DONE)
        if done == threads - 1:
            break
        turns += 1
        if turns > SPINS:
            if now() - began > patience:
                break
            rest(gate, DONE, done)


@jit
def serve(worker):
    """Perform all tasks that are published, on another thread than the first, until the task is 0."""
    thread, _, gate = worker
    jobs = turns = 0
    while jobs == 0 or gate[TASK]:
        turns = 0
        while load_atomically(gate, JOBS) == jobs:
            turns += 1
            if turns > YIELDS or not gate[RESTLESS]:
                sleep(gate, JOBS, jobs)
            elif turns > SPINS:
                rest(gate, JOBS, jobs)
        jobs += 1
        if gate[TASK]:
            perform(gate[TASK], gate[DATA], thread)
            add_atomically(gate, DONE, 1)
            wake(gate, DONE)
    add_atomically(gate, DONE, 1)  # without `wake`: from now on, this code may be unloaded


@functools.cache
def launcher(kernel):
    """Return a function like `kernel` for Python that runs on all threads of the worker (0, threads, gate)."""

    @intrinsic
    def call(typingctx, worker, args):
        kinds = worker, *map(types.unliteral, args)

        def codegen(context, builder, signature, values):
            kind = context.call_conv.get_function_type(types.none, PLACE)
            task = ir.Function(builder.module, kind, f"{builder.function.name}.task")
            task.linkage = "internal"
            within = ir.IRBuilder(task.append_basic_block())
            pack = ir.LiteralStructType([value.type for value in values])
            own, rest = cgutils.unpack_tuple(within, within.load(within.bitcast(task.args[2], pack.as_pointer())))
            own = within.insert_value(own, task.args[3], 0)
            inner.call(context, within, kernel, kinds, [own, *cgutils.unpack_tuple(within, rest)])
            context.call_conv.return_value(within, context.get_dummy_value())

            data = cgutils.alloca_once_value(builder, cgutils.pack_struct(builder, values))
            numbers = [builder.ptrtoint(pointer, ir.IntType(64)) for pointer in (task, data)]
            inner.call(context, builder, publish, (worker, types.int64, types.int64), [values[0], *numbers])
            place = builder.bitcast(data, kind.args[2]), ir.IntType(64)(0)
            status, _ = context.call_conv.call_function(builder, task, types.none, PLACE, place)
            inner.call(context, builder, await_all, (worker, types.intp), [values[0], ir.IntType(64)(1 << 62)])
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return context.get_dummy_value()

        return types.void(worker, types.Tuple(kinds[1:])), codegen

    def launch(worker, *args):
        call(worker, args)

    return compiled(launch, lambda: Cache(kernel.py_func, ".team"), inner.Compiler)
