"""The CPU's name and the number of cores available to this process. See processor.py for its configuration."""

import collections
import concurrent.futures
import contextlib
import os
import platform


def available_cores():
    """Number of cores that this process may use, at most 1024, the largest number of threads."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 1024)


def ahead(function, items):
    """Yield function(item) for each of `items` in order, computed by threads a few items ahead.

    For functions that release the global interpreter lock most of the time.
    """
    threads = available_cores()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        pending = collections.deque()
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > 2 * threads:
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
