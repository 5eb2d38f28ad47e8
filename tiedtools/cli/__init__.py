"""The command-line interface: parse arguments, call the library, write results. It contains no numeric code.

Modules of commands import heavy libraries only within functions, so that `--help` is fast.
"""

import errno
import importlib.util
import os
import pkgutil
import re
import signal
import sys
from collections.abc import Collection
from typing import Any

import click

from tiedtools.base import aliases, interrupts, processor
from tiedtools.base.errors import Contradiction, TiedtoolsError, printable, reason
from tiedtools.base.messages import log
from tiedtools.base.version import __version__
from tiedtools.cli.options import spelled
from tiedtools.cli.report import show_messages
from tiedtools.parallel import ranks

COMMANDS = {  # command -> module:function in cli/; the help lists them in this order
    "w2v": "w2v:command", "lm": "networks:lm", "lstm": "networks:lstm", "rnnlm": "rnnlm:command", "nmt": "networks:nmt",
    "rerun": "rerun:rerun",
    "nn": "queries:nn", "analogy": "queries:analogy", "docvec": "queries:docvec", "similar": "queries:similar",
    "predict": "language:predict", "generate": "language:generate", "nbest": "language:nbest",
    "translate": "language:translate",
    "eval-analogy": "evaluate:eval_analogy", "eval-sim": "evaluate:eval_sim", "compare": "evaluate:compare",
    "cosine": "uncertainty:cosine", "stability": "uncertainty:stability", "shift": "change:shift",
    "align": "change:align",
    "pca": "vectors:pca", "ppl": "language:ppl", "bleu": "language:bleu", "plot": "plot:plot",
    "explore": "plot:explore",
    "data": "texts:data", "tokenize": "texts:tokenize", "vocab": "texts:vocab", "phrases": "texts:phrases",
    "segment": "texts:segment",
    "check": "vectors:check", "convert": "vectors:convert", "warmup": "setup:warmup", "completion": "setup:completion",
}  # fmt: skip
SECTIONS = {"w2v": "Train", "nn": "Use", "eval-analogy": "Evaluate", "data": "Prepare"}  # first command -> title
NO_COMMAND = getattr(click.exceptions, "NoArgsIsHelpError", ())  # click before 8.2 prints this help to stdout
PARALLEL = ["w2v"], ["vocab"]  # commands that support several ranks
FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO  # without a file name: standard output cannot be written
HELP = "-h"  # click parses a misspelled -hiden as -h followed by other letters
BROKEN_PIPE = 141  # exit status when the reader of a pipe has exited (`| head`)


class LazyGroup(click.Group):
    """A click group that imports commands on demand and reports every error in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> Any:
        if name not in COMMANDS:
            return None
        return pkgutil.resolve_name(f"tiedtools.cli.{COMMANDS[name]}")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        rows = [(f"{name:{width}}", self.get_command(ctx, name).get_short_help_str()) for name in COMMANDS]
        starts = [list(COMMANDS).index(name) for name in SECTIONS]
        for title, start, end in zip(SECTIONS.values(), starts, [*starts[1:], None]):
            with formatter.section(title):
                formatter.write_dl(rows[start:end])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        ctx.meta["argv"] = list(args)
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}.{hint(args[0], COMMANDS, aliases.COMMANDS)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            try:
                return super().invoke(ctx)
            except RuntimeError:
                interrupts.check()  # LLVM's callbacks swallow an exception raised by a signal; the compiler then fails
                raise
        except KeyboardInterrupt as stop:
            number = stop.args[0] if stop.args else signal.SIGINT
            message = stop.args[1] if len(stop.args) > 1 else "interrupted"
            ctx.exit(fail(f"tiedtools: {spelled(message, self)}", 128 + number))
        except BrokenPipeError:
            ctx.exit(BROKEN_PIPE)

    def main(self, args: Any = None, **kwargs: Any) -> None:  # type: ignore[override]
        args = sys.argv[1:] if args is None else list(args)
        kwargs["standalone_mode"] = False
        show_messages()
        if "_TIEDTOOLS_COMPLETE" in os.environ:
            importlib.import_module("tiedtools.cli.setup")  # registers completion of file names
        try:
            with interrupts.deferred():
                connect_ranks(args)
            status = super().main(args, **kwargs)
            if ranks.current and not ranks.current.parted:
                ranks.current.part()
        except KeyboardInterrupt as stop:  # while the ranks connected
            if not ranks.current:
                raise
            status = fail("tiedtools: interrupted", 128 + stop.args[0])
        except click.Abort:  # raised by click after a signal while it parsed the command line
            status = fail("tiedtools: interrupted", 128 + (interrupts.received or [signal.SIGINT])[0])
        except NO_COMMAND as error:
            error.show()
            status = 2
        except click.UsageError as error:
            source = error.ctx.command_path if error.ctx else named_command(self, args)[0]
            status = usage(source, usage_message(error, args))
        except click.ClickException as error:
            status = fail(f"tiedtools: {error.format_message()}", error.exit_code)
        except TiedtoolsError as error:
            source, command = named_command(self, args)
            message = spelled(str(error), command)
            status = usage(source, message) if isinstance(error, Contradiction) else fail(f"tiedtools: {message}")
        except OSError as error:
            source = repr("") if error.filename == "" else error.filename
            unnamed = dict.fromkeys(FULL, "standard output: cannot be written") | {errno.ENOENT: "the current folder"}
            source = source or unnamed.get(error.errno or 0)
            status = fail(f"tiedtools: {f'{source}: ' * bool(source)}{reason(error)}")
        except MemoryError as error:
            status = fail(f"tiedtools: out of memory: {error}")
        except RuntimeError as error:
            if "start new thread" not in str(error):
                raise
            status = fail("tiedtools: the system cannot start a thread; raise its limits (ulimit -u, ulimit -v)")
        sys.exit(flush_output(status if isinstance(status, int) else 0))


def flush_output(status: int) -> int:
    """Flush standard output and return the exit status, nonzero if the flush fails."""
    try:
        sys.stdout.flush()
    except OSError as error:
        with open(os.devnull, "wb") as nowhere:  # Python retries the flush at exit
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        broken, problem = isinstance(error, BrokenPipeError), f"standard output: cannot be written: {reason(error)}"
        status = status or (BROKEN_PIPE if broken else fail(f"tiedtools: {problem}"))
    return status


def named_command(group: click.Command, args: list[str]) -> tuple[str, click.Command]:
    """Return the (command path, click command) of a command line, which click's parser does not report."""
    names, command = ["tiedtools"], group
    for word in args:
        subcommand = command.get_command(click.Context(command), word) if isinstance(command, click.Group) else None
        if not subcommand:
            break
        names.append(word)
        command = subcommand
    return " ".join(names), command


