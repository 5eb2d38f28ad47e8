"""Settings given by name: check them, and sort them into configuration dataclasses."""

import dataclasses
import difflib
import numbers
import typing
from typing import Any

from tiedtools.errors import Contradiction

READING = "min_count", "max_vocab", "errors"  # how training texts are read


def sort_out(given: dict[str, Any], kinds: tuple[type, ...], reading: tuple[str, ...] = READING) -> list[Any]:
    """Return an instance of each dataclass in `kinds` with its fields set from `given`, and a dict of the rest.

    reading  names of the settings that belong to no dataclass

    Raises Contradiction for an unknown setting, and for a value of a wrong type.
    """
    fields = [{field.name for field in dataclasses.fields(kind)} for kind in kinds]
    known = set(reading).union(*fields)
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, 1)
            remedy = f"did you mean `{close[0]}`?" if close else f"choose from {', '.join(sorted(known))}"
            raise Contradiction(f"unknown setting `{name}`; {remedy}")
    made: list[Any] = []
    for kind, names in zip(kinds, fields):
        types = typing.get_type_hints(kind)
        made.append(kind(**{name: checked(name, given[name], types[name]) for name in given if name in names}))
    return [*made, {name: given[name] for name in given if name in reading}]


def checked(name: str, value: Any, wanted: Any) -> Any:
    """Return `value` as one of the wanted types; NumPy numbers become Python's. Raises Contradiction."""
    types = typing.get_args(wanted) or (wanted,)
    if isinstance(value, bool) or value is None:
        fits = type(value) in types
    elif isinstance(value, numbers.Integral) and {int, float} & set(types):
        return int(value)
    elif isinstance(value, numbers.Real) and float in types:
        return float(value)
    else:
        fits = isinstance(value, types)
    if not fits:
        names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in types)
        raise Contradiction(f"`{name}={value!r}` is not {names}; correct it")
    return value
