"""Settings: ranges, checks, and sorting by name into configuration dataclasses."""

import dataclasses
import difflib
import numbers
import typing
from collections.abc import Collection, Iterable
from typing import Any, ClassVar, NamedTuple

from tiedtools.base.errors import Contradiction, quoted

SIDES = "in", "out", "sum", "concat"  # word vectors of most models; see Model.vectors in trainer.py


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


@dataclasses.dataclass(frozen=True)
class Reading(Checked):
    """How training texts are read. Without a value, each reader has its own default.

    min_count   discard words that occur less often
    max_vocab   vocabulary size limit; None: no limit
    errors      invalid UTF-8: reject the file, replace it with U+FFFD, or skip it
    """

    min_count: int = 1
    max_vocab: int | None = None
    errors: str = "strict"

    choices: ClassVar[dict[str, Any]] = {"errors": ("strict", "replace", "ignore")}
    ranges: ClassVar[dict[str, Range]] = {"min_count": Range(0), "max_vocab": Range(2)}


@dataclasses.dataclass(frozen=True)
class LmReading(Reading):
    """How the texts of language models are read; `max_vocab` includes `<unk>`.

    valid_share  proportion of the training text held out for validation, without a validation text
    """

    valid_share: float = 0.1

    ranges: ClassVar[dict[str, Range]] = {"max_vocab": Range(3), "valid_share": Range(0, 1, max_open=True)}


def settings_of(*configs: Any) -> dict[str, Any]:
    """Return all settings of configurations: of those left out, some would have other defaults than their fields."""
    settings = {field.name: getattr(config, field.name) for config in configs for field in dataclasses.fields(config)}
    if "direct" in settings:
        settings["direct"] /= 10**6  # rnnlm's option is in millions
    return settings


def sort_out(given: dict[str, Any], kinds: tuple[type, ...], also: Iterable[str] = ()) -> list[Any]:
    """Return an instance of each dataclass in `kinds` with its fields set from `given`.

    also  names of further settings, for the message

    Raises Contradiction for an unknown setting, and for a value of a wrong type or out of range.
    """
    fields = [{field.name for field in dataclasses.fields(kind)} for kind in kinds]
    known = set().union(*fields)
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known.union(also), 1)
            remedy = f"did you mean `{close[0]}`?" if close else f"choose from {', '.join(sorted(known.union(also)))}"
            raise Contradiction(f"unknown setting `{name}`; {remedy}")
    made: list[Any] = []
    for kind, names in zip(kinds, fields):
        types = typing.get_type_hints(kind)
        made.append(kind(**{name: checked(name, given[name], types[name]) for name in given if name in names}))
    return made


def with_reading(given: dict[str, Any], kinds: tuple[type, ...], reading: type, also: Iterable[str] = ()) -> list[Any]:
    """Return what `sort_out` does, and a dict of the given settings that are fields of `reading`, a Reading class."""
    *made, read = sort_out(given, (*kinds, reading), also)
    return [*made, {name: value for name, value in vars(read).items() if name in given}]
