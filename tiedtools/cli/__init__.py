"""The command line: parse, call, write. Nothing numeric lives here.

A command's module imports only click at its top, so that `--help` answers at once.
"""

import difflib
import errno
import importlib
import os
import signal
import sys

import click

from tiedtools import __version__, interrupts, processor
from tiedtools.cli.report import show_messages
from tiedtools.cli.spelling import spelled
from tiedtools.errors import Contradiction, TiedtoolsError, printable, reason

COMMANDS = {
    "analogy": "analogy",
    "bench": "bench",
    "check": "check",
    "compare": "compare",
    "completion": "completion",
    "convert": "convert",
    "corpus": "corpus",
    "data": "data",
    "docvec": "docvec",
    "eval-analogy": "eval_analogy",
    "eval-sim": "eval_sim",
    "generate": "generate",
    "lstm": "lstm",
    "nbest": "nbest",
    "nn": "nn",
    "pca": "pca",
    "plot": "plot",
    "ppl": "ppl",
    "predict": "predict",
    "rerun": "rerun",
    "rnnlm": "rnnlm",
    "similar": "similar",
    "vocab": "vocab",
    "w2v": "w2v",
}
NO_COMMAND = getattr(click.exceptions, "NoArgsIsHelpError", ())  # before click 8.2 its help goes to standard output
FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO  # of an error without a file: what is printed goes nowhere
HELP = "-h"  # as which click reads the beginning of a misspelt -hiden, before it names a letter after it
BROKEN_PIPE = 141  # what a shell reports of a program whose reader has gone (`| head`)


class LazyGroup(click.Group):
    """Imports a command when it is asked for, and tells every error in one line."""

    def list_commands(self, ctx):
        return sorted(COMMANDS)

    def get_command(self, ctx, name):
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"tiedtools.cli.{COMMANDS[name]}").command

    def resolve_command(self, ctx, args):
        ctx.meta["argv"] = list(args)
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            for close in difflib.get_close_matches(args[0].lower().replace("_", "-"), COMMANDS, 1):
                ctx.fail(f"No such command {args[0]!r}. Did you mean {close!r}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx):
        try:
            try:
                return super().invoke(ctx)
            except RuntimeError:
                interrupts.check()  # LLVM's callbacks swallow what a signal raises in them, and the compiler then fails
                raise
        except KeyboardInterrupt as stop:
            number = stop.args[0] if stop.args else signal.SIGINT
            message = stop.args[1] if len(stop.args) > 1 else "interrupted"
            ctx.exit(fail(f"tiedtools: {message}", 128 + number))
        except BrokenPipeError:
            ctx.exit(BROKEN_PIPE)

    def main(self, args=None, **kwargs):  # type: ignore[override]
        args = sys.argv[1:] if args is None else list(args)
        kwargs["standalone_mode"] = False
        show_messages()
        if "_TIEDTOOLS_COMPLETE" in os.environ:
            importlib.import_module("tiedtools.cli.completion")  # which teaches click to offer file names
        try:
            status = super().main(args, **kwargs)
        except NO_COMMAND as error:
            error.show()
            status = 2
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else asked(self, args)[0]
            status = usage(where, whole_name(error, args))
        except click.ClickException as error:
            status = fail(f"tiedtools: {error.format_message()}", error.exit_code)
        except Contradiction as error:
            where, command = asked(self, args)
            status = usage(where, spelled(str(error), command))
        except TiedtoolsError as error:
            status = fail(f"tiedtools: {spelled(str(error), asked(self, args)[1])}")
        except OSError as error:
            where = repr("") if error.filename == "" else error.filename
            where = where or ("standard output: cannot be written" if error.errno in FULL else None)
            status = fail(f"tiedtools: {f'{where}: ' * bool(where)}{reason(error)}")
        except MemoryError as error:
            status = fail(f"tiedtools: out of memory: {error}")
        sys.exit(last_words(status if isinstance(status, int) else 0))


def last_words(status):
    """The exit status when standard output has taken all that is left, or cannot."""
    try:
        sys.stdout.flush()
    except OSError as error:
        with open(os.devnull, "wb") as nowhere:  # for what Python, at its end, tries to write again
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return status or BROKEN_PIPE
        return status or fail(f"tiedtools: standard output: cannot be written: {reason(error)}")
    return status


def asked(group, args):
    """(words, click command) of the command that a command line names: click's parser does not tell where it was."""
    names, command = ["tiedtools"], group
    for word in args:
        found = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if not found:
            break
        names.append(word)
        command = found
    return " ".join(names), command


def whole_name(error, args):
    """The message of a usage error. Of a misspelt `-sise`, click would name only the first letter."""
    if isinstance(error, click.NoSuchOption) and error.ctx and not error.option_name.startswith("--"):
        names = [name for parameter in error.ctx.command.params for name in parameter.opts]
        for word in args:
            if word not in names and word.startswith((error.option_name, HELP)):
                error = click.NoSuchOption(word, possibilities=difflib.get_close_matches(word, names, 1), ctx=error.ctx)
                break
    message = error.format_message()  # in which click names the types of numbers as in its help
    return message.replace("a valid integer range", "a whole number").replace("a valid float range", "a number")


def usage(where, message):
    return fail(f"{where}: {message} (see {where} --help)", 2)


def fail(message, status=1):
    click.echo(printable(message), err=True)
    return status


@click.group(cls=LazyGroup, context_settings={"max_content_width": 110, "help_option_names": ["-h", "-help", "--help"]})
@click.version_option(__version__, "-version", "--version", prog_name="tiedtools", message="%(prog)s %(version)s")
def cli():
    """Word vectors and small language models from plain text, on the CPU you have."""
    processor.check()
    processor.choose_processor()
