"""Decorators that make a command of a function that returns or yields answers, and group its options by section."""

import contextlib
import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

import click

from tiedtools.base.messages import log, to_json
from tiedtools.base.settings import NONE, Files
from tiedtools.cli.options import OF_FILES, Decorator, as_typed, declared, explicit, options_of
from tiedtools.files.output import STDOUT, open_packed, refuse_clashes
from tiedtools.parallel import ranks
from tiedtools.text.sources import read_once


@dataclasses.dataclass
class Answer:
    """Output of a command.

    text    printed without --json: a string, bytes, or a function that writes to the binary file passed to it
    rows    printed with --json: an object, or several, one per line
    status  exit status; the command exits with the maximum over its answers
    """

    text: str | bytes | Callable[[BinaryIO], object] = ""
    rows: dict[str, Any] | Iterable[dict[str, Any]] = ()
    status: int = 0


def command(
    name: str, short_help: str | None, group: click.Group | None = None, reads: str = "", writes: str = "",
    gather: Callable[[list[Any]], Any] | None = None, without_json: dict[str, str] | None = None, **attributes: Any
) -> Callable[[Callable[..., Any]], click.Command]:  # fmt: skip
    """Return a decorator that makes a command of a function, whose docstring is the help.

    The function returns an Answer, yields several, each printed at once, or returns None. It has no parameters for
    `--json` (`json_option`) and `--output`, the file that answers are written to.

    group         group of this subcommand; None: a top-level command
    reads         names of parameters, separated by spaces, that are input paths; only one of them may be standard input
    writes        names of parameters that are output paths, which must differ from each other and from all inputs
    gather        function from the list of the rows of all answers to the JSON objects of the command; None: print the
                  rows of each answer immediately
    without_json  parameters that cannot be combined with `--json` -> message of the usage error
    attributes    further arguments of click.Command
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        @functools.wraps(function)
        def run(as_json: bool = False, **options: Any) -> int:
            if "texts" in options:
                options["texts"] = [*options["texts"], *options.pop("train", ())] or ["-"]
            for conflict, problem in (without_json or {}).items():
                if as_json and options[conflict]:
                    raise click.UsageError(problem)
            inputs = paths(options, reads)
            inputs += [options["phrases"]] if options.get("phrases") not in (None, NONE) else []
            read_once(*inputs)
            outputs = paths(options, writes)
            output = options.pop("output") if "output" in writes.split() else None
            printed = ["-"] * (output is None and not {*outputs} & {*STDOUT})  # commands refuse it for other files
            refuse_clashes([*printed, *outputs], inputs)
            if ranks.current and ranks.current.rank:
                output = None  # only rank 0 writes
            with contextlib.nullcontext() if output is None else open_packed(output) as file:
                answers: Any = function(**options)
                answers = answers if inspect.isgenerator(answers) else (one for one in [answers or Answer()])
                with contextlib.closing(answers):
                    return show(answers, file, as_json, gather, flush=output is None or output in STDOUT)

        return (group.command if group else click.command)(name, short_help=short_help, **attributes)(run)

    return decorate


def show(answers: Iterable[Answer], opened: Any, as_json: bool, gather: Callable[..., Any] | None, flush: bool) -> int:
    """Print answers to an open binary file, None for standard output, and return the exit status."""
    file, status = opened or sys.stdout.buffer, 0
    if as_json and gather:
        every = list(answers)
        answers = [Answer("", gather([answer.rows for answer in every]), max(answer.status for answer in every))]
    for answer in answers:
        text, status = answer.text, max(status, answer.status)
        if as_json:
            for row in [answer.rows] if isinstance(answer.rows, dict) else answer.rows:
                file.write(f"{to_json(row)}\n".encode())
        elif callable(text):
            text(file)
        else:
            file.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))
        if flush:
            file.flush()
    return status


def paths(options: dict[str, Any], names: str) -> list[str]:
    """Return the paths in the parameters `names`: strings, lists of strings, or None."""
    values = [options[name] for name in names.split()]
    return [path for value in values for path in ([value] if isinstance(value, str) else value or ())]


def table(columns: list[str], lines: Iterable[dict[str, Any]], left: int = 1, file: bool = True) -> str:
    """Format columns: the first `left` to the left, and the last, if it is a `file` name, which may have spaces.

    Floats have 4 decimals; None and NaN are `-`.
    """
    as_cell = lambda x: "-" if x is None or x != x else f"{x:.4f}" if isinstance(x, float) else str(x)
    cells = [columns] + [[as_cell(line.get(column)) for column in columns] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells)]
    forms = ["<"] * left + [">"] * (len(columns) - left - file) + ["<"] * file
    rows = ([f"{cell:{form}{width}}" for cell, form, width in zip(row, forms, widths)] for row in cells)
    return "".join("  ".join(row).rstrip() + "\n" for row in rows)


def tables(*parts: tuple[list[str], list[dict[str, Any]]]) -> str:
    """Format tables, (columns, lines) each, with an empty line between them, without those that have no lines."""
    return "\n".join(table(*part) for part in parts if part[1])


def warn_idle(ctx: click.Context, idle: dict[str, str]) -> None:
    """Log a warning for explicit options without effect; `idle`: parameter name -> reason."""
    parameters = {str(parameter.name): parameter for parameter in ctx.command.params}
    for name in idle:
        if name in explicit(ctx):
            log.warning(f"{as_typed(ctx, parameters[name])} has no effect {idle[name]}")


class SectionedCommand(click.Command):
    """A command whose help groups its options under the section titles set by `sections`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        titles = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option):
                titles.setdefault(getattr(parameter, "section", "Help"), []).append(parameter.get_help_record(ctx))
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
