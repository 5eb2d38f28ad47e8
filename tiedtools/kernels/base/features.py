"""What the CPU that the kernels are compiled for can do."""

import ctypes
import platform
import sys

import llvmlite.binding
import numba

from tiedtools.base.processor import is_amd

ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18  # Linux on x86-64: ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA


def features():
    """Return the features of the target CPU, a dict: name -> whether it has the feature."""
    if numba.config.CPU_FEATURES is None:
        return llvmlite.binding.get_host_cpu_features()
    chosen = {name[1:]: name[0] == "+" for name in numba.config.CPU_FEATURES.split(",") if name}
    # All x86-64 CPUs have sse2, but the list may omit it.
    return {"sse2": platform.machine() in ("x86_64", "AMD64")} | chosen


def tiles_permitted():
    """Ask Linux for the state of AMX tiles, for all threads of this process; returns whether it was granted."""
    request = ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA
    return sys.platform.startswith("linux") and ctypes.CDLL(None).syscall(*request) == 0


FEATURES = features()
DOT_BFLOAT16 = bool(FEATURES.get("avx512f") and FEATURES.get("avx512bf16"))  # dot products of bfloat16
AMX = bool(DOT_BFLOAT16 and FEATURES.get("amx-bf16")) and tiles_permitted()  # products of tiles of bfloat16: see amx.py
FAST_DOTS = DOT_BFLOAT16 and is_amd()  # Intel's dot products are no faster than those of float32
FAST_BFLOAT16 = AMX or FAST_DOTS
if DOT_BFLOAT16:
    llvmlite.binding.initialize_native_asmparser()  # for inline assembly
