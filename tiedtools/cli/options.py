"""Options, decorators shared by several commands, and settings spelled as options: `drop_out=.5` is --drop-out .5."""

import dataclasses
import functools
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any

import click

from tiedtools.base.aliases import SHORTCUTS
from tiedtools.base.settings import SIDES

Decorator = Callable[[Any], Any]  # of a command or another decorator
PHRASES = {("tying", "untied"): "an untied model", ("output_bias", "True"): "an output bias"}
# Settings translated for every command, even one without these options.
OF_OTHERS = "resume", "save_model", "checkpoint", "log_json", "errors"


def spelled(message: str, command: Any) -> str:
    """Return `message` with backticked names of the click command's parameters replaced by their options."""
    names = {parameter.name: parameter.opts[0] for parameter in command.params if parameter.opts[0].startswith("-")}
    off = {name for parameter in command.params for name in parameter.secondary_opts}
    flags = {parameter.name for parameter in command.params if getattr(parameter, "is_flag", False)}

    def translate(match: re.Match[str]) -> str:
        name, value = match[1], match[2] and match[2].strip("'")
        if name not in names and name not in OF_OTHERS:
            typed = TYPED.get((name, value), match[0])
            return typed if typed in off else PHRASES.get((name, value), typed)
        negative = as_option(name, False)
        if name in flags and (value == "True" or value == "False" and negative not in off):
            return f"{'no ' * (value == 'False')}{names[name]}"
        if name in names and name not in flags and value in ("True", "False"):  # word2vec.c's -hs 1
            return f"{names[name]} {int(value == 'True')}"
        return negative if value == "False" else as_option(name, value, names.get(name))

    return re.sub(r"`(\w+)(?:=([^`]*))?`", translate, message)


def as_option(name: str, value: Any = None, option: str | None = None) -> str:
    """Return a setting as typed, with its value if it is no flag; `option`: its option if it has another name."""
    option = option or f"--{'no-' if value is False else ''}{name.replace('_', '-')}"
    return option if value is None or isinstance(value, bool) else f"{option} {value}"


def as_options(settings: dict[str, Any]) -> str:
    """Return settings, a dict by name, as typed on the command line."""
    options = []
    for name, value in settings.items():
        number = f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else value
        options.append(TYPED.get((name, str(value))) or as_option(name, number))
    return " ".join(options)


TYPED = {  # (setting, value) -> its shortcut as typed on the command line
    (setting, str(meant)): as_option(name, value)
    for name, (setting, values) in SHORTCUTS.items()
    for value, meant in values.items()
}


class Option(click.Option):
    """An option accepted as both `-name` (as in word2vec.c) and `--name`; help and messages show `--name`.

    setting  name of the setting of this option, or None
    values   dict: value of the option -> value of the setting, where they differ
    """

    def __init__(
        self, names: Any = None, setting: str | None = None, values: dict[Any, Any] | None = None, **attributes: Any
    ) -> None:
        super().__init__(names, **attributes)
        self.setting, self.values = setting, values or {}
        for forms in self.opts, self.secondary_opts:
            forms[:] = [form for name in forms for form in (name, *[name[1:]] * name.startswith("--"))]

    def get_help_record(self, ctx: click.Context) -> Any:
        if record := super().get_help_record(ctx):
            return re.sub(r"(?<![\w-])-\w[\w-]*, ", "", record[0]), spelled(record[1], ctx.command)

    def get_error_hint(self, ctx: Any) -> str:
        return f"'{self.opts[0]}'"


def option(name: str, python_name: Any = None, also: str = "", **attributes: Any) -> Decorator:
    """Return a click option decorator.

    name         option name without dashes; a flag may be "name/--no-name"
    python_name  name of the command's parameter; None: derived from `name`
    also         synonyms, separated by spaces: names used by other programs and earlier versions
    """
    attributes.setdefault("show_default", True)
    names = ["-" * min(len(name), 2) + name for name in (name, *also.split())]
    return click.option(*names, *[python_name] * (python_name is not None), cls=Option, **attributes)


def explicit(ctx: click.Context) -> set[str]:
    """Return the names of the parameters that are set on the command line."""
    return {name for name in ctx.params if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}


def option_names(ctx: click.Context) -> dict[str, str]:
    """Return a dict: parameter name -> option as typed, or name of the argument."""
    return {parameter.name: parameter.opts[0] for parameter in ctx.command.params}


def as_typed(ctx: click.Context, parameter: click.Parameter) -> str:
    """Return an explicit option with its value if it is a flag that is off: --no-NAME."""
    return (parameter.secondary_opts if ctx.params[str(parameter.name)] is False else parameter.opts)[0]


def flag(name: str, help: str, **attributes: Any) -> Decorator:
    """Return an option without a value."""
    return option(name, is_flag=True, help=help, show_default=False, **attributes)


