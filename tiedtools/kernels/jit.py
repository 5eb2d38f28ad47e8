"""The one way in which this package compiles its kernels."""

import numba

# No `nnan`/`ninf`: a kernel must be able to see that a run has diverged.
RELAXED = {"reassoc", "contract", "nsz", "arcp"}


def jit(function=None, *, relaxed=False):
    """Compile `function` with the GIL released, cached on disk where any cache folder is writable.

    `relaxed` lets the compiler reorder float sums (SIMD reductions) and fuse multiply-adds.
    A cached kernel is not recompiled when a helper in another file changes: after editing one,
    delete the `__pycache__` folder of `tiedtools/kernels`.
    """
    if function is None:
        return lambda f: jit(f, relaxed=relaxed)
    options = dict(nogil=True, fastmath=RELAXED if relaxed else False, error_model="numpy")
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # read-only installation and no writable home folder
        return numba.njit(**options)(function)
