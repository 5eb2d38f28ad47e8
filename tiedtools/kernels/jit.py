"""The one way in which this package compiles its kernels."""

import contextlib
import hashlib
from pathlib import Path

import numba
from numba.core import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.dispatcher import Dispatcher

# No `nnan`/`ninf`: a kernel must be able to see that a run has diverged.
RELAXED = {"reassoc", "contract", "nsz", "arcp"}

# Methods of Numba's own that are overridden or called below, by class. Without one of them its plain cache has to do.
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
    """Compile `function` with the GIL released, cached on disk where any cache folder is writable.

    For other kernels that call it, it is compiled on its own, without what Python would need to call it: most are
    called by kernels alone, and a first run takes a twentieth less time.

    relaxed  lets the compiler reorder float sums (SIMD reductions) and fuse multiply-adds
    """
    if function is None:
        return lambda f: jit(f, relaxed=relaxed)
    fastmath = RELAXED if relaxed else False
    options = dict(fastmath=fastmath, nogil=True, _nrt=False, no_cfunc_wrapper=True, error_model="numpy")
    if not AS_EXPECTED:
        return plain(function, options)
    kernel, inner = (numba.njit(no_cpython_wrapper=alone, **options)(function) for alone in (False, True))
    template, kernel.get_overload = inner.get_call_template, inner.get_overload
    # To Numba a constant is a type of its own, and each call with other constants would be compiled anew.
    kernel.get_call_template = lambda args, named: template(
        [types.unliteral(arg) for arg in args], {name: types.unliteral(arg) for name, arg in named.items()}
    )
    with contextlib.suppress(RuntimeError):  # read-only installation and no writable home folder
        kernel._cache, inner._cache = Cache(function), Cache(function, ".inner")
    return kernel


def plain(function, options):
    """`function` compiled and cached as Numba does it by itself, which sees no change in what the function calls."""
    kernel = numba.njit(**options)(function)
    with contextlib.suppress(RuntimeError):
        kernel.enable_caching()
    return kernel


class Cache(FunctionCache):
    """Numba's cache without what a compiled kernel does not need, and aware of the helpers that it inlines.

    name  what its files' names end with. A kernel for other kernels has files of its own: Python would crash in it
    """

    def __init__(self, function, name=""):
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = Files(self.cache_path, self._impl.filename_base + name, stamp)

    def load_overload(self, sig, target_context):
        # Numba first imports all that it can compile, and compiles its runtime: 0.17 s and 50 MB of every run.
        with self._guard_against_spurious_io_errors():
            try:
                return self._load_overload(sig, target_context)
            except Exception:  # whatever a damaged file, or one of other types than there are now, makes pickle raise
                self.flush()
                return None

    def _index_key(self, sig, codegen):
        # Numba itself sees only changes in the file of the kernel.
        return *super()._index_key(sig, codegen), SOURCES, int(numba.config.OPT)


class Files(IndexDataCacheFile):
    """An index, and a file for each key in it, with a name of its own.

    Numba numbers these files: two processes that compile at once could give two kernels one number, and a third process
    would then call one of them for the other.
    """

    def save(self, key, data):
        signature, target, _, _, level = key
        digest = hashlib.sha256(repr((signature, target, level)).encode()).hexdigest()[:16]
        self._data_name_pattern = f"{self._index_name[:-4]}.{digest}.{{number}}.nbc"
        super().save(key, data)
