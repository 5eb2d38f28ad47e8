"""Threads that run one compiled kernel together, each on its share."""

import contextlib
import os
import queue
import threading
import weakref

import numpy as np

from tiedtools.errors import TiedtoolsError

PATIENCE = 5  # seconds that an interrupted thread waits for the others
FEW = 1 << 18  # numbers that one thread has gone through in about the time it takes to wake another


class Idle:
    """Stands in for a Team where nothing is to be computed."""

    def __init__(self, threads):
        self.threads = threads

    def __call__(self, kernel, *args):
        pass

    over = __call__


def idle(model):
    """The class of language models `model`, but for what they compute: nothing."""
    return type(f"Idle{model.__name__}", (model,), {"Team": Idle, "draw": lambda self: None})


class Team:
    """`threads` threads, this one among them, that call the same compiled kernel at the same time.

    A kernel's first argument is its worker, (thread, threads, gate), for `barrier.partition` and `barrier.sync`. The
    other threads start at the first call, in each process anew, so that a Team survives `fork`, and end when nobody
    uses the Team any more.
    """

    def __init__(self, threads):
        self.threads, self.process, self.jobs = threads, None, []
        self.worker = 0, threads, np.zeros(16, np.int64)

    def __reduce__(self):
        return Team, (self.threads,)

    def start(self):
        """Start the other threads. Raises TiedtoolsError where the system cannot start as many."""
        gate, self.done = np.zeros(16, np.int64), queue.SimpleQueue()
        self.worker, *workers = [(number, self.threads, gate) for number in range(self.threads)]
        self.jobs = [queue.SimpleQueue() for _ in workers]
        end = weakref.finalize(self, close, self.jobs)
        try:
            for worker, jobs in zip(workers, self.jobs):
                started(worker[0], self.threads, work, worker, jobs, self.done)
        except TiedtoolsError:
            end()
            raise
        self.process = os.getpid()

    def __call__(self, kernel, *args):
        """Call kernel(worker, *args) on every thread and wait for all."""
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
            # Where it came before the kernel had begun, the others wait in it for this thread, and would for ever.
            with contextlib.suppress(queue.Empty):
                for _ in self.jobs:
                    self.done.get(timeout=PATIENCE)
            raise
        for failure in failures + [self.done.get() for _ in self.jobs]:
            if failure:
                raise failure

    def over(self, numbers, kernel, *args):
        """Call the kernel as above, or on this thread alone where it goes once through so few numbers."""
        if numbers < FEW:
            kernel((0, 1, self.worker[2]), *args)
        else:
            self(kernel, *args)


def started(number, threads, target, *args):
    """The thread of this number of so many, from 0. Raises TiedtoolsError where the system does not give it."""
    thread = threading.Thread(target=target, args=args, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        raise TiedtoolsError(f"could start only {number} of {threads} threads; lower `threads`") from None
    return thread


def work(worker, jobs, done):
    """What a thread does: the jobs of a Team, which it does not know, so that it keeps none alive."""
    while job := jobs.get():
        kernel, args = job
        failure = None
        try:
            kernel(worker, *args)
        except Exception as error:
            failure = error
        done.put(failure)


def close(queues):
    """End the threads that wait for jobs."""
    for jobs in queues:
        jobs.put(None)
