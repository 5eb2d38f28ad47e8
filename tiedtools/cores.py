"""The CPU's name and the number of cores available to this process. See processor.py for its configuration."""

import collections
import concurrent.futures
import contextlib
import os
import platform


def available_cores():
    """Number of cores that this process may use, at most 1024, the largest number of threads."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 1024)


def ahead(functions, items):
    """Yield the results of functions[k % len(functions)](item k) in order, computed a few items ahead.

    Each function has its own thread and receives its items in order. Worthwhile for functions that release the global
    interpreter lock most of the time.
    """
    pending = collections.deque()
    with contextlib.ExitStack() as stack:
        threads = [stack.enter_context(concurrent.futures.ThreadPoolExecutor(1)) for _ in functions]
        stack.callback(lambda: [future.cancel() for future in pending])
        for k, item in enumerate(items):
            pending.append(threads[k % len(threads)].submit(functions[k % len(threads)], item))
            if len(pending) > 2 * len(threads):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()


def processor_name():
    """The CPU's model name, as reported by the operating system."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
