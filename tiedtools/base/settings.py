"""Settings, each declared once as a field of a dataclass: checks, documentation, and sorting by name."""

import dataclasses
import difflib
import inspect
import numbers
import textwrap
import typing
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeVar

from tiedtools.base.errors import Contradiction, quoted

T = TypeVar("T")
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


def setting(
    default: Any,
    help: str | dict[Any, str],
    within: Range | None = None,
    choices: Collection[object] | None = None,
    **option: Any,
) -> Any:
    """Declare a setting of a Checked dataclass, from which the check, the option, and the documentation are derived.

    help     what the setting does, with other settings in backticks; or a dict of its values, each with what it does
    within   Range of a number
    choices  allowed values
    option   attributes of the command-line option: metavar; off=True: `--no-NAME` turns the flag off; hidden=True: none
    """
    return dataclasses.field(default=default, metadata=dict(help=help, within=within, choices=choices, **option))


class Checked:
    """Base class of settings dataclasses that validate themselves when constructed.

    Fields declared by `setting` are checked by their ranges and choices. Each class in the inheritance chain may define
    `mistakes`, a method that yields pairs (message, whether it applies). Raises Contradiction for the first that
    applies.
    """

    def __post_init__(self) -> None:
        fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(self)  # type: ignore[arg-type]
        for field in fields:
            if choices := field.metadata.get("choices"):
                one_of(field.name, getattr(self, field.name), tuple(choices))
        for field in fields:
            if within := field.metadata.get("within"):
                within.require(field.name, getattr(self, field.name))
        parts = [vars(part) for part in type(self).__mro__]
        for message, wrong in (mistake for part in parts if "mistakes" in part for mistake in part["mistakes"](self)):
            if wrong:
                raise Contradiction(message)


def documented(*kinds: Any, **defaults: Any) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that adds the settings of dataclasses to the docstring; none: of the class itself.

    defaults  those that differ from the defaults of the fields
    """

    def add(cls: type[T]) -> type[T]:
        fields = {field.name: field for kind in kinds or (cls,) for field in dataclasses.fields(kind)}
        width = max(map(len, fields)) + 2
        lines = (textwrap.wrap(meaning(field, defaults), 116 - width) for field in fields.values() if field.metadata)
        indented = (f"\n{' ' * width}".join(part) for part in lines)
        listed = "\n".join(f"{name:{width}}{text}" for name, text in zip(fields, indented))
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{listed}"
        return cls

    return add


def meaning(field: Any, defaults: dict[str, Any]) -> str:
    """Return the help of a setting, a field, with its default, for a docstring."""
    help = field.metadata["help"]
    text = help if isinstance(help, str) else " ".join(f"{value}: {text}" for value, text in help.items())
    default = defaults.get(field.name, field.default)
    return text if "[default: " in text or default is None else f"{text}  [default: {default}]"


@dataclasses.dataclass(frozen=True)
class Reading(Checked):
    """How training texts are read. Without a value, each reader has its own default."""

    min_count: int = setting(5, "Discard words that occur less often than this.", Range(0))
    max_vocab: int | None = setting(
        None,
        "Keep only the most frequent words: N at most, including `</s>`.  [default: no limit]",
        Range(2),
        metavar="N",
    )
    errors: str = setting(
        "strict",
        "Invalid UTF-8: reject the file, replace with U+FFFD, or skip.",
        choices=("strict", "replace", "ignore"),
    )


@dataclasses.dataclass(frozen=True)
class LmReading(Reading):
    """How the texts of language models are read."""

    min_count: int = setting(1, "Replace words that occur less often than this with `<unk>`.", Range(0))
    max_vocab: int | None = setting(
        None,
        "Keep only the most frequent words: N at most, including `</s>` and `<unk>`.  [default: no limit]",
        Range(3),
        metavar="N",
    )
    valid_share: float = setting(
        0.1,
        "Without `valid`, proportion of the lines held out for validation, from the end of TEXT; 0 disables.",
        Range(0, 1, max_open=True),
    )


def settings_of(*configs: Any) -> dict[str, Any]:
    """Return all settings of configurations: of those left out, some would have other defaults than their fields."""
    settings = {field.name: getattr(config, field.name) for config in configs for field in dataclasses.fields(config)}
    if "direct" in settings:
        settings["direct"] /= 10**6  # rnnlm's option is in millions
    return settings


def sort_out(given: dict[str, Any], *kinds: Any) -> list[Any]:
    """Return an instance of each dataclass in `kinds` with its fields set from `given`.

    Raises Contradiction for an unknown setting, and for a value of a wrong type or out of range.
    """
    fields = [{field.name for field in dataclasses.fields(kind)} for kind in kinds]
    known = set().union(*fields)
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            remedy = f"did you mean `{close[0]}`?" if close else f"choose from {', '.join(sorted(known))}"
            raise Contradiction(f"unknown setting `{name}`; {remedy}")
    made: list[Any] = []
    for kind, names in zip(kinds, fields):
        types = typing.get_type_hints(kind)
        made.append(kind(**{name: checked(name, given[name], types[name]) for name in given if name in names}))
    return made


def with_reading(given: dict[str, Any], *kinds: Any) -> list[Any]:
    """Return what `sort_out` does, but of the last class, a Reading, a dict of the settings in `given`."""
    *made, read = sort_out(given, *kinds)
    return [*made, {name: value for name, value in vars(read).items() if name in given}]
