"""The CPU's name and the number of cores available to this process. See processor.py for its configuration."""

import collections
import concurrent.futures
import contextlib
import functools
import math
import os
import platform
import re
from pathlib import Path, PurePosixPath

QUOTAS = ("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")  # files of cgroup v2 and v1: a quota, and its period
# In /proc/self/mountinfo: the group at the top of a mount, the folder where it is, the type, and the options.
MOUNT = re.compile(r"^\S+ \S+ \S+ (/\S*) (/\S*) .*- (cgroup2?) \S+ (\S+)$", re.M)


def available_cores():
    """Number of cores that this process may use, at most 1024, the largest number of threads.

    The CPU affinity and the CPU quota of a container limit it; a fraction of a core counts as one.
    """
    return min(affine_cores(), math.ceil(min(cpu_quota(), 1024)))


def affine_cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def cpu_quota(root="/"):
    """Return the smallest CPU quota of this process's control groups (cgroup v1 and v2) and their parents, in cores.

    Infinite if there is none; files that are missing or malformed set none. root: the folder that contains `proc`
    """
    return min((quota for folder in control_groups(Path(root)) for quota in quotas(folder)), default=math.inf)


def control_groups(root):
    """Yield the folders of this process's control groups for CPU time, and of all their parents."""
    groups = {}  # type of file system -> path of the group
    for _, controllers, path in (
        line.split(":", 2) for line in lines(root / "proc/self/cgroup") if line.count(":") > 1
    ):
        if not controllers or "cpu" in controllers.split(","):
            groups["cgroup" if controllers else "cgroup2"] = PurePosixPath(path)
    for mounted, point, kind, options in MOUNT.findall("\n".join(lines(root / "proc/self/mountinfo"))):
        if kind in groups and (kind == "cgroup2" or "cpu" in options.split(",")):
            inside = groups[kind].relative_to(mounted) if groups[kind].is_relative_to(mounted) else PurePosixPath()
            yield from (root / point.lstrip("/") / group for group in (inside, *inside.parents))


def quotas(folder):
    """Yield the CPU quotas of a control group, in cores."""
    for names in QUOTAS:
        with contextlib.suppress(ValueError, ArithmeticError):  # "max": none
            quota, period = map(int, " ".join(line for name in names for line in lines(folder / name)).split())
            if quota / period > 0:  # -1: none
                yield quota / period


def lines(path):
    """Return the lines of a file of the system; none if it cannot be read."""
    try:
        return path.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []


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
