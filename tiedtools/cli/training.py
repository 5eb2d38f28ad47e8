"""Shared steps of the training commands: turn options into settings, run a Trainer, and report the results."""

import logging
import sys

import click

from tiedtools.cli.options import as_given, from_options, given
from tiedtools.cli.report import show_messages
from tiedtools.messages import log

READING = "valid", "test", "valid_share", "min_count", "max_vocab", "read_vocab", "errors"


def texts_of(ctx):
    """Return the paths of the training texts."""
    return [*ctx.params["texts"], *ctx.params["train"]] or ["-"]


def begin(ctx):
    """Set the level of shown messages from --debug."""
    show_messages(logging.INFO if ctx.params["debug"] else logging.WARNING)


def files_of(ctx, **settled):
    """Return the Files given by the options; `settled` overrides options whose values depend on others."""
    from tiedtools.training.trainer import Files

    options = dict(ctx.params, **settled)
    if options["output"] == "-" and "output" not in given(ctx) and options["save_model"] and sys.stdout.isatty():
        log.info("vectors are not written to the terminal; use --output FILE to save them or --output - to print them")
        options["output"] = None
    return from_options(Files, options)


def tell_idle(ctx, idle):
    """Warn about given options that have no effect; `idle`: parameter name -> reason."""
    spelled = as_given(ctx)
    for name in idle:
        if name in given(ctx):
            log.warning(f"{spelled[name]} has no effect {idle[name]}")


def train(ctx, trainer, report):
    """Train with a Report and return the model; `tiedtools rerun` receives the manifest through ctx.obj."""
    from tiedtools.training.record import Call

    spelled, repeated = as_given(ctx), ctx.obj
    options = {name: ctx.params[name] for name in spelled if name in ctx.params}
    call = Call(ctx.meta["argv"], options, spelled, repeated and repeated["inputs"])
    try:
        return trainer.train(report, call)
    finally:
        record = getattr(trainer, "record", None)
        if repeated and record and record.whole:
            repeated["manifest"] = record.whole


def reading_of(ctx):
    """Return the keyword arguments of LmText.read."""
    if ctx.params["valid"] is not None and "valid_share" in given(ctx):
        raise click.UsageError("--valid and --valid-share are mutually exclusive; choose one")
    return {name: ctx.params[name] for name in READING}
