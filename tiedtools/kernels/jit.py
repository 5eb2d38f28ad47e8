"""The decorator that compiles all kernels with Numba, and its on-disk cache."""

import contextlib
import hashlib
from pathlib import Path

import numba
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

from tiedtools.kernels.features import AMX

# Without `nnan` and `ninf`: kernels must be able to detect that a run has diverged.
RELAXED = {"reassoc", "contract", "nsz", "arcp"}

# Private Numba methods that are overridden or called below, by class. If one is missing, Numba's plain cache is used.
OWN = {
    FunctionCache: ("load_overload", "_load_overload", "_guard_against_spurious_io_errors", "_index_key", "flush"),
    IndexDataCacheFile: ("save",),
    Dispatcher: ("get_call_template", "get_overload"),
}
AS_EXPECTED = all(hasattr(owner, name) for owner, names in OWN.items() for name in names)

SOURCES = tuple(
    sorted((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in Path(__file__).parent.glob("*.py"))
)


def jit(function=None, *, relaxed=False):
    """Compile `function` with the GIL released, cached on disk if a cache folder is writable.

    Calls from other kernels use a second version without the wrapper for calls from Python. Most functions are called
    only by kernels, so this saves about 5% of the time of a first run.

    Inner loops run over slices, from 0 to their size: an index that might be negative would prevent vectorization.

    relaxed  let the compiler reorder float sums (SIMD reductions) and fuse multiply-adds
    """
    if function is None:
        return lambda f: jit(f, relaxed=relaxed)
    fastmath = RELAXED if relaxed else False
    options = dict(fastmath=fastmath, nogil=True, _nrt=False, no_cfunc_wrapper=True, error_model="numpy")
    if not AS_EXPECTED:
        return plain(function, options)
    kernel, inner = (numba.njit(no_cpython_wrapper=alone, **options)(function) for alone in (False, True))
    template, kernel.get_overload = inner.get_call_template, inner.get_overload
    # In Numba, the type of a literal argument includes its value, so each new value would be compiled separately.
    kernel.get_call_template = lambda args, named: template(
        [types.unliteral(arg) for arg in args], {name: types.unliteral(arg) for name, arg in named.items()}
    )
    with contextlib.suppress(RuntimeError):  # read-only installation and no writable home folder
        kernel._cache, inner._cache = Cache(function), Cache(function, ".inner")
    return kernel


def plain(function, options):
    """Compile `function` with Numba's own cache, which does not detect changes in the functions it calls."""
    kernel = numba.njit(**options)(function)
    with contextlib.suppress(RuntimeError):
        kernel.enable_caching()
    return kernel


class Cache(FunctionCache):
    """Numba's cache, with faster loading and with invalidation when any kernel source file changes.

    name  suffix of the file names. The version that kernels call has its own files: Python must not load it by mistake
    """

    def __init__(self, function, name=""):
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = Files(self.cache_path, self._impl.filename_base + name, stamp)

    def load_overload(self, sig, target_context):
        # Numba's own method first imports all that it can compile, and compiles its runtime: 0.17 s and 50 MB per run.
        with self._guard_against_spurious_io_errors():
            try:
                return self._load_overload(sig, target_context)
            except Exception:  # anything pickle raises for a corrupt or outdated file
                self.flush()
                return None

    def _index_key(self, sig, codegen):
        # Numba itself detects only changes in the kernel's own file.
        return *super()._index_key(sig, codegen), SOURCES, int(numba.config.OPT), AMX


class Files(IndexDataCacheFile):
    """Numba's cache index, with one data file per key, named by a hash of the key.

    Numba numbers its data files: two processes that compile at the same time could give two kernels the same number,
    and a third process would then load the wrong one.
    """

    def save(self, key, data):
        signature, target, _, _, *settings = key
        digest = hashlib.sha256(repr((signature, target, settings)).encode()).hexdigest()[:16]
        self._data_name_pattern = f"{self._index_name[:-4]}.{digest}.{{number}}.nbc"
        super().save(key, data)
