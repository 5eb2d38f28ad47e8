"""OpenBLAS's choice of kernel, corrected where it is known to be slow."""

import os


def choose_kernel(cpuinfo="/proc/cpuinfo"):
    """Ask OpenBLAS for its AVX-512 kernels on AMD processors that have AVX-512; call before NumPy is imported.

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
