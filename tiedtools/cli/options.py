"""Options, option types, and decorators shared by several commands."""

import dataclasses
import functools
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any

import click

from tiedtools.base.settings import SIDES, LmReading, Reading
from tiedtools.cli.spelling import SHORTCUTS, spelled
from tiedtools.network.config import Computation
from tiedtools.runs.settings import Files
from tiedtools.vectors.formats import FORMATS

Decorator = Callable[[Any], Any]  # of a command or another decorator


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


def flag(name: str, help: str) -> Decorator:
    return option(name, is_flag=True, help=help, show_default=False)


def json_option(help: str) -> Decorator:
    """Return the `--json` flag; its parameter is `as_json`."""
    return option("json", "as_json", is_flag=True, help=help, show_default=False)


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
    off: bool = False, hidden: bool = False, **attributes: Any
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
    if "type" in attributes:
        pass
    elif choices:
        attributes["type"] = click.Choice([choice for choice in choices if choice])
    elif within:
        attributes["type"] = (Finite if float in kinds else click.IntRange)(*within)
    elif bool in kinds:
        attributes |= dict(is_flag=True, show_default=False)
        name += f"/--no-{name}" if "/" not in name and (off or attributes["default"] is not False) else ""
    return option(name, field.name, also, **attributes)


def shortcuts_of(field: dataclasses.Field[Any], changed: dict[str, Any]) -> Iterator[Decorator]:
    """Yield the options that are shortcuts for values of a setting, with the help for the first value."""
    help = field.metadata["help"]
    for name, (setting, values) in SHORTCUTS.items():
        value = next(iter(values.values()))
        if setting == field.name and value in help:
            flag = f"{name.replace('_', '-')}{f'/--no-{name}' if any(value is False for value in values) else ''}"
            attributes = {"name": flag, "is_flag": True, "show_default": False, "help": help[value]}
            attributes |= changed.get(name, {})
            yield option(attributes.pop("name"), name, setting=setting, values=values, **attributes)


def options_of(kind: Any, *names: str, defaults: Any = None, **changed: Any) -> list[Decorator]:
    """Return the options of the settings `names` of a dataclass; without names, of all settings that it declares.

    defaults  dict of defaults that differ from the fields' defaults
    changed   name of an option -> arguments of `option_of` that override the field's metadata
    """
    decorators = []
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in names or declared(kind):
        field = fields[name]
        if any(setting == name for setting, _ in SHORTCUTS.values()):
            decorators += shortcuts_of(field, changed)
        else:
            default = {"default": defaults[name]} if name in (defaults or {}) else {}
            decorators.append(option_of(field, **{**field.metadata, **default, **changed.get(name, {})}))
    return decorators


def declared(kind: Any) -> list[str]:
    """Return the names of the settings that a dataclass itself declares and that are options."""
    metadata = {field.name: field.metadata for field in dataclasses.fields(kind)}
    return [name for name in kind.__annotations__ if metadata.get(name) and "hidden" not in metadata[name]]


ZERO_ONE = dict(type=click.IntRange(0, 1), default=0, values={0: False, 1: True})  # a flag as in word2vec.c
OF_FILES = dict(output=dict(default="-"), write=dict(choices=SIDES), binary=ZERO_ONE)
(errors_option,) = options_of(Reading, "errors")
field_option, tokenize_option, phrases_option = options_of(
    Reading,
    "field",
    "tokenize",
    "phrases",
    tokenize=dict(
        help="Split TEXT into words as `--tokenize` does in training; `words`: TEXT is words already.  [default: as the"
        " training text of MODEL]"
    ),
    phrases=dict(
        help="Join the phrases in LIST, as `--phrases` does in training; none: join no phrases.  [default: as in the"
        " training text of MODEL]"
    ),
)
split_options = together(tokenize_option, phrases_option, errors_option)  # for texts that a trained model reads
raw_options = together(field_option, split_options)
(seed_option,) = options_of(Computation, "seed")
output_option, binary_option = options_of(Files, "output", "binary", **OF_FILES)

VECTOR_FORMATS = click.Choice(list(FORMATS))
format_option = option("format", type=VECTOR_FORMATS, help="Format of the vectors.  [default: detected]")
skip_bad_option = flag("skip-bad", "Skip lines and rows of vectors that cannot be read; report their number on stderr.")
reading_options = together(format_option, errors_option, skip_bad_option)

