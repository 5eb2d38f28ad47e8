"""The decorator that compiles all kernels with Numba, and its on-disk cache."""

import contextlib
import hashlib
import os
from pathlib import Path

import numba
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from tiedtools.kernels.base import inner
from tiedtools.kernels.base.cachefolder import changed, digest, folder
from tiedtools.kernels.base.features import AMX

# Without `nnan` and `ninf`: kernels must be able to detect that a run has diverged.
RELAXED = {"reassoc", "contract", "nsz", "arcp"}

KERNELS = os.path.dirname(os.path.dirname(__file__))


def jit(function=None, *, relaxed=False):
    """Compile `function` with the GIL released, cached on disk if a cache folder is writable.

    Calls from other kernels use a second version; see inner.py.

    Inner loops run over slices, from 0 to their size: an index that might be negative would prevent vectorization.

    relaxed  let the compiler reorder float sums (SIMD reductions) and fuse multiply-adds
    """
    if function is None:
        return lambda f: jit(f, relaxed=relaxed)
    fastmath = RELAXED if relaxed else False
    kernel = compiled(function, lambda: Cache(function), inner.Compiler, fastmath=fastmath)
    inside = dict(no_cpython_wrapper=True, fastmath=fastmath)
    version = compiled(function, lambda: InnerCache(function, ".inner"), inner.InnerCompiler, **inside)
    template, kernel.get_overload = version.get_call_template, version.get_overload
    # In Numba, the type of a literal argument includes its value, so each new value would be compiled separately.
    kernel.get_call_template = lambda args, named: template(
        [types.unliteral(arg) for arg in args], {name: types.unliteral(arg) for name, arg in named.items()}
    )
    return kernel


def compiled(function, cache, pipeline, **options):
    """Return the dispatcher of a function, with the cache that `cache` returns, or raises RuntimeError: no folder."""
    options |= dict(nogil=True, _nrt=False, no_cfunc_wrapper=True, error_model="numpy")
    kernel = numba.njit(pipeline_class=pipeline, **options)(function)
    with contextlib.suppress(RuntimeError):
        kernel._cache = cache()
    return kernel


class Locator:
    """The location of a function's compiled code, with the methods that Numba's cache calls."""

    def __init__(self, function, file, stamp):
        self._py_file, self.line, self.stamp = file, function.__code__.co_firstlineno, stamp

    @classmethod
    def from_function(cls, function, file):
        """Return the locator, or None, which disables caching, if there is no folder or no source file."""
        if not folder():
            return None
        try:
            # digest() includes the kernels of the package, but not kernels elsewhere, for example in tests.
            inside = os.path.dirname(os.path.dirname(file)) == KERNELS
            stamp = os.path.relpath(file, KERNELS) if inside else hashlib.sha256(Path(file).read_bytes()).hexdigest()
        except OSError:
            return None
        return cls(function, file, stamp)

    def get_cache_path(self):
        return str(folder())

    def ensure_cache_path(self):
        folder().mkdir(exist_ok=True)

    def get_source_stamp(self):
        return self.stamp

    def get_disambiguator(self):
        return str(self.line)


class Located(CompileResultCacheImpl):
    """Numba's serialization of compiled functions, with the folder of Locator."""

    _locator_classes = (Locator,)  # type: ignore[assignment]


class Cache(FunctionCache):
    """Numba's cache, with faster loading and with keys by the content of all kernel sources.

    name  suffix of the file names. The version that kernels call has its own files: Python must not load it by mistake
    """

    _impl_class = Located

    def __init__(self, function, name=""):
        super().__init__(function)
        self._cache_file = Files(self.cache_path, self._impl.filename_base + name, digest())

    def load_overload(self, sig, target_context):
        # Numba's method first imports all that it can compile, and compiles its runtime: 0.17 s and 50 MB per run.
        try:
            return self._load_overload(sig, target_context)
        except Exception:  # anything pickle raises for a corrupt or outdated file
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig, data):
        with contextlib.suppress(OSError):  # for example, a full disk: the kernel runs without being cached
            if not changed():
                super().save_overload(sig, data)

    def _index_key(self, sig, codegen):
        # Numba itself detects only changes in the kernel's file.
        stamp = self._impl.locator.get_source_stamp()
        return *super()._index_key(sig, codegen), digest(), stamp, int(numba.config.OPT), AMX, numba.config.BOUNDSCHECK


class InnerCache(Cache):
    """The cache of versions for calls by other kernels."""

    def _load_overload(self, sig, target_context):
        data = self._cache_file.load(self._index_key(sig, target_context.codegen()))
        return data if data is None else inner.rebuild(self._impl, target_context, data)


class Files(IndexDataCacheFile):
    """Numba's cache index, with one data file per key, named by a hash of the key.

    Numba numbers its data files: two processes that compile at the same time could give two kernels the same number,
    and a third process would then load the wrong one.
    """

    def save(self, key, data):
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        self._data_name_pattern = f"{self._index_name[:-4]}.{name}.{{number}}.nbc"
        super().save(key, data)
