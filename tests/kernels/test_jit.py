"""Test compilation and caching of kernels."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from tiedtools.kernels.base import jit

KERNEL = """
from tiedtools.kernels.base.jit import jit

@jit
def double(out, x):
    for i in range(x.size):
        out[i] = 2 * x[i]

@jit
def quadruple(out, x):
    double(out, x)
    double(out, out)
"""


@pytest.fixture
def cache(user):
    """The folder in which new kernels are cached."""
    return user / "cache" / "tiedtools" / "kernels"


@pytest.fixture
def load(tmp_path, cache, monkeypatch):
    """Import the kernels as a new process would, run one, and return whether it was loaded from the cache."""
    (tmp_path / "kernel.py").write_text(KERNEL)

    def load(name="double"):
        spec = importlib.util.spec_from_file_location("kernel", tmp_path / "kernel.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "kernel", module)  # Numba imports the module of a cached function by name
        spec.loader.exec_module(module)
        x = np.arange(3.0)
        kernel = getattr(module, name)
        kernel(x, x)
        assert x.tolist() == ([0, 2, 4] if name == "double" else [0, 4, 8])
        hits = kernel.stats.cache_hits
        return hits is not None and sum(hits.values()) == 1

    return load


def test_kernels_are_cached(load):
    assert [load(), load(), load()] == [False, True, True]


def test_kernels_are_recompiled_when_their_file_changes(load, tmp_path):
    assert [load(), load()] == [False, True]
    (tmp_path / "kernel.py").write_text(f"{KERNEL}\n# changed\n")
    assert [load(), load()] == [False, True]


def test_a_full_disk_does_not_stop_a_kernel(load, cache):
    def fail(*args):
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit.Files, "_save_data", fail)
        assert [load(), load()] == [False, False]
    assert [load(), load()] == [False, True]


def test_nothing_is_cached_after_an_upgrade_during_the_run(load):
    """A kernel imported after it is the new one, but the folder is that of the old ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jit, "changed", lambda: True)
        assert [load(), load()] == [False, False]
    assert [load(), load()] == [False, True]


def test_kernels_are_recompiled_when_a_helper_changes(load, monkeypatch):
    assert [load(), load()] == [False, True]
    monkeypatch.setattr(jit, "digest", lambda: "another")
    assert [load(), load()] == [False, True]


def test_functions_called_by_kernels_are_callable_from_python(load):
    names = ["quadruple", "double", "double", "quadruple"]
    assert [load(name) for name in names] == [False, False, True, True]


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_corrupt_cache_files_are_rebuilt(load, cache, kind):
    assert [load(), load()] == [False, True]
    (path,) = cache.rglob(f"*.{kind}")
    path.write_bytes(path.read_bytes()[:-20])
    assert [load(), load()] == [False, True]


def test_concurrent_compilation_does_not_mix_up_cached_kernels(tmp_path):
    """`floats` reads the index, then `integers` saves its kernel, then `floats` writes its own file."""
    keys = [(types, ("target",), ("code",), "digest", 2) for types in ("floats", "integers")]
    floats, integers, later = (jit.Files(str(tmp_path), "kernel", 0) for _ in range(3))
    write = floats._save_data

    def write_after_the_other(name, data):
        integers.save(keys[1], "for integers")
        write(name, data)

    floats._save_data, integers._load_index = write_after_the_other, dict
    floats.save(keys[0], "for floats")
    assert later.load(keys[0]) in ("for floats", None) and later.load(keys[1]) in ("for integers", None)
    later.save(keys[0], "for floats")
    assert [later.load(key) for key in keys] == ["for floats", "for integers"]


@pytest.fixture
def uncached(monkeypatch):
    def refuse(function, name=""):
        raise RuntimeError("no locator available")

    monkeypatch.setattr(jit, "Cache", refuse)


def test_kernels_work_without_a_cache(load, uncached):
    assert [load(), load()] == [False, False]


def test_one_compilation_serves_all_constant_arguments(uncached):
    helper = jit.jit(lambda x, step, back=False: x - step if back else x + step)
    kernel = jit.jit(lambda x: helper(x, 1, True) + helper(x, 2, False) + helper(x, 3, back=True))
    inner = helper.get_overload.__self__
    assert kernel(5) == 4 + 7 + 2 and len(inner.signatures) == 1 and not helper.signatures


def test_cached_kernels_do_not_import_the_compiler():
    """Importing modules needed only for compilation would cost time and memory in every run."""
    code = """
import sys
import numpy as np
from tiedtools.kernels.text.tokenize import renumber
assert renumber(np.ones(3, np.int32), np.zeros(2, np.int32)) == 3
print("numba.np.linalg" in sys.modules, "numba.cpython.unicode" in sys.modules)
"""
    outputs = [subprocess.check_output([sys.executable, "-c", code], text=True) for _ in range(2)]
    assert outputs[1] == "False False\n"


SHARED = """
import sys
import numpy as np
from tiedtools.kernels.base import shared
from tiedtools.kernels.base.jit import jit

@jit
def double(x):
    for i in range(x.size):
        x[i] *= 2

doubled = shared.caller(lambda kinds: double)

@jit
def between(x):
    doubled(x)

@jit
def outer(x):
    between(x)

@jit
def one(x):
    outer(x)

@jit
def two(x):
    outer(x)
    outer(x)

x = np.ones(3)
{"one": one, "two": two}[sys.argv[1]](x)
kernels = {"double": double, "between": between, "one": one, "two": two}
print(*x, *[name for name, kernel in kernels.items() if sum((kernel.stats.cache_hits or {}).values())])
"""


def test_shared_kernels_are_provided_for_callers_from_the_cache_and_new_callers(tmp_path, user):
    (tmp_path / "shared.py").write_text(SHARED)

    def run(name):
        return subprocess.check_output([sys.executable, tmp_path / "shared.py", name], text=True).split()

    assert [run(name) for name in ("one", "two", "two", "one")] == [
        ["2.0"] * 3,
        [*["4.0"] * 3, "double"],  # linked with inner versions from the cache
        [*["4.0"] * 3, "double", "two"],
        [*["2.0"] * 3, "double", "one"],
    ]
    kernels = {path: path.read_bytes() for path in (user / "cache").rglob("*.nbc")}
    assert len(kernels) == 5 and {b"\x7fELF" in code for path, code in kernels.items() if ".inner" in path.name} == {
        False
    }
