"""CPU settings of NumPy, OpenBLAS, and Numba; they must be chosen before NumPy and Numba are imported."""

import os
import platform
import sys

from tiedtools import cores
from tiedtools.errors import TiedtoolsError

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


def choose_processor():
    """Configure the numerical libraries for this CPU, or for any x86-64 CPU with AVX2 if TIEDTOOLS_CPU=haswell.

    With haswell, results are identical on all such CPUs. Numba's optimization level is 2 unless NUMBA_OPT is set: its
    default, 3, compiles an eighth longer and makes no kernel here faster.

    Libraries already imported are not affected. Raises TiedtoolsError if TIEDTOOLS_CPU would then have no effect, or
    NUMBA_DISABLE_JIT is set.
    """
    if os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise TiedtoolsError("NUMBA_DISABLE_JIT: kernels run only if they are compiled; unset it")
    imported = {"numpy", "numba"} & sys.modules.keys()
    if "numpy" not in imported:
        limit_threads()
    if wanted() == "haswell" and x86():
        if imported and HASWELL.items() - os.environ.items():
            raise TiedtoolsError(
                f"TIEDTOOLS_CPU=haswell: already imported: {' and '.join(sorted(imported))};"
                " call tiedtools.processor.choose_processor() first, or unset TIEDTOOLS_CPU"
            )
        os.environ.update(HASWELL)
        return
    if "numba" not in imported:
        os.environ.setdefault("NUMBA_OPT", "2")
    if "numpy" not in imported:
        choose_kernel()


def limit_threads():
    """Limit OpenBLAS, which counts only the CPU affinity, to the CPU quota, unless the user set its thread count."""
    if cores.available_cores() < cores.affine_cores() and not any(map(os.environ.get, BLAS_THREADS)):
        os.environ[BLAS_THREADS[0]] = str(cores.available_cores())


def wanted():
    return os.environ.get("TIEDTOOLS_CPU", "")


def x86():
    return platform.machine() in ("x86_64", "AMD64")


def check():
    """Raise TiedtoolsError if TIEDTOOLS_CPU is unknown or not supported on this machine."""
    if wanted() not in ("", "haswell"):
        raise TiedtoolsError(
            f"TIEDTOOLS_CPU={wanted()}: unknown; unset it, or set haswell for identical results on all x86-64 CPUs"
        )
    if wanted() and not x86():
        raise TiedtoolsError(f"TIEDTOOLS_CPU={wanted()}: not supported on {platform.machine()}; unset it")


def choose_kernel(cpuinfo="/proc/cpuinfo"):
    """Select OpenBLAS's AVX-512 kernels on AMD CPUs that support AVX-512.

    The OpenBLAS bundled with NumPy and SciPy treats these CPUs as AVX2, which halves the speed of matrix products. A
    user-defined OPENBLAS_CORETYPE is respected.
    """
    if is_amd(cpuinfo) and {
        "avx512f",
        "avx512dq",
        "avx512bw",
        "avx512vl",
        "avx512cd",
    } <= set(described(cpuinfo).get("flags", [])):
        os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")


def described(cpuinfo="/proc/cpuinfo"):
    """Return the system's description of the first CPU, a dict: name -> list of words; empty where there is none."""
    try:
        with open(cpuinfo) as file:
            fields = dict(line.split(":", 1) for line in file.read(8192).split("\n\n")[0].splitlines() if ":" in line)
    except OSError:
        return {}
    return {name.strip(): value.split() for name, value in fields.items()}


def is_amd(cpuinfo="/proc/cpuinfo"):
    """Return whether the CPU is one of AMD."""
    return "AuthenticAMD" in described(cpuinfo).get("vendor_id", [])
