"""Asynchronous training: threads take numbered jobs in order and update shared arrays without locks.

Recht et al. 2011, "Hogwild". The work is a compiled kernel that releases the global interpreter lock.
"""

import threading
from collections.abc import Callable, Iterable
from typing import Any

from tiedtools.network.threads import start_thread


def run(
    work: Callable[[int, Any], object], jobs: Iterable[Any], threads: int, ask_to_stop: Callable[[], object],
    tick: Callable[[], object] = lambda: None, every: float = 0.1,
) -> None:  # fmt: skip
    """Call work(thread number, job) for each of `jobs`, in order, on up to `threads` threads.

    Only one thread at a time advances `jobs`, so the iterable may end at any moment. `tick` is called from the calling
    thread every `every` seconds. If `work` raises or the calling thread is interrupted (Ctrl-C), `ask_to_stop()` is
    called, running jobs finish, and the exception is raised in the calling thread. Raises TiedtoolsError if the
    threads cannot be started.
    """
    lock = threading.Lock()
    pending = iter(jobs)
    failures = []
    stopping = threading.Event()

    def worker(number: int) -> None:
        while not stopping.is_set():
            with lock:
                job = next(pending, None)
            if job is None:
                return
            try:
                work(number, job)
            except BaseException as error:
                failures.append(error)
                stopping.set()
                ask_to_stop()

    workers = []
    try:
        for k in range(threads):
            workers.append(start_thread(k, threads, worker, k))
        for thread in workers:
            while thread.is_alive():
                thread.join(every)
                tick()
    except BaseException:
        stopping.set()
        ask_to_stop()
        for thread in workers:
            thread.join()
        raise
    if failures:
        raise failures[0]
