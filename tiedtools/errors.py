"""Errors the user can fix, and helpers for their messages."""

import errno
import re
from typing import ClassVar


def printable(text):
    """Text on one line. What cannot be printed is escaped, bytes of a file name that are not UTF-8 as \\xNN."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1].replace("\\udc", "\\x") for c in text)


class TiedtoolsError(Exception):
    """An error in the input or the environment. The message is one line: the file, the line, and the remedy.

    The command line prints the message and exits with `status`; a traceback is for bugs in tiedtools itself.
    """

    status = 1

    def __str__(self):
        return printable(super().__str__())


class Contradiction(TiedtoolsError):
    """Options that exclude each other or have no meaning together."""

    status = 2


class Diverged(TiedtoolsError):
    """Training broke down: a value that is not finite, or too large for a useful model."""


REMEDIES = {
    errno.ENOENT: "check the name",
    errno.EISDIR: "name a file",
    errno.ENOTDIR: "check the name",
    errno.EACCES: "check its permissions",
    errno.ENOSPC: "free some space, or write elsewhere",
    errno.EDQUOT: "free some space, or write elsewhere",
    errno.EFBIG: "write elsewhere, or raise the limit (ulimit -f)",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EROFS: "write elsewhere",
}


def reason(error):
    """What an OSError says, with a remedy where there is one."""
    remedy = REMEDIES.get(error.errno)
    return (error.strerror or str(error)) + (f"; {remedy}" if remedy else "")


def unreadable(path, error):
    """The TiedtoolsError for a file that cannot be read; `error` is the exception that says why."""
    if getattr(error, "strerror", None):
        why = reason(error)
    else:  # a decompressor's
        why = str(error) if re.search("; [a-z`]", str(error)) else f"{error}; get an undamaged copy"
    return TiedtoolsError(f"{path or repr(path)}: cannot be read: {why}")


def quoted(text):
    """Part of a file, a string or bytes, as a message of one line shows it."""
    text = repr(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
    return text if len(text) <= 60 else text[:57] + "...'"


def brief(error):
    """The message of another library's exception, as a message of one line shows it."""
    text = " ".join(ascii(error if isinstance(error, str) else str(error))[1:-1].split())
    return text if len(text) <= 200 else text[:197] + "..."


class Checked:
    """A dataclass of settings that checks itself, part by part of those that it inherits from.

    Each part may have `choices`, dict: field -> its values, and `mistakes`, a method that yields pairs (what to do
    about it, whether it is so). Raises Contradiction for the first that is.
    """

    choices: ClassVar[dict] = {}

    def __post_init__(self):
        parts = [vars(part) for part in type(self).__mro__]
        for name, values in ((name, part["choices"][name]) for part in parts for name in part.get("choices", ())):
            if (value := getattr(self, name)) not in values:
                raise Contradiction(f"`{name}={value!r}` is none of {', '.join(values)}")
        for message, wrong in (mistake for part in parts if "mistakes" in part for mistake in part["mistakes"](self)):
            if wrong:
                raise Contradiction(message)