def file_option(name: str, help: str, metavar: str = "FILE", **attributes: Any) -> Decorator:
    """Return an option for the path of a file."""
    return option(name, metavar=metavar, help=help, **attributes)


text_option = functools.partial(file_option, metavar="TEXT")  # an option for the path of a text
json_option = functools.partial(flag, "json", python_name="as_json")  # the `--json` flag


def choice(name: str, choices: str, help: str, default: str | None = None) -> Decorator:
    """Return an option for one of `choices`, words separated by spaces."""
    return option(name, type=click.Choice(choices.split()), default=default, help=help)


def integer(
    name: str, default: Any, help: str, least: int = 1, most: int | None = None, metavar: str | None = "N",
    **attributes: Any
) -> Decorator:  # fmt: skip
    """Return an option for an integer in the range `least` to `most`."""
    return option(name, type=click.IntRange(least, most), default=default, metavar=metavar, help=help, **attributes)


class Finite(click.FloatRange):
    """A float range that rejects nan, infinities, and magnitudes outside float32's safe range."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        value = super().convert(value, param, ctx)
        if value and not 1e-30 <= abs(value) <= 1e30:
            self.fail(f"{value} must be finite, with magnitude 1e-30 to 1e30.", param, ctx)
        return value


def together(*decorators: Decorator) -> Decorator:
    """Combine option decorators into one, preserving their order."""
    return lambda function: functools.reduce(lambda decorated, add: add(decorated), reversed(decorators), function)


def option_of(
    field: dataclasses.Field[Any], name: str | None = None, also: str = "", within: Any = None, choices: Any = None,
    off: bool = False, **attributes: Any
) -> Decorator:  # fmt: skip
    """Return the option of a setting, a dataclass field; the other arguments are as for base.settings.setting.

    name  option name without dashes; None: derived from the name of the setting
    also  synonyms, as for `option`; other attributes: of the click option

    If the help states the default, the option has no default.
    """
    kinds = typing.get_args(field.type) or (field.type,)
    name = name or field.name.replace("_", "-")
    default = None if "[default: " in attributes["help"] else field.default
    attributes = {"setting": field.name, "default": default, **attributes}
    if choices:
        attributes.setdefault("type", click.Choice([choice for choice in choices if choice]))
    elif within:
        attributes.setdefault("type", (Finite if float in kinds else click.IntRange)(*within))
    elif bool in kinds and "type" not in attributes:
        attributes |= dict(is_flag=True, show_default=False)
        name += f"/--no-{name}" if "/" not in name and (off or attributes["default"] is not False) else ""
    return option(name, field.name, also, **attributes)


def shortcuts_of(field: dataclasses.Field[Any], changed: dict[str, Any]) -> Iterator[Decorator]:
    """Yield the options that are shortcuts for values of a setting, with the help for the first value."""
    for name, (setting, values) in SHORTCUTS.items():
        value = next(iter(values.values()))
        if setting == field.name and value in field.metadata["help"]:
            attributes = {"name": name.replace("_", "-"), "help": field.metadata["help"][value]}
            attributes["name"] += f"/--no-{name}" if any(value is False for value in values) else ""
            attributes |= {"is_flag": True, "show_default": False, **changed.get(name, {})}
            yield option(python_name=name, setting=setting, values=values, **attributes)


def options_of(kind: Any, *names: str, defaults: Any = None, **changed: Any) -> list[Decorator]:
    """Return the options of the settings `names` of a dataclass; without names, of all settings that it declares.

    defaults  dict of defaults that differ from the fields' defaults
    changed   name of an option -> arguments of `option_of` that override the field's metadata
    """
    decorators, fields = [], {field.name: field for field in dataclasses.fields(kind)}
    for name in names or declared(kind):
        if any(setting == name for setting, _ in SHORTCUTS.values()):
            decorators += shortcuts_of(fields[name], changed)
        else:
            default = {"default": defaults[name]} if name in (defaults or {}) else {}
            decorators.append(option_of(fields[name], **{**fields[name].metadata, **default, **changed.get(name, {})}))
    return decorators


def declared(kind: Any) -> list[str]:
    """Return the names of the settings that a dataclass itself declares and that are options."""
    metadata = {field.name: field.metadata for field in dataclasses.fields(kind)}
    return [name for name in kind.__annotations__ if metadata.get(name) and "hidden" not in metadata[name]]


ZERO_ONE = dict(type=click.IntRange(0, 1), default=0, values={0: False, 1: True})  # a flag as in word2vec.c
ON_TERMINAL = "-; on a terminal, none: the model is saved instead"
OF_FILES = dict(output=dict(default="-", show_default=ON_TERMINAL), write=dict(choices=SIDES), binary=ZERO_ONE)
