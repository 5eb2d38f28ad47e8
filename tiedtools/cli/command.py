"""Decorator that makes a command of a function that returns or yields answers."""

import contextlib
import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Generator, Iterable
from typing import Any, BinaryIO

import click

from tiedtools.base.messages import to_json
from tiedtools.cli.options import Decorator, option
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
            read_once(*inputs)
            refuse_clashes(paths(options, writes), inputs)
            output = options.pop("output") if "output" in writes.split() else None
            if ranks.current and ranks.current.rank:
                output = None  # only rank 0 writes
            with contextlib.nullcontext() if output is None else open_packed(output) as file:
                with contextlib.closing(iterate(function(**options))) as answers:
                    return show(answers, file, as_json, gather, flush=output is None or output in STDOUT)

        return (group.command if group else click.command)(name, short_help=short_help, **attributes)(run)

    return decorate


def integer(
    name: str, default: Any, help: str, least: int = 1, most: int | None = None, metavar: str | None = "N",
    **attributes: Any
) -> Decorator:  # fmt: skip
    """Return a decorator that adds an option for an integer in the range `least` to `most`."""
    return option(name, type=click.IntRange(least, most), default=default, metavar=metavar, help=help, **attributes)


def choice(name: str, choices: str, help: str, default: str | None = None) -> Decorator:
    """Return a decorator that adds an option for one of `choices`, words separated by spaces."""
    return option(name, type=click.Choice(choices.split()), default=default, help=help)


def show(answers: Iterable[Answer], opened: Any, as_json: bool, gather: Callable[..., Any] | None, flush: bool) -> int:
    """Print answers to an open binary file, None for standard output, and return the exit status."""
    file = opened or sys.stdout.buffer
    all_rows, status = [], 0
    for answer in answers:
        status = max(status, answer.status)
        if not as_json:
            write_text(file, answer.text)
        elif gather:
            all_rows.append(answer.rows)
        else:
            write_rows(file, answer.rows)
        if flush:
            file.flush()
    if gather and as_json:
        write_rows(file, gather(all_rows))
    return status


def iterate(answers: Any) -> Generator[Answer, None, None]:
    """Yield the answers of a function that returns an answer or None, or yields answers."""
    if inspect.isgenerator(answers):
        with contextlib.closing(answers):
            yield from answers
    else:
        yield answers or Answer()


def paths(options: dict[str, Any], names: str) -> list[str]:
    """Return the paths in the parameters `names`: strings, lists of strings, or None."""
    values = [options[name] for name in names.split()]
    return [path for value in values for path in ([value] if isinstance(value, str) else value or ())]


def write_text(file: BinaryIO, text: Any) -> None:
    if callable(text):
        text(file)
    else:
        file.write(text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape"))


def write_rows(file: BinaryIO, rows: dict[str, Any] | Iterable[dict[str, Any]]) -> None:
    for row in [rows] if isinstance(rows, dict) else rows:
        file.write(f"{to_json(row)}\n".encode())


def table(columns: list[str], lines: Iterable[dict[str, Any]], left: int = 1, file: bool = True) -> str:
    """Format columns: the first `left` to the left, and the last, if it is a `file` name, which may have spaces."""
    cells = [columns] + [[as_cell(line.get(column)) for column in columns] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells)]
    forms = ["<"] * left + [">"] * (len(columns) - left - file) + ["<"] * file
    rows = ([f"{cell:{form}{width}}" for cell, form, width in zip(row, forms, widths)] for row in cells)
    return "".join("  ".join(row).rstrip() + "\n" for row in rows)


def as_cell(value: Any) -> str:
    """Format a table cell: floats with 4 decimals, None as `-`."""
    return "-" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)
