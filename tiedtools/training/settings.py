"""Settings given by name: check them, and sort them into configuration dataclasses."""

import dataclasses
import difflib
import typing
from collections.abc import Iterable
from typing import Any, ClassVar

from tiedtools.errors import Checked, Contradiction, Range, checked

SIDES = "in", "out", "sum", "concat"  # word vectors of most models; see Model.vectors in trainer.py


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
