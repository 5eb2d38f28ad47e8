"""The folder of compiled kernels, shared by all of a user's installations that have the same kernels."""

import contextlib
import functools
import hashlib
import importlib.resources
import os
import re
import shutil
import stat
import tempfile
import time
from pathlib import Path

import llvmlite
import numba

KEPT = 8  # number of folders, including the new one; one with all kernels takes 64 MB
DAYS = 90  # unused folders are deleted after this time


@functools.cache
def digest():
    """Return a hash of the sources of all kernels and the versions of the compiler; the CPU is part of Numba's key."""
    hasher = hashlib.sha256(f"numba {numba.__version__} llvmlite {llvmlite.__version__}".encode())
    for name, file in sorted(sources(importlib.resources.files("tiedtools.kernels"))):
        content = file.read_bytes()
        hasher.update(f"\n{name} {len(content)}\n".encode() + content)
    return hasher.hexdigest()[:32]


def sources(folder, prefix=""):
    """Yield the name and the file of each module in a folder, which may be in a zip file, and in its subfolders."""
    for file in folder.iterdir():
        if file.name.endswith((".py", ".pyc")):
            yield prefix + file.name, file
        elif file.is_dir() and file.name != "__pycache__":
            yield from sources(file, f"{prefix}{file.name}/")


def changed():
    """Return whether a kernel's source has changed since this process started, for example by an upgrade."""
    return digest.__wrapped__() != digest()


def parents():
    """Yield folders in which folder() may create its folder, in order of preference.

    They are never in the package's folder: files that pip did not install survive `pip uninstall`.
    """
    if numba.config.CACHE_DIR:  # NUMBA_CACHE_DIR
        yield Path(numba.config.CACHE_DIR, "tiedtools")
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    cache = chosen if os.path.isabs(chosen) else os.path.expanduser("~/.cache")
    if os.path.isabs(cache):  # false if the user has no home folder
        yield Path(cache, "tiedtools", "kernels")
    with contextlib.suppress(OSError):  # no temporary folder is writable
        yield Path(tempfile.gettempdir(), f"tiedtools-kernels-{os.getuid()}")


@functools.cache
def folder():
    """Return the folder for compiled kernels, created if it does not exist; None if no location is usable."""
    for parent in parents():
        with contextlib.suppress(OSError):
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_private(parent):
                continue
            path = parent / digest()
            new = not path.exists()
            path.mkdir(exist_ok=True)
            os.utime(path)  # the time of its last use
            if new:
                prune(parent)
            if os.access(path, os.R_OK | os.W_OK | os.X_OK):
                return path
    return None


def is_private(path):
    """Return whether a folder belongs to this user and is closed to others: Numba unpickles what it loads from it."""
    status = path.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


def prune(parent):
    """Delete folders of other kernels or compilers: all but the KEPT last used ones, and those unused for DAYS."""
    used = {}
    for path in parent.iterdir():
        if re.fullmatch("[0-9a-f]{32}", path.name):
            with contextlib.suppress(OSError):  # another process has deleted it
                used[path] = path.stat().st_mtime
    for rank, path in enumerate(sorted(used, key=used.get, reverse=True)):
        if rank >= KEPT or time.time() - used[path] > 86400 * DAYS:
            shutil.rmtree(path, ignore_errors=True)
