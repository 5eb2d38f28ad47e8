"""Memory use of this process (current, peak, and available), and a check that a run fits into memory."""

import contextlib
import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.base.processor import control_groups, lines

REST = 6 * 10**6  # bytes that no estimate includes: writing files, threads
ROOT = Path("/")  # the folder that contains `proc`
# Files of control groups v2 and v1: limit, use, and the field of memory.stat that counts reclaimable file cache.
GROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
UNLIMITED = 1 << 60  # cgroups v1 denote "no limit" by a value near the largest int64


def read_proc(file: str, label: str) -> int | None:
    """Return the bytes of the field `label` in a Linux /proc memory file; None on other systems."""
    found = (line.split()[1] for line in lines(ROOT / "proc" / file) if line.startswith(f"{label}:"))
    return next((int(kilobytes) * 1024 for kilobytes in found), None)


def peak() -> int:
    """Return the peak memory of this process in bytes."""
    # On Linux, ru_maxrss would include the memory of the process that executed this one.
    unit = 1 if sys.platform == "darwin" else 1024
    return read_proc("self/status", "VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def expected(coming: int) -> int:
    """Estimate the peak memory of this process in bytes if it allocates `coming` more bytes."""
    return max(peak(), (read_proc("self/status", "VmRSS") or peak()) + coming + REST)


def available() -> int:
    """Return the bytes that this process can still allocate.

    The minimum of the system's available memory, the unused part of its control groups' limits (containers, batch
    jobs), and the unused part of `ulimit -v`.
    """
    system = read_proc("meminfo", "MemAvailable")
    if system is None:  # not Linux: the total memory
        system = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [system, *(limit - used for limit, used in groups())]
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        limits.append(limit - (read_proc("self/status", "VmSize") or peak()))
    return max(0, min(limits))


def groups() -> Iterator[tuple[int, int]]:
    """Yield (limit, used) in bytes for each Linux control group, v1 or v2, that this process belongs to."""
    for folder in control_groups(ROOT, "memory"):
        statistics = dict(line.split() for line in lines(folder / "memory.stat"))
        for *names, cached in GROUP_FILES:
            with contextlib.suppress(ValueError):  # no such file; the value "max"
                limit, used = (int(" ".join(lines(folder / name))) for name in names)
                if limit < UNLIMITED:
                    yield limit, used - int(statistics.get(cached, 0))


def check(coming: int, advice: str, force: bool = False) -> int:
    """Log and return the expected peak memory in bytes of a run that allocates `coming` more bytes.

    advice  advice on reducing memory use, for the message
    force   log a warning instead of raising

    Raises TiedtoolsError if memory is insufficient.
    """
    need, free_bytes = expected(coming), available()
    log.info(f"memory: about {need / 1e6:,.0f} MB")
    if coming > free_bytes:
        message = f"the run needs {coming / 1e6:,.0f} MB more, {free_bytes / 1e6:,.0f} MB available"
        if not force:
            raise TiedtoolsError(f"memory: {message}: {advice}; `no_memory_check` runs it anyway")
        log.warning(f"memory: {message}; continuing because of `no_memory_check`")
    return need
