"""Test compilation and its cache."""

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
from common import ROOT

from tiedtools.kernels.base import cachefolder, jit, scalar

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


def test_kernels_are_recompiled_when_their_file_changes(load, tmp_path):
    assert [load(), load()] == [False, True]
    (tmp_path / "kernel.py").write_text(f"{KERNEL}\n# changed\n")
    assert [load(), load()] == [False, True]


def fail(*args):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("owner, name, instead", [(jit.Files, "_save_data", fail), (jit, "changed", lambda: True)])
def test_nothing_is_cached_with_a_full_disk_or_after_an_upgrade_during_the_run(load, owner, name, instead):
    """A kernel imported after an upgrade is the new one, but the folder is that of the old ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, instead)
        assert [load(), load()] == [False, False]
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


def test_one_compilation_serves_all_constant_arguments_with_wide_vectors(uncached):
    helper = jit.jit(lambda x, step, back=False: x - step if back else x + step)
    kernel = jit.jit(lambda x: helper(x, 1, True) + helper(x, 2, False) + helper(x, 3, back=True))
    inner = helper.get_overload.__self__
    assert kernel(5) == 4 + 7 + 2 and len(inner.signatures) == 1 and not helper.signatures
    assert all('"prefer-vector-width"="512"' in llvm for llvm in kernel.inspect_llvm().values())
    both = jit.jit(lambda x: scalar.exp(x) + scalar.tanh(x)).get_overload.__self__
    both.compile("(float32,)")
    names = " ".join(f.name for version in both.overloads.values() for f in version.library._final_module.functions)
    assert "3exp" in names and "4tanh" in names  # else, code of other processes could be linked for them


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


HELPER = "from tiedtools.kernels.base.jit import jit\n\n\n@jit\ndef helper(x):\n    return x + {}\n"
CALLER = """
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.helping import helper

@jit
def caller(x):
    return helper(x)
"""
RUN = """
from tiedtools.kernels.calling import caller
print(caller(1), sum(caller.stats.cache_hits.values()))
"""


def find():
    """Return the folder that a new process would choose."""
    cachefolder.folder.cache_clear()
    return cachefolder.folder()


def test_xdg_cache_home(user):
    path = find()
    assert path == user / "cache" / "tiedtools" / "kernels" / cachefolder.digest() and path.is_dir()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_numba_cache_dir_comes_first(user, monkeypatch):
    monkeypatch.setattr(cachefolder.numba.config, "CACHE_DIR", str(user / "numba"))
    assert find().parent == user / "numba" / "tiedtools" and not (user / "cache").exists()
    (user / "numba" / "tiedtools").chmod(0o755)
    assert find().parent == user / "cache" / "tiedtools" / "kernels"


@pytest.mark.parametrize("value", ["", "relative", None])
def test_default(user, monkeypatch, value):
    monkeypatch.delenv("XDG_CACHE_HOME") if value is None else monkeypatch.setenv("XDG_CACHE_HOME", value)
    monkeypatch.setenv("HOME", str(user / "home"))
    assert find().parent == user / "home" / ".cache" / "tiedtools" / "kernels"


def test_the_temporary_folder_replaces_a_cache_that_cannot_be_written(user):
    (user / "cache").touch()
    path = find()
    assert path.parent.parent == user / "temporary" and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    shutil.rmtree(user / "temporary")
    (user / "temporary").touch()
    assert find() is None


def test_a_user_without_a_home_folder(user, monkeypatch):
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    assert find().parent.parent == user / "temporary"


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o750, 0o701])
def test_a_folder_that_others_can_open_is_not_used(user, mode):
    parent = find().parent
    parent.chmod(mode)
    assert find().parent.parent == user / "temporary"


def test_a_folder_of_another_user_is_not_used(user, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert find() is None


def test_old_folders_are_deleted_when_one_is_created(user):
    path = find()
    others = [path.parent / f"{number:032x}" for number in range(cachefolder.KEPT + 1)]
    for age, other in enumerate(others, 1):
        other.mkdir()
        (other / "kernel.nbi").touch()
        os.utime(other, (time.time() - age,) * 2)
    (path.parent / "of-something-else").mkdir()
    assert find() == path and all(other.exists() for other in others)
    path.rmdir()
    old = time.time() - 86400 * (cachefolder.DAYS + 1)
    os.utime(others[0], (old, old))
    assert find() == path
    assert {*path.parent.iterdir()} == {path, *others[1 : cachefolder.KEPT], path.parent / "of-something-else"}


def test_copies_of_the_package_share_what_one_compiled(tmp_path):
    """Each change of a kernel is detected, also in a file that only another kernel imports."""
    for copy in ("first", "second"):
        kernels = tmp_path / copy / "tiedtools" / "kernels"
        shutil.copytree(ROOT / "tiedtools", kernels.parent, ignore=shutil.ignore_patterns("__pycache__"))
        (kernels / "calling.py").write_text(CALLER)
        (kernels / "helping.py").write_text(HELPER.format(1))
        os.utime(kernels / "helping.py", (0, 0))
    unset = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}

    def run(copy):
        command = [sys.executable, "-B", "-c", RUN]  # without .pyc files, whose check is by time and size
        environment = dict(unset, PYTHONPATH=str(tmp_path / copy), XDG_CACHE_HOME=str(tmp_path / "cache"))
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert result.stderr == ""
        return result.stdout.split()

    assert [run("first"), run("second")] == [["2", "0"], ["2", "1"]]
    (kernels / "helping.py").write_text(HELPER.format(5))
    os.utime(kernels / "helping.py", (0, 0))
    assert [run("second"), run("second"), run("first")] == [["6", "0"], ["6", "1"], ["2", "1"]]
    assert len([*tmp_path.rglob("*.nbi")]) == len([*(tmp_path / "cache" / "tiedtools" / "kernels").rglob("*.nbi")]) == 4
