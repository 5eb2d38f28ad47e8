"""Files that appear under their name only when they are whole."""

import contextlib
import os
import sys

from tiedtools.errors import TiedtoolsError


@contextlib.contextmanager
def open_output(path):
    """Yield a binary file for `path` (`-` or None: standard output).

    A regular file is written beside its final name and renamed when the block ends without an
    exception; otherwise the name keeps what it had. Devices and pipes are written directly.

    Raises TiedtoolsError at once, before any work is done, when the place cannot be written.
    """
    if path in (None, "-"):
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if os.path.isdir(path):
        raise TiedtoolsError(f"{path}: is a directory; name a file to write")
    direct = os.path.exists(path) and not os.path.isfile(path)
    target = path if direct else os.path.realpath(path)
    partial = target if direct else f"{target}.{os.getpid()}.part"
    try:
        if not direct and os.path.exists(target) and not os.access(target, os.W_OK):
            raise PermissionError(13, "Permission denied")
        file = open(partial, "wb")
    except OSError as error:
        raise TiedtoolsError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with file:
            yield file
            file.flush()
            if not direct:
                os.fsync(file.fileno())
        if not direct:
            os.replace(partial, target)
    except BaseException:
        if not direct:
            with contextlib.suppress(OSError):
                os.unlink(partial)
        raise