def usage_message(error: click.UsageError, args: list[str]) -> str:
    """Return the message of a click.UsageError in one line, with a suggestion for an unknown option."""
    if isinstance(error, click.NoSuchOption) and error.ctx:
        options = [name for parameter in error.ctx.command.params for name in parameter.opts]
        words, typed = (word.partition("=")[0] for word in args), error.option_name
        if not typed.startswith("--"):  # click names only the first letter of `-sise`
            typed = next((word for word in words if word not in options and word.startswith((typed, HELP))), typed)
        names = [name.removeprefix("--") for name in options if name.startswith("--")]
        return f"No such option {typed!r}.{hint(typed, names, aliases.OPTIONS)}"
    message = error.format_message().replace("\n\t", " ")  # the choices of a missing argument
    # click writes the names of its types
    return message.replace("a valid integer range", "a whole number").replace("a valid float range", "a number")


def hint(typed: str, names: Collection[str], table: dict[str, str]) -> str:
    """Return " " and a sentence that suggests one of `names` (without dashes) for an unknown name, or ""."""
    name = re.sub("(?<=[a-z])(?=[A-Z])", "-", typed.strip("-"))
    close = aliases.closest(name, names, table)
    close = "--" * (typed.startswith("-") and close in names) + close
    return f" {close}" if close.endswith(".") else f" Did you mean {close!r}?" if close else ""


def usage(source: str, message: str) -> int:
    """Print a usage error for the command path `source` and return exit status 2."""
    return fail(f"{source}: {message} (see {source} --help)", 2)


def fail(message: str, status: int = 1) -> int:
    """Print an error to stderr and return the exit status. If a single rank fails, end all ranks."""
    if ranks.current and not ranks.current.parted:
        ranks.current.abort(message.removeprefix("tiedtools").lstrip(": "), status)
    if not (ranks.current and ranks.current.rank):
        click.echo(printable(message), err=True)
    return status


def connect_ranks(args: list[str]) -> None:
    """Connect to the other ranks if an MPI launcher started this process; only rank 0 writes output."""
    started = ranks.launched()
    if args[:1] not in PARALLEL or started is None or started == 1 and not importlib.util.find_spec("mpi4py"):
        return
    if ranks.start(args).rank:
        log.disabled = True
        sys.stdout = open(os.devnull, "w")


@click.group(cls=LazyGroup, context_settings={"max_content_width": 110, "help_option_names": ["-h", "-help", "--help"]})
@click.version_option(__version__, "-version", "--version", prog_name="tiedtools", message="%(prog)s %(version)s")
def cli() -> None:
    """Train and evaluate word vectors, small language models, and translation models on the CPU.

    \b
    Start with:  tiedtools w2v TEXT -output vectors.txt
                 tiedtools nn vectors.txt WORD
    `tiedtools COMMAND --help` describes a command.
    """
    processor.check()
    processor.choose_processor()
