"""Test the folder of compiled kernels, which all installations share."""

import os
import shutil
import stat
import subprocess
import sys
import time

import pytest
from paths import ROOT

from tiedtools.kernels.base import cachefolder

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


@pytest.mark.parametrize("value", ["", "relative", None])
def test_default(user, monkeypatch, value):
    monkeypatch.delenv("XDG_CACHE_HOME") if value is None else monkeypatch.setenv("XDG_CACHE_HOME", value)
    monkeypatch.setenv("HOME", str(user / "home"))
    assert find().parent == user / "home" / ".cache" / "tiedtools" / "kernels"


def test_numba_cache_dir_comes_first(user, monkeypatch):
    monkeypatch.setattr(cachefolder.numba.config, "CACHE_DIR", str(user / "numba"))
    assert find().parent == user / "numba" / "tiedtools" and not (user / "cache").exists()


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


@pytest.mark.parametrize("mode", [0o777, 0o720])
def test_a_folder_that_others_can_write_to_is_not_used(user, mode):
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