# Options of the commands that evaluate vectors on test sets.
data_option = option(
    "data",
    type=click.Path(exists=True, file_okay=False),
    help="Folder with named data sets, searched before $TIEDTOOLS_DATA and the downloads.",
)
case_option = option(
    "case",
    type=click.Choice(["as-is", "lower", "fallback"]),
    default="fallback",
    help="Look up words as written, lowercased, or as written with a lowercase fallback.",
)


def with_cache(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Option callback: require --cache, which is parsed first."""
    source = ctx.get_parameter_source(parameter.name)
    if source is click.core.ParameterSource.COMMANDLINE and not ctx.params.get("cache"):
        raise click.UsageError(f"{parameter.opts[0]} requires --cache N")
    return value


# A continuous cache, for the commands that score with a language model; defaults as in evaluation/neuralcache.py.
cache_options = together(
    option(
        "cache",
        type=click.IntRange(0),
        default=0,
        is_eager=True,
        metavar="N",
        help="Interpolate the model with a continuous cache of the last N words (Grave et al.); 0: no cache.",
    ),
    option(
        "cache-theta",
        type=Finite(0, 1000),
        default=1.0,
        callback=with_cache,
        help="With --cache, factor of the scores of the cache: the greater, the more similar the contexts it repeats.",
    ),
    option(
        "cache-lambda",
        type=Finite(0, 1, min_open=True, max_open=True),
        default=0.1,
        callback=with_cache,
        help="With --cache, weight of the cache's probabilities. Tune both on a validation text.",
    ),
)

texts_argument = click.argument("texts", nargs=-1, metavar="[TEXT]...")
# Training text and vocabulary selection.
TEXT_OPTIONS = [
    option("train", multiple=True, metavar="TEXT", help="Additional text, same as the TEXT argument; repeatable."),
    *options_of(Reading),
]
read_vocab_option = option(
    "read-vocab", metavar="FILE", help="Read the vocabulary from FILE instead of counting words in TEXT."
)
LM_TEXT = [  # of the commands that train a language model; see lmtrainer.py
    option(
        "train", multiple=True, metavar="TEXT", help="Additional training text, same as the TEXT argument; repeatable."
    ),
    option(
        "valid",
        metavar="TEXT",
        help="Validation text for model selection and learning-rate decay.  [default: see --valid-share]",
    ),
    option("test", metavar="TEXT", help="Test text; its perplexity is reported after training."),
    "valid_share min_count max_vocab",
    LmReading,
    read_vocab_option,
    "save_vocab errors tokenize phrases field",
]
debug_option = option(
    "debug", type=click.IntRange(0), default=2, help="Verbosity. 0: quiet; 1: one line per epoch; 2: progress."
)
RUN_FILES = [Files, flag("no-memory-check", "Train even if memory looks insufficient.")]
OUTPUT = ["output write binary", *RUN_FILES, debug_option]


class SectionedCommand(click.Command):
    """A command whose help groups its options under the section titles set by `sections`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        titles = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option):
                record = parameter.get_help_record(ctx)
                titles.setdefault(getattr(parameter, "section", "Help"), []).append(record)
        for title, records in titles.items():
            with formatter.section(title):
                formatter.write_dl(records)


def sections(layout: Any, *kinds: Any, omit: Any = "", defaults: Any = None, **changed: Any) -> Decorator:
    """Return a decorator that adds options grouped by section.

    layout   title -> list of option decorators, strings of setting names separated by spaces, and dataclasses, which
             stand for all settings that they declare and that no string names
    kinds    dataclasses that have the named settings
    omit     names of settings without an option
    defaults, changed  as for `options_of`
    """
    named = {name for parts in layout.values() for part in parts if isinstance(part, str) for name in part.split()}
    named |= {*omit.split()}
    owners = {field.name: kind for kind in (Files, *kinds) for field in dataclasses.fields(kind)}
    changed = {**OF_FILES, **changed}

    def options(part: Any) -> list[Any]:
        names = part.split() if isinstance(part, str) else declared(part) if isinstance(part, type) else None
        if names is None:
            return [part]
        names = [name for name in names if name not in (omit.split() if isinstance(part, str) else named)]
        return [add for name in names for add in options_of(owners[name], name, defaults=defaults, **changed)]

    def decorate(function: Any) -> Any:
        for title, parts in reversed(layout.items()):
            for add in reversed([option for part in parts for option in options(part)]):
                function = add(function)
                function.__click_params__[-1].section = title
        return function

    return decorate
