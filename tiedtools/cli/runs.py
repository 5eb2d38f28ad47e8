"""What all commands that train share: a run, the files that are there while it goes, and one to resume it from."""

import contextlib
import os

import click

from tiedtools.cli.options import read_once
from tiedtools.errors import Diverged, TiedtoolsError
from tiedtools.output import refuse_clashes

SHARING = {"untied": "untied", "tied": "tied", "linear": "tied+L"}  # a config's word for it, and that of the papers


def resumed(options, outputs, inputs):
    """Whether there is a checkpoint to go on from, as a command's options say, those of RUN_FILES among them.

    outputs, inputs  paths that are written besides (None: not wanted), and read

    Raises click.UsageError and TiedtoolsError for options that do not go together, or would write over something.
    """
    checkpoint, log_json = options["checkpoint"], options["log_json"]
    if options["resume"] and checkpoint is None:
        raise click.UsageError("--resume needs --checkpoint FILE to resume from")
    if "-" in (log_json, checkpoint):
        raise click.UsageError(f"{'--log-json' if log_json == '-' else '--checkpoint'} needs a file of its own")
    read_once(*inputs)
    refuse_clashes([*outputs, checkpoint, log_json], inputs)
    there = checkpoint is not None and os.path.exists(checkpoint)
    if there and not options["resume"]:
        raise TiedtoolsError(f"{checkpoint}: exists: add --resume to go on from it, or remove it to begin anew")
    return there


def open_log(path):
    """A block with the log, None where there is none; it keeps what an earlier run has written until `begin_log`."""
    return contextlib.nullcontext() if path is None else open(path, "a")


def begin_log(log):
    if log:
        with contextlib.suppress(OSError):  # devices and pipes
            log.truncate(0)


def described(kind, parameters, config, itemsize=4):
    """The line that tells of a model: what it is, in words, how many parameters of how many bytes, and its config's."""
    size = f"{parameters:,} parameters ({parameters / 1e6:.2f}M, {parameters * itemsize / 1e6:,.0f} MB)"
    return f"model: {kind}, {size}; {config.threads} threads, seed {config.seed}"


def go(run, report, record):
    """Have a Fit or a Run go on to its end; its figures go to the Record.

    Returns the KeyboardInterrupt or Diverged that ended it before, to be raised when all that there is has been
    written; None where nothing did.
    """
    stopped = None
    try:
        run.go(report)
    except (KeyboardInterrupt, Diverged) as stop:
        stopped = stop
    finally:
        report.close()
    record.figures |= run.figures
    return stopped
