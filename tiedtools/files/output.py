"""Output files that are written atomically."""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
import sys
import tempfile

from tiedtools.base.errors import REMEDIES, Contradiction, TiedtoolsError, reason

STDOUT = ("-", "/dev/stdout")
FULL = errno.ENOSPC, errno.EDQUOT  # errors that another folder may not have
OPENED = re.compile(r"/dev/(stderr|fd/\d+)|/proc/(self|\d+)/fd/\d+")  # opened by the shell; not renamable


def is_file(path):
    """Return whether an output path (None: not wanted) is, or would become, a regular file."""
    return path is not None and path not in STDOUT and not OPENED.fullmatch(path) and not is_special(path)


def is_special(path):
    """Return whether a path exists and is not a regular file: a device, a pipe, or a directory."""
    return os.path.exists(path) and not os.path.isfile(path)


@contextlib.contextmanager
def open_output(path, put=os.replace):
    """Yield a binary file for `path`; `-` is standard output.

    A regular file is written as `.tiedtools-*.part` in the same directory, and renamed when the block ends without an
    exception; otherwise an existing file is left unchanged. Devices and pipes are written directly.

    put  function that renames the file: put(partial path, final path)

    Raises TiedtoolsError on entry, before any work is done, if the file cannot be written.
    """
    if not path:
        raise Contradiction("an output has an empty name; name a file to write")
    if os.path.isdir(path) or path.endswith("/"):
        raise TiedtoolsError(f"{path}: is a directory; name a file to write")
    try:
        if path in STDOUT:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        else:
            with open(path, "wb") if is_special(path) else partial_file(os.path.realpath(path), put) as file:
                yield file
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard output" if path in STDOUT else path
        raise TiedtoolsError(f"{name}: cannot be written: {reason(error)}") from None


@contextlib.contextmanager
def partial_file(target, put):
    """Yield a new file beside `target`, and rename it by put(partial path, target) if the block raises no exception."""
    mode = new_file_mode(target)
    number, partial = new_part(target)
    try:
        with os.fdopen(number, "wb") as file:
            os.fchmod(number, mode)
            yield file
            file.flush()
            os.fsync(number)
            put(partial, target)  # while locked, or another process may remove it as abandoned
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def new_part(target):
    """Create a partial file beside `target` and return (file descriptor, path).

    Partial files left by killed processes are removed.
    """
    folder, name = os.path.split(target)
    stem = f".tiedtools-{hashlib.blake2b(os.fsencode(name), digest_size=6).hexdigest()}-"
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.startswith(stem) and entry.name.endswith(".part"):
                remove_dead(entry.path)
    while True:
        number, path = tempfile.mkstemp(".part", stem, folder)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(number, fcntl.LOCK_EX)
        if os.fstat(number).st_nlink:
            return number, path
        os.close(number)  # another process removed it before it was locked


def remove_dead(path):
    """Remove a partial file unless it is locked, which means that its process, on any machine, is alive."""
    with contextlib.suppress(OSError):
        number = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(number)


def new_file_mode(path):
    """Return the permissions for a file that replaces `path`: its current ones, or the default for a new file.

    Raises PermissionError if `path` is not writable.
    """
    if os.path.exists(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "Permission denied")
        return os.stat(path).st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def split_compression(path):
    """Split a path into (path without compression extension, "gz", "bz2", "xz", "zst", or None)."""
    stem, extension = os.path.splitext(path)
    return (stem, extension[1:]) if extension in (".gz", ".bz2", ".xz", ".zst") else (path, None)


@contextlib.contextmanager
def open_packed(path, put=os.replace):
    """Like `open_output`, with the data compressed according to the extension of `path`: .gz, .bz2, .xz, or .zst."""
    with open_output(path, put) as raw, compressed(raw, split_compression(path)[1]) as file:
        yield file


def compressed(file, compression):
    """Return a context manager for a binary file whose data is compressed (None: not) into the binary file `file`.

    Raises TiedtoolsError if the compressor is not installed.
    """
    if compression is None:
        return contextlib.nullcontext(file)
    from xopen import xopen

    try:
        return xopen(file, "wb", threads=0, format=compression)
    except ImportError as error:
        raise TiedtoolsError(f'{error}; pip install "tiedtools[zst]", or write an uncompressed file') from None


def refuse_packed(*paths):
    """Raise Contradiction if an output (None: not wanted) that is never compressed has a compression extension."""
    for path in paths:
        if path is not None and (compression := split_compression(path)[1]):
            raise Contradiction(f"{path}: this output is never compressed; remove .{compression} from its name")


def check_space(sizes):
    """Raise TiedtoolsError if outputs, a dict path -> bytes, do not fit the free space of their disks."""
    disks = {}
    for path in filter(is_file, sizes):
        disks.setdefault(os.stat(os.path.dirname(os.path.realpath(path))).st_dev, []).append(path)
    for paths in disks.values():
        need, disk = sum(map(sizes.get, paths)), shutil.disk_usage(os.path.dirname(os.path.realpath(paths[0])))
        if disk.total and need > disk.free:
            space = f"needs about {need / 1e6:,.0f} MB, {disk.free / 1e6:,.0f} MB free"
            raise TiedtoolsError(f"{', '.join(paths)}: {space}; {REMEDIES[errno.ENOSPC]}")


def spared(path, write, error):
    """Write an output for which there is no space to another folder, and return its path; raise `error` if all fail."""
    stem, extension = os.path.splitext(os.path.basename(path))
    for folder in (os.path.expanduser("~"), tempfile.gettempdir()):
        with contextlib.suppress(OSError, TiedtoolsError):
            spare = os.path.join(tempfile.mkdtemp(prefix=f"{stem}-", dir=folder), stem + extension)
            try:
                with open_packed(spare) as file:
                    write(file)
                return spare
            except TiedtoolsError:
                os.rmdir(os.path.dirname(spare))
    raise error


def refuse_clashes(outputs, inputs):
    """Raise Contradiction if an output path (None: not wanted) is also an input or another output."""

    def target(path):
        # Several outputs may share a device or a pipe.
        return path if is_special(path) else os.path.realpath(path)

    # Standard input may be redirected from a file, and a URL may be that of a local file.
    taken = {target("/dev/stdin" if path == "-" else os.fspath(path).removeprefix("file://")) for path in inputs}
    for path in outputs:
        if path is not None:
            name = "-" if path in STDOUT else target(path)
            if name in taken and name != os.devnull:
                raise Contradiction(
                    f"{path}: is used as both input and output, or for two outputs; give each its own file"
                )
            taken.add(name)
