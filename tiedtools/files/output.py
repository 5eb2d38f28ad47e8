"""Files that appear under their name only when they are whole."""

import contextlib
import fcntl
import functools
import hashlib
import os
import re
import sys
import tempfile

from tiedtools import interrupts
from tiedtools.errors import Contradiction, TiedtoolsError, reason
from tiedtools.messages import log

STDOUT = ("-", "/dev/stdout")
OPENED = re.compile(r"/dev/(stderr|fd/\d+)|/proc/(self|\d+)/fd/\d+")  # by the shell, beside which nothing can lie


def is_file(path):
    """Whether an output's path (None: not wanted) is, or would be, the name of a regular file."""
    return path is not None and path not in STDOUT and not OPENED.fullmatch(path) and not is_special(path)


def is_special(path):
    """Whether there is something at a path that is no regular file: a device, a pipe, a folder."""
    return os.path.exists(path) and not os.path.isfile(path)


@contextlib.contextmanager
def open_output(path, put=os.replace):
    """Yield a binary file for `path`; `-` is standard output.

    A regular file is written beside its final name, as `.tiedtools-*.part`, and renamed when the block ends without an
    exception; otherwise the name keeps what it had. Devices and pipes are written directly.

    put  renames the file: put(its path, its final path)

    Raises TiedtoolsError at once, before any work is done, when it cannot be written.
    """
    if path in STDOUT:
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise TiedtoolsError(f"standard output: cannot be written: {reason(error)}") from None
        return
    if not path:
        raise Contradiction("an output has an empty name; name a file to write")
    if os.path.isdir(path) or path.endswith("/"):
        raise TiedtoolsError(f"{path}: is a directory; name a file to write")
    direct = is_special(path)
    target = path if direct else os.path.realpath(path)
    partial = None
    try:
        try:
            if direct:
                file = open(path, "wb")
            else:
                mode = new_file_mode(target)
                number, partial = new_part(target)
                file = os.fdopen(number, "wb")
                os.fchmod(number, mode)
            with file:
                yield file
                file.flush()
                if partial:
                    os.fsync(file.fileno())
                    put(partial, target)  # while it is locked, or somebody might take it for a dead process's
        except BrokenPipeError:
            raise
        except OSError as error:
            raise TiedtoolsError(f"{path}: cannot be written: {reason(error)}") from None
    except BaseException:
        if partial:
            with contextlib.suppress(OSError):
                os.unlink(partial)
        raise


def new_part(target):
    """(file descriptor, path) of a new file beside `target`; those of processes that were killed are removed."""
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
        os.close(number)  # somebody else has found it before it was locked


def remove_dead(path):
    """Remove a file whose lock is free: that of a living process never is, on whatever machine it runs."""
    with contextlib.suppress(OSError):
        number = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        finally:
            os.close(number)


def new_file_mode(path):
    """Permissions for a file that replaces `path`: those it has, or those of any new file."""
    if os.path.exists(path):
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "Permission denied")
        return os.stat(path).st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def split_compression(path):
    """A path without what says how it is compressed, and that, without its dot; None where it is not."""
    stem, extension = os.path.splitext(path)
    return (stem, extension[1:]) if extension in (".gz", ".bz2", ".xz", ".zst") else (path, None)


@contextlib.contextmanager
def open_packed(path, put=os.replace):
    """As open_output, of what is compressed as the end of `path` says: .gz .bz2 .xz .zst."""
    with open_output(path, put) as raw, compressed(raw, split_compression(path)[1]) as file:
        yield file


def compressed(file, compression):
    """A block with a binary file that is written, compressed so (None: as it is), to the binary file `file`."""
    if compression is None:
        return contextlib.nullcontext(file)
    from xopen import xopen

    try:
        return xopen(file, "wb", threads=0, format=compression)
    except ImportError as error:
        raise TiedtoolsError(f'{error}; pip install "tiedtools[zst]", or leave it uncompressed') from None


def refuse_packed(*paths):
    """Raise TiedtoolsError for an output (None: not wanted) that is never compressed, under a name that says it is."""
    for path in paths:
        if path is not None and (compression := split_compression(path)[1]):
            raise Contradiction(f"{path}: would not be compressed; leave out .{compression}")


class Abandoned(Exception):
    """What an output that is not written is closed with."""


class Outputs(contextlib.AbstractContextManager):
    """Several named outputs, all opened before the work begins, each finished by itself: one that fails at the end
    takes no other with it.

    paths   name -> path, None where it is not wanted
    put     renames a complete file and returns the name that it then has: put(its path, its final path)
    done    dict: name -> path of each that has been written
    """

    def __init__(self, paths, put):
        self.pending, self.done, self.failures = {}, dict[str, str](), []
        with contextlib.ExitStack() as undo:
            for name, path in paths.items():
                if path is not None:
                    stack = undo.enter_context(contextlib.ExitStack())
                    renamed = functools.partial(self.renamed, name, put)
                    self.pending[name] = path, stack, stack.enter_context(open_packed(path, renamed))
            undo.pop_all()

    def renamed(self, name, put, partial, target):
        final = put(partial, target)
        if final != target:
            self.done[name] = final

    def __contains__(self, name):
        return name in self.pending

    def write(self, name, write):
        """Call write(file) and finish the output. A failure is kept for the end of the block: that raises one, a signal
        to stop before others, unless the block itself has raised something, and tells the rest.

        What goes to a terminal or a pipe stops at once.
        """
        path, stack, file = self.pending.pop(name)
        whole = contextlib.nullcontext() if file is sys.stdout.buffer else interrupts.deferred()
        try:
            with whole:
                with stack:
                    write(file)
                self.done.setdefault(name, path)
        except (OSError, MemoryError, TiedtoolsError) as error:
            self.failures.append(error)
        except KeyboardInterrupt as stop:
            if interrupts.impatient():
                raise
            self.failures.append(stop)

    def __exit__(self, *error):
        for _, stack, _ in self.pending.values():
            stack.__exit__(Abandoned, Abandoned(), None)
        raised = None
        if self.failures and not error[0]:
            raised = next((stop for stop in self.failures if isinstance(stop, KeyboardInterrupt)), self.failures[0])
        for failure in self.failures:
            if isinstance(failure, Exception) and failure is not raised and not isinstance(failure, BrokenPipeError):
                log.warning(f"tiedtools: {failure}")
        if raised:
            raise raised


def refuse_clashes(outputs, inputs):
    """Raise TiedtoolsError where an output path (None: not wanted) is that of an input or of another output."""

    def target(path):
        # Several may well go to one device or pipe.
        return path if is_special(path) else os.path.realpath(path)

    # The shell may have standard input come from a file.
    taken = {target("/dev/stdin" if path == "-" else path) for path in inputs}
    for path in outputs:
        if path is not None:
            name = "-" if path in STDOUT else target(path)
            if name in taken and name != os.devnull:
                raise Contradiction(f"{path}: is named twice among what is read and written; give each its own file")
            taken.add(name)
