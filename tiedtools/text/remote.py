"""Files at URLs (`s3://`, `gs://`, `hdfs://`, `file://`, ...), read through fsspec."""

import contextlib
import errno
import io
import os
import re
from typing import Any

from tiedtools.base.errors import TiedtoolsError, brief, unreadable

BLOCK = 1 << 20
URL = re.compile(r"[A-Za-z][\w+.:-]*://")  # also fsspec's chains, as in simplecache::s3://
# fsspec raises these without an error number.
NUMBERS: dict[type, int] = {
    FileNotFoundError: errno.ENOENT,
    PermissionError: errno.EACCES,
    IsADirectoryError: errno.EISDIR,
}


def is_url(source):
    """Return whether a source is a URL."""
    return isinstance(source, str) and URL.match(source) is not None


def open_url(url):
    """Open the file at a URL for reading bytes. All errors in opening and in reading are TiedtoolsErrors."""
    return io.BufferedReader(Remote(url), BLOCK)


def size(url):
    """Return the size of the file at a URL in bytes, None if unknown. Raises TiedtoolsError if it is missing."""
    with translate_errors(url):
        system, path = resolve(url)
        return system.info(path).get("size")


def resolve(url):
    """Resolve a URL to (fsspec file system, path)."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise TiedtoolsError(f'{url}: needs fsspec: pip install "tiedtools[remote]"') from None
    return url_to_fs(url)


@contextlib.contextmanager
def translate_errors(url):
    """Raise TiedtoolsError for any error in the block, since the exceptions of file systems share no base class."""
    try:
        yield
    except (TiedtoolsError, MemoryError):
        raise
    except ImportError as error:
        install = f"; pip install {error.name.partition('.')[0]}" if error.name else ""
        raise TiedtoolsError(f"{url}: {brief(error)}{install}") from None
    except Exception as error:
        if number := NUMBERS.get(type(error)):
            error = OSError(number, os.strerror(number))
        elif not getattr(error, "strerror", None):
            name = brief(error) or type(error).__name__
            error = OSError(f"{name}; check the URL, the credentials, and the network")
        raise unreadable(url, error) from None


class Remote(io.RawIOBase):
    """Unbuffered reader of the file at a URL."""

    file: Any = None

    def __init__(self, url):
        self.url = url
        with translate_errors(url):
            system, path = resolve(url)
            self.file = system.open(path, "rb")

    def readable(self):
        return True

    def seekable(self):
        return self.file.seekable()

    def seek(self, offset, whence=os.SEEK_SET):
        with translate_errors(self.url):
            return self.file.seek(offset, whence)

    def readinto(self, buffer):
        with translate_errors(self.url):
            data = self.file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self):
        if self.file:
            self.file.close()
        super().close()
