"""Output files that are written atomically."""

import contextlib
import errno
import fcntl
import glob
import hashlib
import io
import math
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tiedtools.base.errors import REMEDIES, Contradiction, TiedtoolsError, Unwritable, reason

UMASK = threading.Lock()  # it is read by setting it
STDOUT = ("-", "/dev/stdout")
OPENED = re.compile(r"/dev/(stderr|fd/\d{1,9})|/proc/(self|\d+)/fd/\d{1,9}")  # opened by the shell; not renamable


def is_file(path: str | None) -> bool:
    """Return whether an output path (None: no output) is, or would become, a regular file."""
    return path is not None and path not in STDOUT and not OPENED.fullmatch(path) and not is_special(path)


def is_special(path: str) -> bool:
    """Return whether a path exists and is not a regular file: a device, a pipe, or a directory."""
    return os.path.exists(path) and not os.path.isfile(path)


@contextlib.contextmanager
def open_output(path: str, put: Callable[[str, str], Any] = os.replace) -> Iterator[Any]:
    """Yield a binary file for `path`; `-` is standard output.

    A regular file is written as `.tiedtools-*.part` in the same directory, and renamed when the block ends without an
    exception; otherwise an existing file is left unchanged. Devices, pipes, and files that are already open, such as
    /dev/fd/3, are written directly.

    put  function that renames the file: put(partial path, final path)

    Raises TiedtoolsError on entry, before any work is done, if the file cannot be written.
    """
    if not path:
        raise Contradiction("an output has an empty name; name a file to write")
    refuse_directory(path)
    try:
        if path in STDOUT:
            if not (file := getattr(sys.stdout, "buffer", None)):
                raise Unwritable("standard output takes no bytes, as in a notebook; name a file to write")
            yield file
            file.flush()
        else:
            if OPENED.fullmatch(path):
                opened = already_open(path)
            else:
                opened = open(path, "wb") if is_special(path) else partial_file(os.path.realpath(path), put)
            with opened as file:
                yield file
    except (BrokenPipeError, TiedtoolsError):
        raise
    except OSError as error:
        name = "standard output" if path in STDOUT else path
        raise Unwritable(f"{name}: cannot be written: {reason(error)}") from None


def already_open(path: str) -> Any:
    """Return a binary file that writes where the file descriptor in a path is; see OPENED. Raises OSError."""
    if path.startswith("/proc/") and not path.startswith(("/proc/self/", f"/proc/{os.getpid()}/")):
        return open(path, "ab")  # of another process
    number = 2 if path == "/dev/stderr" else int(os.path.basename(path))
    if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "it is open for reading only")
    return os.fdopen(os.dup(number), "wb")


def open_log(path: str) -> Any:
    """Return a text file that writes to the end of a file. Raises OSError, or TiedtoolsError for a directory."""
    refuse_directory(path)
    return io.TextIOWrapper(already_open(path)) if OPENED.fullmatch(path) else open(path, "a")


def refuse_directory(path: str) -> None:
    """Raise TiedtoolsError if an output is a directory."""
    if os.path.isdir(path) or path.endswith("/"):
        raise TiedtoolsError(f"{path}: is a directory; name a file to write")


