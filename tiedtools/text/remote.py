"""Files at URLs (`s3://`, `gs://`, `hdfs://`, `file://`, ...), read through fsspec."""

import contextlib
import errno
import io
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from tiedtools.base.errors import TiedtoolsError, brief, library, unreadable

BLOCK = 1 << 20
URL = re.compile(r"[A-Za-z][\w+.:-]*://")  # also fsspec's chains, as in simplecache::s3://
# fsspec raises these without an error number.
NUMBERS: dict[type, int] = {
    FileNotFoundError: errno.ENOENT, PermissionError: errno.EACCES, IsADirectoryError: errno.EISDIR,
}  # fmt: skip


def is_url(source: Any) -> bool:
    """Return whether a source is a URL."""
    return isinstance(source, str) and URL.match(source) is not None


def open_url(url: str) -> BinaryIO:
    """Open the file at a URL for reading bytes. All errors in opening and in reading are TiedtoolsErrors."""
    return io.BufferedReader(Remote(url), BLOCK)


def size(url: str) -> int | None:
    """Return the size of the file at a URL in bytes, None if unknown. Raises TiedtoolsError if it is missing."""
    with translate_errors(url):
        system, path = resolve(url)
        return system.info(path).get("size")


def resolve(url: str) -> tuple[Any, str]:
    """Resolve a URL to (fsspec file system, path)."""
    return library("fsspec.core", f"{url}: needs fsspec", "remote").url_to_fs(url)


@contextlib.contextmanager
def translate_errors(url: str) -> Iterator[None]:
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

    def __init__(self, url: str) -> None:
        self.url = url
        with translate_errors(url):
            system, path = resolve(url)
            self.file = system.open(path, "rb")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self.file.seekable()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        with translate_errors(self.url):
            return self.file.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        with translate_errors(self.url):
            data = self.file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self.file:
            self.file.close()
        super().close()
