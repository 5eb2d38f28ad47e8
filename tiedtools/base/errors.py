"""Errors the user can fix, and helpers for their messages."""

import errno
import importlib
import re
from typing import Any


def printable(text: str) -> str:
    """Return text as one printable line: unprintable characters are escaped, non-UTF-8 bytes of file names as \\xNN."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1].replace("\\udc", "\\x") for c in text)


class TiedtoolsError(Exception):
    """An error in the input or the environment. The message is one line: file, line, problem, and remedy.

    The command line prints the message; tracebacks are reserved for bugs in tiedtools itself.
    """

    def __str__(self) -> str:
        return printable(str(self.args[0]) if self.args else "")  # KeyError would quote it


class Contradiction(TiedtoolsError, ValueError):
    """Settings out of range, or that exclude each other or are meaningless together."""


class Mistyped(Contradiction, TypeError):
    """A setting or argument that does not exist, or of a wrong type."""


class UnknownWord(TiedtoolsError, KeyError):
    """A word without a vector."""


class Renamed(TiedtoolsError, AttributeError):
    """A method of another library that has another name here."""


class Unreadable(TiedtoolsError, OSError):
    """A file that cannot be read."""


class NotFound(Unreadable, FileNotFoundError):
    """A file that does not exist."""


class Unwritable(TiedtoolsError, OSError):
    """A file that cannot be written."""


class Diverged(TiedtoolsError):
    """Training diverged: a value is not finite, or too large for a useful model."""


REMEDIES = {
    errno.ENOENT: "check the name",
    errno.EISDIR: "name files, such as FOLDER/*",
    errno.ENOTDIR: "check the name",
    errno.EACCES: "check its permissions",
    errno.ENOSPC: "free some space, or write elsewhere",
    errno.EDQUOT: "free some space, or write elsewhere",
    errno.EFBIG: "write elsewhere, or raise the limit (ulimit -f)",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EROFS: "write elsewhere",
}


def reason(error: OSError) -> str:
    """Return the message of an OSError, followed by a remedy if there is one."""
    remedy = REMEDIES.get(error.errno or 0)
    return (error.strerror or str(error)) + (f"; {remedy}" if remedy else "")


def unreadable(path: str, error: BaseException) -> TiedtoolsError:
    """Return the TiedtoolsError for a file that cannot be read; `error` is the exception that caused it."""
    if isinstance(error, TiedtoolsError):
        return error
    if isinstance(error, OSError) and error.strerror:
        why = reason(error)
    else:  # from a decompressor
        why = str(error) if re.search("; [a-z`]", str(error)) else f"{error}; get an undamaged copy"
    kind = NotFound if isinstance(error, FileNotFoundError) else Unreadable if isinstance(error, OSError) else None
    result = (kind or TiedtoolsError)(f"{path or repr(path)}: cannot be read: {why}")
    if isinstance(result, OSError) and isinstance(error, OSError):
        result.errno, result.filename = error.errno, error.filename
    return result


def library(name: str, purpose: str, extra: str | None = None) -> Any:
    """Import and return an optional module. Raises TiedtoolsError, which names the package or the extra to install."""
    package = name.partition(".")[0]
    try:
        importlib.import_module(package)
        return importlib.import_module(name)
    except ImportError:
        needed = f'"tiedtools[{extra}]"' if extra else package
        raise TiedtoolsError(f"{purpose}: pip install {needed}") from None


def quoted(text: object) -> str:
    """Quote a string or bytes from a file, shortened to 60 characters for a one-line message."""
    text = repr(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
    return text if len(text) <= 60 else f"{text[:57]}...{text[0]}"


def brief(error: object) -> str:
    """Return another library's exception message on one line, without quoted bytes, shortened to 200 characters."""
    text = re.sub(r"\bb(['\"]).*\1", "...", str(error), flags=re.DOTALL)
    text = " ".join(ascii(text)[1:-1].split())
    text = text if len(text) <= 200 else text[:197] + "..."
    return text if text.count("`") % 2 == 0 else text.replace("`", "'")
