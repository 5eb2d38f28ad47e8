"""Shared steps of the training commands: turn options into settings, run a Trainer, and report the results."""

import dataclasses
import itertools
import logging
import os
import sys
from pathlib import Path
from typing import Any

import click

from tiedtools.base.settings import Files
from tiedtools.cli.command import warn_idle
from tiedtools.cli.options import as_typed, explicit, option_names
from tiedtools.cli.report import show_messages
from tiedtools.files.manifest import Record, beside
from tiedtools.files.output import parts, split_compression

FILES = {field.name for field in dataclasses.fields(Files)}


def texts_of(ctx: click.Context) -> list[str]:
    """Return the paths of the training texts."""
    return [*ctx.params["texts"], *ctx.params["train"]] or ["-"]


def begin(ctx: click.Context) -> None:
    """Set the level of messages from --debug, and choose a name for the output if the user did not."""
    show_messages(logging.INFO if ctx.params["debug"] else logging.WARNING)
    options, command = ctx.params, ctx.command.name
    model_path = options["save_model"] or options.get("rnnlm")
    if sys.stdout.isatty() and "output" not in explicit(ctx):
        options["output"] = None
        if not model_path:
            name, kind = ("output", "vectors") if command == "w2v" else ("save_model", "model")
            model_path = options[name] = free_name(ctx)
            note = f"the {kind} will be in {model_path}; --{name.replace('_', '-')} FILE chooses another name"
            ctx.meta["note"] = logging.WARNING, note
    if not model_path and command != "w2v":
        ctx.meta["note"] = logging.INFO, "the model will not be saved; --save-model FILE saves it"


def free_name(ctx: click.Context) -> str | None:
    """Return an unused name for the output in the current folder, derived from the first text."""
    first = [*ctx.params.get("source", ()), *ctx.params.get("texts", ()), *ctx.params.get("train", ()), "-"][0]
    stem = "stdin" if first == "-" else Path(split_compression(first)[0]).stem
    kind = f"{ctx.command.name}.npz"
    if ctx.command.name == "w2v":
        kind = "runs" if ctx.params["runs"] else "vectors.bin" if ctx.params["binary"] else "vectors.txt"
    names = (f"{stem}{number}.{kind}" for number in itertools.chain([""], itertools.count(-2, -1)))
    taken = lambda name: os.path.lexists(name) or os.path.lexists(beside(name)) or parts(os.path.realpath(name))[0]
    return next(name for name in names if not taken(name))


def settings_of(ctx: click.Context) -> dict[str, Any]:
    """Return the settings on the command line, a dict by their names in Python."""
    explicit_names, settings, options_of = explicit(ctx), {}, {}
    for option in ctx.command.params:
        setting = getattr(option, "setting", None)
        if setting and setting not in FILES and option.name in explicit_names:
            settings[setting] = option.values.get(ctx.params[option.name], ctx.params[option.name])  # type: ignore[attr-defined]
            options_of.setdefault(setting, []).append(as_typed(ctx, option))
    for names in options_of.values():
        if len(names) > 1:
            raise click.UsageError(f"{' and '.join(names)} are mutually exclusive; choose one")
    return settings


def files_of(ctx: click.Context, **changed: Any) -> dict[str, Any]:
    """Return the fields of Files set by options; `changed`: values of options that depend on other options."""
    values = ctx.params | changed
    options: list[Any] = [option for option in ctx.command.params if getattr(option, "setting", None) in FILES]
    return {o.setting: o.values.get(values[o.name], values[o.name]) for o in options if values[o.name] is not None}


def texts_for(ctx: click.Context) -> dict[str, Any]:
    """Return the other texts of a language model, as keyword arguments of LanguageModel.trainer."""
    if ctx.params["valid"] is not None and "valid_share" in explicit(ctx):
        raise click.UsageError("--valid and --valid-share are mutually exclusive; choose one")
    return {name: ctx.params[name] for name in ("valid", "test", "read_vocab", "no_memory_check")}


def train(ctx: click.Context, trainer: Any, report: Any) -> Any:
    """Train with a Report and return the model; `tiedtools rerun` receives the manifest through ctx.obj."""
    warn_idle(ctx, {} if ctx.params["checkpoint"] else {"checkpoint_minutes": "without --checkpoint"})
    names, rerun = option_names(ctx), ctx.obj
    options = {name: ctx.params[name] for name in names if name in ctx.params}
    report.note = ctx.meta.get("note")
    record = Record(ctx.meta["argv"], options, names, rerun and rerun.pop("inputs", None))
    try:
        return trainer.train(report, record)
    finally:
        if rerun and record.last_manifest:
            rerun["manifests"].append(record.last_manifest)