@contextlib.contextmanager
def partial_file(target: str, put: Callable[[str, str], Any]) -> Iterator[Any]:
    """Yield a new file beside `target`, and rename it by put(partial path, target) if the block raises no exception.

    It has the permissions of the file that it replaces. Raises PermissionError if that is not writable.
    """
    with UMASK:
        umask = os.umask(0)
        os.umask(umask)
    mode = 0o666 & ~umask
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(target).st_mode & 0o777  # fails now, not at the end, if the name is too long
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "Permission denied")
    descriptor, partial = new_part(target)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with contextlib.suppress(OSError):  # a file system without permissions
                os.fchmod(descriptor, mode)
            yield file
            file.flush()
            os.fsync(descriptor)
            put(partial, target)  # while locked: another process may remove an unlocked partial file
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def parts(target: str) -> tuple[list[str], str, str]:
    """Remove partial files of `target` that killed processes left; return the paths of those that are being written.

    The former are not locked. A locked one is that of a process, on any machine, that is alive. Also returns the folder
    of partial files, and the beginning of their names.
    """
    folder, name = os.path.split(target)
    stem = f".tiedtools-{hashlib.blake2b(os.fsencode(name), digest_size=6).hexdigest()}-"
    pattern = f"{glob.escape(folder)}/{stem}*.part"
    for path in glob.glob(pattern):
        with contextlib.suppress(OSError), open(path, "rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    return glob.glob(pattern), folder, stem


def new_part(target: str) -> tuple[int, str]:
    """Create a partial file beside `target` and return (file descriptor, path)."""
    _, folder, stem = parts(target)
    while True:
        descriptor, path = tempfile.mkstemp(".part", stem, folder)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, path
        os.close(descriptor)  # another process removed it before it was locked


def split_compression(path: str) -> tuple[str, str | None]:
    """Split a path into (path without compression extension, compression: "gz", "bz2", "xz", "zst", or None)."""
    stem, extension = os.path.splitext(path)
    return (stem, extension[1:]) if extension in (".gz", ".bz2", ".xz", ".zst") else (path, None)


@contextlib.contextmanager
def open_packed(path: str, put: Callable[[str, str], Any] = os.replace) -> Iterator[Any]:
    """Like `open_output`, with the data compressed according to the extension of `path`: .gz, .bz2, .xz, or .zst."""
    compression = split_compression(path)[1]
    with open_output(path, put) as file, contextlib.ExitStack() as stack:
        if compression:
            from xopen import xopen

            file = stack.enter_context(xopen(file, "wb", threads=0, format=compression))
        yield file


def refuse_packed(*paths: str | None) -> None:
    """Raise Contradiction if the path of an uncompressed output (None: no output) has a compression extension."""
    for path in paths:
        if path is not None and (compression := split_compression(path)[1]):
            raise Contradiction(f"{path}: this output is never compressed; remove .{compression} from its name")


def check_space(sizes: dict[str, int]) -> None:
    """Raise TiedtoolsError if outputs, path -> bytes, exceed the free space of their disks."""
    folders = {path: os.path.dirname(os.path.realpath(path)) for path in filter(is_file, sizes)}
    disks = {}
    for path, folder in folders.items():
        disks.setdefault(os.stat(folder).st_dev, []).append(path)
    for paths in disks.values():
        needed, disk = sum(map(sizes.__getitem__, paths)), shutil.disk_usage(folders[paths[0]])
        if disk.total and needed > disk.free:
            space = f"needs about {math.ceil(needed / 1e6):,} MB, {disk.free / 1e6:,.1f} MB free"
            raise TiedtoolsError(f"{', '.join(paths)}: {space}; {REMEDIES[errno.ENOSPC]}")


def write_elsewhere(writers: dict[str, Callable[[Any], Any]], error: BaseException) -> list[str]:
    """Write outputs to a new folder in the home or temporary folder and return their paths; raise `error` if both fail.

    writers  path of each output -> function that writes it to a binary file
    """
    stem = os.path.splitext(os.path.basename(next(iter(writers))))[0]
    for folder in (os.path.expanduser("~"), tempfile.gettempdir()):
        with contextlib.suppress(OSError):
            spare = tempfile.mkdtemp(prefix=f"{stem}-", dir=folder)
            try:
                paths = {os.path.join(spare, os.path.basename(path)): write for path, write in writers.items()}
                for path, write in paths.items():
                    with open_packed(path) as file:
                        write(file)
                return list(paths)
            except TiedtoolsError:
                shutil.rmtree(spare, ignore_errors=True)
    raise error


def refuse_clashes(outputs: Iterable[str | None], inputs: Iterable[str]) -> None:
    """Raise Contradiction if an output path (None: no output) is also an input or another output.

    Standard input and output may be redirected from and to files, and a URL may name a local file.
    """

    def target(path: str) -> Any:
        if is_special(path):  # several outputs may share a device or a pipe
            return path
        with contextlib.suppress(OSError):
            return (status := os.stat(path)).st_dev, status.st_ino  # "Text" and "text" may be one file
        return os.path.realpath(path)

    taken = {target("/dev/stdin" if path == "-" else os.fspath(path).removeprefix("file://")) for path in inputs}
    for path in (path for path in outputs if path is not None):
        name = target("/dev/stdout" if path in STDOUT else path)
        if name in taken - {os.devnull}:
            what = "is used as both input and output, or for two outputs"
            shown = "standard output" if path in STDOUT else path
            raise Contradiction(f"{shown}: {what}; give each its own file")
        taken.add(name)
