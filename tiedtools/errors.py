"""Errors the user can fix, and helpers for their messages."""

import errno
import numbers
import re
import typing
from collections.abc import Collection
from typing import Any, ClassVar, NamedTuple


def printable(text: str) -> str:
    """Text as one printable line: unprintable characters are escaped, non-UTF-8 bytes of file names as \\xNN."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1].replace("\\udc", "\\x") for c in text)


class TiedtoolsError(Exception):
    """An error in the input or the environment. The message is one line: file, line, problem, and remedy.

    The command line prints the message and exits with `status`; tracebacks are reserved for bugs in tiedtools itself.
    """

    status = 1

    def __str__(self) -> str:
        return printable(super().__str__())


class Contradiction(TiedtoolsError):
    """Options that exclude each other or are meaningless together."""

    status = 2


class Diverged(TiedtoolsError):
    """Training diverged: a value is not finite, or too large for a useful model."""


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


def reason(error: OSError) -> str:
    """The message of an OSError, followed by a remedy if there is one."""
    remedy = REMEDIES.get(error.errno or 0)
    return (error.strerror or str(error)) + (f"; {remedy}" if remedy else "")


def unreadable(path: str, error: BaseException) -> "TiedtoolsError":
    """Return the TiedtoolsError for a file that cannot be read; `error` is the exception that caused it."""
    if isinstance(error, OSError) and error.strerror:
        why = reason(error)
    else:  # from a decompressor
        why = str(error) if re.search("; [a-z`]", str(error)) else f"{error}; get an undamaged copy"
    return TiedtoolsError(f"{path or repr(path)}: cannot be read: {why}")


def quoted(text: object) -> str:
    """Part of a file, a string or bytes, quoted and shortened to 60 characters for a one-line message."""
    text = repr(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
    return text if len(text) <= 60 else text[:57] + "...'"


def brief(error: object) -> str:
    """The message of another library's exception on one line, without bytes it quotes, shortened to 200 characters."""
    text = re.sub(r"\bb(['\"]).*\1", "...", str(error), flags=re.DOTALL)
    text = " ".join(ascii(text)[1:-1].split())
    return text if len(text) <= 200 else text[:197] + "..."


class Range(NamedTuple):
    """The range of a numeric setting, with the fields of click's IntRange and FloatRange.

    Other numbers than 0 also need a magnitude of 1e-30 to 1e30, which is safe for float32.
    """

    min: float
    max: float | None = None
    min_open: bool = False
    max_open: bool = False

    def require(self, name: str, value: float | None) -> None:
        """Raise Contradiction unless the value of the setting `name` is None or in the range."""
        if value is None:
            return
        above = value > self.min if self.min_open else value >= self.min
        below = self.max is None or (value < self.max if self.max_open else value <= self.max)
        if not (above and below):
            raise Contradiction(f"`{name}={value}` must be {self}")
        if value and not 1e-30 <= abs(value) <= 1e30:
            raise Contradiction(f"`{name}={value}` must be finite, with magnitude 1e-30 to 1e30")

    def __str__(self) -> str:
        if self.max is not None and not self.min_open and not self.max_open:
            return f"from {self.min:,} to {self.max:,}"
        least = f"{'more than' if self.min_open else 'at least'} {self.min:,}"
        return least if self.max is None else f"{least} and {'less than' if self.max_open else 'at most'} {self.max:,}"


SEEDS, THREADS = Range(0, 2**32 - 1), Range(1, 1024)


def checked(name: str, value: Any, wanted: Any, within: Range | None = None) -> Any:
    """Return the value of the setting `name` as one of the wanted types; NumPy numbers become Python's.

    Raises Contradiction for a value of another type, or outside the range `within`.
    """
    types = typing.get_args(wanted) or (wanted,)
    if getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, bool) or value is None:
        fits = type(value) in types
    elif isinstance(value, numbers.Integral) and {int, float} & set(types):
        fits, value = True, int(value)
    elif isinstance(value, numbers.Real) and float in types:
        fits, value = True, float(value)
    else:
        fits = isinstance(value, types)
    if not fits:
        names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in types)
        raise Contradiction(f"`{name}={quoted(value)}` is not {names}; correct it")
    if within:
        within.require(name, value)
    return value


def one_of(name: str, value: object, choices: Collection[object]) -> None:
    """Raise Contradiction unless the value of the setting `name` is one of the choices."""
    if value not in choices:
        raise Contradiction(f"`{name}={quoted(value)}` is not one of {', '.join(map(str, choices))}")


class Checked:
    """Base class of settings dataclasses that validate themselves when constructed.

    Each class in the inheritance chain may define `choices`, a dict of field -> allowed values; `ranges`, a dict of
    field -> Range; and `mistakes`, a method that yields pairs (message, whether it applies). Raises Contradiction for
    the first that applies.
    """

    choices: ClassVar[dict[str, Any]] = {}
    ranges: ClassVar[dict[str, Range]] = {}

    def __post_init__(self) -> None:
        parts = [vars(part) for part in type(self).__mro__]
        for name, values in ((name, part["choices"][name]) for part in parts for name in part.get("choices", ())):
            one_of(name, getattr(self, name), values)
        for name, within in (item for part in parts for item in part.get("ranges", {}).items()):
            within.require(name, getattr(self, name))
        for message, wrong in (mistake for part in parts if "mistakes" in part for mistake in part["mistakes"](self)):
            if wrong:
                raise Contradiction(message)
