"""Teams of threads that run a compiled kernel together, each on its part of the work."""

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores
from tiedtools.kernels.base.arrays import lines
from tiedtools.kernels.base.barrier import GROUPS
from tiedtools.kernels.base.launch import RESTLESS, await_all, launcher, publish, serve

Worker = tuple[int, int, np.ndarray]  # thread, threads, gate
T = TypeVar("T")
TEAMS: weakref.WeakSet["Team"] = weakref.WeakSet()
FEW = 1 << 14  # elements that one thread processes in about the time of a call of all threads


class Idle:
    """A stand-in for Team that computes nothing."""

    lock: Any = contextlib.nullcontext()

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def __call__(self, *args: Any) -> None:
        pass

    over = __call__


def idle(model: type) -> type:
    """Return a subclass of the model class `model` that computes nothing, for memory estimates."""
    return type(f"Idle{model.__name__}", (model,), {"Team": Idle, "draw": lambda self: None})


class Team:
    """`threads` threads, including the calling one, that run the same compiled kernel concurrently.

    A kernel's first argument is its worker, (thread, threads, gate), for `barrier.partition` and `barrier.sync`. The
    other threads start at the first call in each process, so that a Team survives `fork`, and end when the Team is
    garbage-collected.
    """

    def __init__(self, threads: int) -> None:
        self.threads, self.process = threads, 0
        self.worker = 0, threads, np.zeros(GROUPS, np.int64)
        self.lock = threading.RLock()
        TEAMS.add(self)

    def start(self) -> None:
        """Start the other threads. Raises TiedtoolsError if the system cannot start them all."""
        gate = lines(GROUPS + 16 * self.threads, np.int64)
        gate[RESTLESS] = self.threads <= available_cores()
        self.worker, *workers = [(number, self.threads, gate) for number in range(self.threads)]
        end = weakref.finalize(self, close, self.worker, os.getpid())
        try:
            for worker in workers:
                start_thread(worker[0], self.threads, serve, worker)
        except TiedtoolsError:
            end()
            raise
        self.process = os.getpid()

    def __call__(self, kernel: Callable[..., object], *args: Any) -> None:
        """Call kernel(worker, *args) on every thread, and wait for all of them."""
        if self.threads > 1 and self.process != os.getpid():
            self.start()
        launcher(kernel)(self.worker, *args)

    def over(self, numbers: int, kernel: Callable[..., object], *args: Any) -> None:
        """Call the kernel as above, or only on this thread if it makes one pass over fewer than FEW numbers."""
        if numbers < FEW:
            launcher(kernel)((0, 1, self.worker[2]), *args)
        else:
            self(kernel, *args)


def unlock() -> None:
    """Replace the locks of all teams, in a forked process, where the threads that hold them do not exist."""
    for team in TEAMS:
        team.lock = threading.RLock()


os.register_at_fork(after_in_child=unlock)


def exclusive(method: Callable[..., T]) -> Callable[..., T]:
    """Decorate a method of a model so that one thread at a time runs it: calls share the model's scratch arrays."""

    @functools.wraps(method)
    def locked(self: Any, *args: Any, **options: Any) -> T:
        with self.params.team.lock:
            return method(self, *args, **options)

    return locked


def start_thread(number: int, threads: int, target: Callable[..., object], *args: Any) -> threading.Thread:
    """Start and return thread `number` (from 0) of `threads`. Raises TiedtoolsError if the system cannot start it."""
    thread = threading.Thread(target=target, args=args, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        raise TiedtoolsError(f"could start only {number} of {threads} threads; lower `threads`") from None
    return thread


def close(worker: Worker, process: int) -> None:
    """End the other threads of a Team, if this process started them; at exit, before their code is unloaded."""
    if os.getpid() == process:
        publish(worker, 0, 0)
        await_all(worker, 2 * 10**8)
