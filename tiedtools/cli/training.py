"""Shared steps of the training commands: turn options into settings, run a Trainer, and report the results."""

import dataclasses
import logging
import os
import sys
from pathlib import Path

import click

from tiedtools.base.messages import log
from tiedtools.cli.options import as_given, given
from tiedtools.cli.report import show_messages
from tiedtools.runs.settings import Files

FILES = {field.name for field in dataclasses.fields(Files)}


def texts_of(ctx):
    """Return the paths of the training texts."""
    return [*ctx.params["texts"], *ctx.params["train"]] or ["-"]


def begin(ctx):
    """Set the level of shown messages from --debug, and name the output if the user did not."""
    show_messages(logging.INFO if ctx.params["debug"] else logging.WARNING)
    options, command = ctx.params, ctx.command.name
    kept = options["save_model"] or options.get("rnnlm")
    if sys.stdout.isatty() and "output" not in given(ctx):
        options["output"] = None
        if not kept:
            name, kind = ("output", "vectors") if command == "w2v" else ("save_model", "model")
            kept = options[name] = unused(ctx)
            note = f"the {kind} will be in {kept}; --{name.replace('_', '-')} FILE chooses another name"
            ctx.meta["note"] = logging.WARNING, note
    if not kept and command != "w2v":
        ctx.meta["note"] = logging.INFO, "the model itself will not be kept; --save-model FILE keeps it"


def unused(ctx):
    """Return a name for the output in the current folder that is not in use, after the first text."""
    from tiedtools.files.output import split_compression

    first = [*ctx.params.get("source", ()), *ctx.params.get("texts", ()), *ctx.params.get("train", ()), "-"][0]
    stem = "stdin" if first == "-" else Path(split_compression(first)[0]).stem
    kind = f"{ctx.command.name}.npz"
    if ctx.command.name == "w2v":
        kind = "vectors.bin" if ctx.params["binary"] else "vectors.txt"
    names = (f"{stem}{number}.{kind}" for number in ["", *(f"-{k}" for k in range(2, 10**6))])
    return next(name for name in names if not os.path.lexists(name))


def settings_of(ctx):
    """Return the settings given on the command line, a dict, under their names in Python."""
    typed, settings, spelled = given(ctx), {}, {}
    for option in ctx.command.params:
        setting = getattr(option, "setting", None)
        if setting and setting not in FILES and option.name in typed:
            settings[setting] = option.values.get(ctx.params[option.name], ctx.params[option.name])
            spelled.setdefault(setting, []).append(option.opts[0])
    for names in spelled.values():
        if len(names) > 1:
            raise click.UsageError(f"{' and '.join(names)} are mutually exclusive; choose one")
    return settings


def files_of(ctx, **changed):
    """Return the fields of Files that the options give; `changed`: values of options that depend on others."""
    values = ctx.params | changed
    options = [option for option in ctx.command.params if getattr(option, "setting", None) in FILES]
    return {o.setting: o.values.get(values[o.name], values[o.name]) for o in options if values[o.name] is not None}


def texts_for(ctx):
    """Return the other texts of a language model, as keyword arguments of LanguageModel.trainer."""
    if ctx.params["valid"] is not None and "valid_share" in given(ctx):
        raise click.UsageError("--valid and --valid-share are mutually exclusive; choose one")
    return {name: ctx.params[name] for name in ("valid", "test", "read_vocab", "no_memory_check")}


def tell_idle(ctx, idle):
    """Warn about given options that have no effect; `idle`: parameter name -> reason."""
    spelled = as_given(ctx)
    for name in idle:
        if name in given(ctx):
            log.warning(f"{spelled[name]} has no effect {idle[name]}")


def train(ctx, trainer, report):
    """Train with a Report and return the model; `tiedtools rerun` receives the manifest through ctx.obj."""
    from tiedtools.runs.record import Record

    spelled, repeated = as_given(ctx), ctx.obj
    options = {name: ctx.params[name] for name in spelled if name in ctx.params}
    report.note = ctx.meta.get("note")
    record = Record(ctx.meta["argv"], options, spelled, repeated and repeated["inputs"])
    try:
        return trainer.train(report, record)
    finally:
        if repeated and record.whole:
            repeated["manifest"] = record.whole
