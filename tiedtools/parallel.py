"""Threads that run one compiled kernel together, each on its share."""

import queue
import threading

import numpy as np


class Idle:
    """In the place of a Team where nothing is to be computed."""

    def __init__(self, threads):
        self.threads = threads

    def __call__(self, kernel, *args):
        pass


def idle(model):
    """The class of language models `model`, but for what they compute: nothing."""
    return type(f"Idle{model.__name__}", (model,), {"Team": Idle, "draw": lambda self: None})


class Team:
    """`threads` threads, this one among them, that call the same compiled kernel at the same time.

    A kernel's first argument is its place, (thread, threads, gate), for `barrier.share` and `barrier.sync`.
    """

    def __init__(self, threads):
        self.threads = threads
        self.gate = np.zeros(16, np.int64)
        self.jobs = [queue.SimpleQueue() for _ in range(threads - 1)]
        self.done = queue.SimpleQueue()
        for number, jobs in enumerate(self.jobs, 1):
            threading.Thread(target=self.work, args=(number, jobs), daemon=True).start()

    def __call__(self, kernel, *args):
        """Call kernel(place, *args) on every thread and wait for all."""
        for jobs in self.jobs:
            jobs.put((kernel, args))
        try:
            kernel(self.place(0), *args)
        finally:
            failures = [self.done.get() for _ in self.jobs]
        for failure in failures:
            if failure:
                raise failure

    def place(self, number):
        return number, self.threads, self.gate

    def work(self, number, jobs):
        place = self.place(number)
        while job := jobs.get():
            kernel, args = job
            failure = None
            try:
                kernel(place, *args)
            except Exception as error:
                failure = error
            self.done.put(failure)

    def close(self):
        for jobs in self.jobs:
            jobs.put(None)
