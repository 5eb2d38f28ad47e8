"""The CPU: the number of available cores, settings of NumPy, OpenBLAS, and Numba, and further Python processes.

The settings must be chosen before NumPy and Numba are imported.
"""

import collections
import concurrent.futures
import contextlib
import functools
import math
import os
import platform
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from tiedtools.base.errors import TiedtoolsError

# Features of a 2013 CPU, for the compiler, and features disabled in NumPy, by the names of all its versions.
FEATURES = "avx avx2 bmi bmi2 cmov cx16 f16c fma fxsr lzcnt movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3 xsave"
HASWELL = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in FEATURES.split()),
    "NUMBA_OPT": "2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4",
}
BLAS_THREADS = "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"  # thread counts that OpenBLAS reads
QUOTAS = ("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")  # files of cgroup v2 and v1: a quota and its period
# A line of /proc/self/mountinfo: the group at the root of the mount, the mount point, the type, and the options.
MOUNT = re.compile(r"^\S+ \S+ \S+ (/\S*) (/\S*) .*- (cgroup2?) \S+ (\S+)$", re.M)


def choose_processor() -> None:
    """Configure the numerical libraries for this CPU, or for any x86-64 CPU with AVX2 if TIEDTOOLS_CPU=haswell.

    With haswell, results are identical on all these CPUs. Numba's optimization level is 2 unless NUMBA_OPT is set: its
    default, 3, compiles an eighth longer and makes no kernel faster.

    Libraries already imported are not affected. Raises TiedtoolsError if TIEDTOOLS_CPU would then have no effect, or
    Numba cannot compile (NUMBA_DISABLE_JIT) or start threads (NUMBA_NUM_THREADS).
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise TiedtoolsError("NUMBA_DISABLE_JIT: kernels run only if they are compiled; unset it")
    if re.fullmatch("0+|-.*", os.environ.get("NUMBA_NUM_THREADS", "")):
        raise TiedtoolsError("NUMBA_NUM_THREADS: Numba takes positive numbers only; unset it")
    imported = {"numpy", "numba"} & sys.modules.keys()
    if "numpy" not in imported:
        limit_threads()
    if cpu_setting() == "haswell" and x86():
        if imported and HASWELL.items() - os.environ.items():
            remedy = "call tiedtools.base.processor.choose_processor() first, or unset TIEDTOOLS_CPU"
            raise TiedtoolsError(f"TIEDTOOLS_CPU=haswell: already imported: {' and '.join(sorted(imported))}; {remedy}")
        os.environ.update(HASWELL)
        return
    if "numba" not in imported:
        os.environ.setdefault("NUMBA_OPT", "2")
    if "numpy" not in imported:
        choose_kernel()


def limit_threads() -> None:
    """Limit OpenBLAS, which counts only the CPU affinity, to the CPU quota, unless the user set its thread count."""
    if available_cores() < affine_cores() and not any(map(os.environ.get, BLAS_THREADS)):
        os.environ[BLAS_THREADS[0]] = str(available_cores())


def cpu_setting() -> str:
    return os.environ.get("TIEDTOOLS_CPU", "")


def x86() -> bool:
    return platform.machine() in ("x86_64", "AMD64")


def check() -> None:
    """Raise TiedtoolsError if TIEDTOOLS_CPU is unknown or not supported on this machine."""
    problem = f"not supported on {platform.machine()}; unset it" if cpu_setting() and not x86() else ""
    if cpu_setting() not in ("", "haswell"):
        problem = "unknown; unset it, or set haswell for identical results on all x86-64 CPUs"
    if problem:
        raise TiedtoolsError(f"TIEDTOOLS_CPU={cpu_setting()}: {problem}")


def choose_kernel() -> None:
    """Select OpenBLAS's AVX-512 kernels on AMD CPUs that support AVX-512.

    The OpenBLAS bundled with NumPy and SciPy treats these CPUs as AVX2, which halves the speed of matrix products. A
    user-defined OPENBLAS_CORETYPE is respected.
    """
    needed = {f"avx512{part}" for part in ("f", "dq", "bw", "vl", "cd")}
    if is_amd() and needed <= set(cpu_fields().get("flags", [])):
        os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")


def cpu_fields() -> dict[str, list[str]]:
    """Return the fields of the first CPU in /proc/cpuinfo, name -> words; empty without this file."""
    try:
        with open("/proc/cpuinfo") as file:
            fields = dict(line.split(":", 1) for line in file.read(8192).split("\n\n")[0].splitlines() if ":" in line)
    except OSError:
        return {}
    return {name.strip(): value.split() for name, value in fields.items()}


def is_amd() -> bool:
    return "AuthenticAMD" in cpu_fields().get("vendor_id", [])


def available_cores() -> int:
    """Return the number of cores that this process may use, at most 1024, the largest number of threads.

    The CPU affinity and the CPU quota of a container limit it; a fraction of a core counts as one.
    """
    return min(affine_cores(), math.ceil(min(cpu_quota(), 1024)))


def affine_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def cpu_quota(root: str = "/") -> float:
    """Return the smallest CPU quota of this process's control groups (cgroup v1 and v2) and their parents, in cores.

    Infinite without a quota; missing or malformed files set no quota. root: the folder that contains `proc`
    """
    return min((quota for folder in control_groups(Path(root), "cpu") for quota in quotas(folder)), default=math.inf)


def control_groups(root: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of this process's control groups with a controller, such as "cpu", and of all their parents."""
    groups = {}  # type of file system -> path of the group
    rows = (line.split(":", 2) for line in lines(root / "proc/self/cgroup") if line.count(":") > 1)
    for _, controllers, path in rows:
        if not controllers or controller in controllers.split(","):
            groups["cgroup" if controllers else "cgroup2"] = PurePosixPath(path)
    for mount_root, point, kind, options in MOUNT.findall("\n".join(lines(root / "proc/self/mountinfo"))):
        if kind in groups and (kind == "cgroup2" or controller in options.split(",")):
            path = groups[kind]
            path = path.relative_to(mount_root) if path.is_relative_to(mount_root) else PurePosixPath()
            yield from (root / point.lstrip("/") / group for group in (path, *path.parents))


def quotas(folder: Path) -> Iterator[float]:
    """Yield the CPU quotas of a control group, in cores."""
    for names in QUOTAS:
        with contextlib.suppress(ValueError, ArithmeticError):  # "max": none
            quota, period = map(int, " ".join(line for name in names for line in lines(folder / name)).split())
            if quota / period > 0:  # -1: none
                yield quota / period


def lines(path: Path) -> list[str]:
    """Return the lines of a system file; an empty list if it cannot be read."""
    try:
        return path.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return []


def python(code: str) -> list[str]:
    """Return a command line that runs code in Python with the module path of this process.

    The current folder, which may hold files of others, is not in it.
    """
    return [sys.executable, "-c", f"import sys; sys.path = {[*map(str, sys.path)]}; {code}"]


def ahead(functions: Sequence[Callable[[Any], Any]], items: Iterable[Any]) -> Generator[Any, None, None]:
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


def processor_name() -> str:
    """Return the CPU's model name, as reported by the operating system."""
    return " ".join(cpu_fields().get("model name", [])) or platform.processor() or platform.machine()
