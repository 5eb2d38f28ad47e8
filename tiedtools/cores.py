"""The CPU's name and the number of cores available to this process. See processor.py for its configuration."""

import contextlib
import os
import platform


def available_cores():
    """Number of cores that this process may use, at most 1024, the largest number of threads."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 1024)


def processor_name():
    """The CPU's model name, as reported by the operating system."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
