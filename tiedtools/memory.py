"""Memory: what this process has, had at its peak, and may still get; and a refusal before a run that cannot fit."""

import contextlib
import os
import resource
import sys

from tiedtools.errors import TiedtoolsError
from tiedtools.messages import log

REST = 6 * 10**6  # bytes for what nobody counts: writing files, threads
PROC, GROUPS = "/proc", "/sys/fs/cgroup"
UNLIMITED = 1 << 60  # how cgroups of version 1 write that there is no limit: about the largest int64


def told(file, label):
    """Bytes behind a label in one of Linux's files about memory; None elsewhere."""
    with contextlib.suppress(OSError), open(f"{PROC}/{file}") as lines:
        for line in lines:
            if line.startswith(f"{label}:"):
                return int(line.split()[1]) * 1024
    return None


def peak():
    """Bytes of memory that this process had at its peak."""
    # ru_maxrss would count what the process held that became this one.
    unit = 1 if sys.platform == "darwin" else 1024
    return told("self/status", "VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def expected(coming):
    """Bytes that this process will have at its peak, if so many are still to come, as far as can be known."""
    return max(peak(), (told("self/status", "VmRSS") or peak()) + coming + REST)


def available():
    """Bytes that this process may still take: the least of what the system has free or can free, of what is left to its
    control groups (containers, batch jobs), and of `ulimit -v`."""
    left = [free(), *(limit - used for limit, used in groups())]
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        left.append(limit - (told("self/status", "VmSize") or peak()))
    return max(0, min(left))


def free():
    """Bytes that the system has free or can free; where it does not say, all that it has."""
    found = told("meminfo", "MemAvailable")
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if found is None else found


def groups():
    """Yield (limit, used) in bytes of each control group of Linux, of either version, that this process is in."""
    with contextlib.suppress(OSError), open(f"{PROC}/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if not controllers:
                root, names, cached = GROUPS, ("memory.max", "memory.current"), "inactive_file"
            elif "memory" in controllers.split(","):
                root, cached = f"{GROUPS}/memory", "total_inactive_file"
                names = "memory.limit_in_bytes", "memory.usage_in_bytes"
            else:
                continue
            parts = path.strip("/").split("/")
            # The limits of all groups around it hold, too; in a container the path may be one seen from outside only.
            for depth in range(len(parts) + 1):
                folder = "/".join([root, *parts[:depth]])
                with contextlib.suppress(OSError, ValueError):  # none there; "max"
                    limit, used = (int(read(f"{folder}/{name}")) for name in names)
                    statistics = dict(line.split() for line in read(f"{folder}/memory.stat").splitlines())
                    if limit < UNLIMITED:
                        yield limit, used - int(statistics.get(cached, 0))


def read(path):
    with open(path) as file:
        return file.read()


def check(coming, ways, force=False):
    """Tell how much memory a run will need, `coming` bytes of it from now on; returns that, in bytes.

    ways   what makes it less, for the message
    force  say so, and go on, where there is not enough

    Raises TiedtoolsError where there is not enough.
    """
    need, left = expected(coming), available()
    log.info(f"memory: about {need / 1e6:,.0f} MB")
    if coming > left:
        message = f"{coming / 1e6:,.0f} MB more are needed, {left / 1e6:,.0f} MB are there"
        if not force:
            raise TiedtoolsError(f"memory: {message}: {ways}; `no_memory_check` tries it all the same")
        log.warning(f"memory: {message}, but `no_memory_check` was given")
    return need
