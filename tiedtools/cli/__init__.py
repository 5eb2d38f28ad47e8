"""The command line: parse, call, write. Nothing numeric lives here.

A command's module imports only click at its top, so that `--help` answers at once.
"""

import importlib
import sys

import click

from tiedtools import __version__
from tiedtools.errors import TiedtoolsError

COMMANDS = {
    "corpus": "corpus",
    "data": "data",
    "eval-sim": "eval_sim",
    "nn": "nn",
    "vocab": "vocab",
    "w2v": "w2v",
}


class LazyGroup(click.Group):
    """Imports a command when it is asked for, and tells every error in one line."""

    def list_commands(self, ctx):
        return sorted(COMMANDS)

    def get_command(self, ctx, name):
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"tiedtools.cli.{COMMANDS[name]}").command

    def main(self, *args, **kwargs):
        kwargs["standalone_mode"] = False
        try:
            status = super().main(*args, **kwargs)
        except click.UsageError as error:
            where = error.ctx.command_path if error.ctx else "tiedtools"
            status = fail(f"{where}: {error.format_message()} (see {where} --help)", 2)
        except click.ClickException as error:
            status = fail(f"tiedtools: {error.format_message()}", error.exit_code)
        except TiedtoolsError as error:
            status = fail(f"tiedtools: {error}")
        except BrokenPipeError:
            # The reader of our output has gone (`| head`); keep Python from flushing into it again.
            sys.stdout = None
            status = 141
        except OSError as error:
            status = fail(f"tiedtools: {error.filename or ''}{': ' if error.filename else ''}{error.strerror or error}")
        except MemoryError as error:
            status = fail(f"tiedtools: out of memory: {error}")
        except (KeyboardInterrupt, click.Abort):
            status = fail("tiedtools: interrupted", 130)
        sys.exit(status if isinstance(status, int) else 0)


def fail(message, status=1):
    click.echo(" ".join(message.split()), err=True)
    return status


@click.group(cls=LazyGroup, context_settings={"max_content_width": 110})
@click.version_option(__version__, prog_name="tiedtools", message="%(prog)s %(version)s")
def cli():
    """Word vectors and small language models from plain text, on the CPU you have."""
