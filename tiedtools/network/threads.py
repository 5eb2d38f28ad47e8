"""Teams of threads that run a compiled kernel together, each on its part of the work."""

import contextlib
import functools
import os
import queue
import threading
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tiedtools.base.errors import TiedtoolsError

Worker = tuple[int, int, np.ndarray]  # thread, threads, gate
T = TypeVar("T")
PATIENCE = 5  # seconds that an interrupted main thread waits for each of the others
TEAMS: weakref.WeakSet["Team"] = weakref.WeakSet()
FEW = 1 << 18  # elements that one thread processes in about the time it takes to wake another


class Idle:
    """A stand-in for Team that computes nothing."""

    lock: Any = contextlib.nullcontext()

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def __call__(self, *args: Any) -> None:
        pass

    over = __call__


def idle(model: type) -> type:
    """Return a subclass of the language model class `model` that computes nothing, for memory estimates."""
    return type(f"Idle{model.__name__}", (model,), {"Team": Idle, "draw": lambda self: None})


class Team:
    """`threads` threads, including the calling one, that run the same compiled kernel concurrently.

    A kernel's first argument is its worker, (thread, threads, gate), for `barrier.partition` and `barrier.sync`. The
    other threads start at the first call in each process, so that a Team survives `fork`, and end when the Team is
    garbage-collected.
    """

    def __init__(self, threads: int) -> None:
        self.threads, self.process, self.jobs = threads, 0, []
        self.worker = 0, threads, np.zeros(16, np.int64)
        self.lock = threading.RLock()
        TEAMS.add(self)

    def __reduce__(self) -> tuple[type, tuple[int]]:
        return Team, (self.threads,)

    def start(self) -> None:
        """Start the other threads. Raises TiedtoolsError if the system cannot start them all."""
        gate, self.done = np.zeros(16, np.int64), queue.SimpleQueue()
        self.worker, *workers = [(number, self.threads, gate) for number in range(self.threads)]
        self.jobs = [queue.SimpleQueue() for _ in workers]
        end = weakref.finalize(self, close, self.jobs)
        try:
            for worker, jobs in zip(workers, self.jobs):
                start_thread(worker[0], self.threads, work, worker, jobs, self.done)
        except TiedtoolsError:
            end()
            raise
        self.process = os.getpid()

    def __call__(self, kernel: Callable[..., object], *args: Any) -> None:
        """Call kernel(worker, *args) on every thread, and wait for all of them."""
        if self.process != os.getpid():
            self.start()
        for jobs in self.jobs:
            jobs.put((kernel, args))
        failures = []
        try:
            kernel(self.worker, *args)
        except Exception as error:
            failures.append(error)
        except KeyboardInterrupt:
            # If the kernel had not started on this thread, the other threads may wait for it forever in the kernel.
            with contextlib.suppress(queue.Empty):
                for _ in self.jobs:
                    self.done.get(timeout=PATIENCE)
            raise
        for failure in failures + [self.done.get() for _ in self.jobs]:
            if failure:
                raise failure

    def over(self, numbers: int, kernel: Callable[..., object], *args: Any) -> None:
        """Call the kernel as above, or only on this thread if it makes one pass over fewer than FEW numbers."""
        if numbers < FEW:
            kernel((0, 1, self.worker[2]), *args)
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


def work(worker: Worker, jobs: queue.SimpleQueue[Any], done: queue.SimpleQueue[Any]) -> None:
    """Run jobs until the job is None. Holds no reference to the Team, so that it can be garbage-collected."""
    while job := jobs.get():
        kernel, args = job
        failure = None
        try:
            kernel(worker, *args)
        except Exception as error:
            failure = error
        done.put(failure)


def close(queues: list[queue.SimpleQueue[Any]]) -> None:
    """End the threads that wait on `queues` for jobs."""
    for jobs in queues:
        jobs.put(None)
