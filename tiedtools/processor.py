"""What the libraries are to compute for, and how; to be chosen before NumPy and Numba are imported."""

import os
import platform
import sys

from tiedtools.errors import TiedtoolsError

# What a processor of 2013 has, for the compiler; and what NumPy, by any of its versions' names, is to leave aside.
FEATURES = "avx avx2 bmi bmi2 cmov cx16 f16c fma fxsr lzcnt movbe popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3 xsave"
HASWELL = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": ",".join(f"+{name}" for name in FEATURES.split()),
    "NUMBA_OPT": "2",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX512_CLX AVX512_CNL AVX512_ICL AVX512_SPR X86_V4",
}


def choose_processor():
    """With TIEDTOOLS_CPU=haswell, have all libraries compute as they do on x86-64 processors with AVX2, the same
    numbers on all of them; otherwise as is best on this one. Numba optimises to level 2, where NUMBA_OPT is unset: with
    its default, 3, the first run compiles for an eighth longer, and no kernel here is faster for it.

    A library that has been imported already stays as it is. Raises TiedtoolsError where TIEDTOOLS_CPU would then have
    no effect.
    """
    imported = {"numpy", "numba"} & sys.modules.keys()
    if wanted() == "haswell" and x86():
        if imported and HASWELL.items() - os.environ.items():
            raise TiedtoolsError(
                f"TIEDTOOLS_CPU=haswell: {' and '.join(sorted(imported))} was imported before;"
                " call tiedtools.processor.choose_processor() first, or unset it"
            )
        os.environ.update(HASWELL)
        return
    if "numba" not in imported:
        os.environ.setdefault("NUMBA_OPT", "2")
    if "numpy" not in imported:
        choose_kernel()


def wanted():
    return os.environ.get("TIEDTOOLS_CPU", "")


def x86():
    return platform.machine() in ("x86_64", "AMD64")


def check():
    """Raise TiedtoolsError where TIEDTOOLS_CPU asks for what cannot be."""
    if wanted() not in ("", "haswell"):
        raise TiedtoolsError(
            f"TIEDTOOLS_CPU={wanted()}: unknown; it may be haswell, for the same numbers on every x86-64 processor"
        )
    if wanted() and not x86():
        raise TiedtoolsError(f"TIEDTOOLS_CPU={wanted()}: no processor for {platform.machine()}; unset it")


def choose_kernel(cpuinfo="/proc/cpuinfo"):
    """Ask OpenBLAS for its AVX-512 kernels on AMD processors that have AVX-512.

    The library inside NumPy's and SciPy's wheels takes such a processor for an AVX2 one, at half the speed in
    matrix products. A setting of the user's own (OPENBLAS_CORETYPE) is left alone.
    """
    try:
        with open(cpuinfo) as file:
            fields = dict(line.split(":", 1) for line in file.read(8192).split("\n\n")[0].splitlines() if ":" in line)
    except OSError:
        return
    fields = {name.strip(): value.split() for name, value in fields.items()}
    if "AuthenticAMD" in fields.get("vendor_id", []) and {
        "avx512f",
        "avx512dq",
        "avx512bw",
        "avx512vl",
        "avx512cd",
    } <= set(fields.get("flags", [])):
        os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
