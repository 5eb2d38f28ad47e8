"""Presets, and options of optimizers and schedules, shared by the commands `lm`, `lstm`, and `nmt`."""

from typing import Any

import click

from tiedtools.base.messages import log
from tiedtools.base.settings import settings_of
from tiedtools.cli.options import option
from tiedtools.cli.spelling import as_options
from tiedtools.network.config import Optimization

OPTIMIZATION = ["optimizer nonmono average_after lr clip", Optimization]


def list_presets(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Option callback: validate the name of a preset, or print all presets and exit."""
    if value is None or value is False:
        return value
    presets = presets_of(ctx)
    if parameter.name == "preset" and value != "help":
        if value not in presets:
            raise click.BadParameter(f"{value!r} is not one of {', '.join(presets)}.", ctx, parameter)
        return value
    for name, (source, values) in presets.items():
        click.echo(f"{name}\n    {source}\n    {as_options(values)}")
    ctx.exit()


def presets_of(ctx: click.Context) -> dict[str, Any]:
    """Return the presets of a command; `lstm` has only the presets without another cell."""
    if ctx.command.name == "nmt":
        from tiedtools.models.translation.config import PRESETS

        return PRESETS
    from tiedtools.models.lm.presets import PRESETS

    return {name: preset for name, preset in PRESETS.items() if ctx.command.name != "lstm" or "cell" not in preset[1]}


def complete_preset(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the preset names that start with `incomplete`, for shell completion."""
    return [name for name in presets_of(ctx) if name.startswith(incomplete)]


PRESET = [
    "preset",
    option(
        "list-presets",
        is_flag=True,
        callback=list_presets,
        is_eager=True,
        expose_value=False,
        show_default=False,
        help="List the presets with their settings and exit.",
    ),
]
CHANGED = dict(preset=dict(callback=list_presets, is_eager=True, shell_complete=complete_preset), size=dict(also="emb"))


def log_preset(ctx: click.Context, config: Any, schedule: Any, reading: dict[str, Any]) -> None:
    """Log the settings of the preset, if there is one, and its settings that explicit options changed."""
    if name := ctx.params["preset"]:
        values, settings = presets_of(ctx)[name][1], settings_of(config, schedule) | reading
        changed = {name: settings[name] for name, value in values.items() if settings[name] != value}
        unchanged = {name: value for name, value in values.items() if name not in changed}
        log.info(f"preset {name}: {as_options(unchanged)}" + (f"; changed: {as_options(changed)}" if changed else ""))


def idle_training(config: Any, schedule: Any) -> dict[str, str]:
    """Return the optimization and training options without effect, a dict: name -> reason."""
    used = {"plateau": ["decay", "min_gain"], "decay": ["decay", "decay_after"], "halving": ["min_improvement"]}
    names = {name for settings in used.values() for name in settings}
    unused = sorted(names - {*used.get(schedule.schedule, [])})
    reasons = dict.fromkeys(unused, f"with --schedule {schedule.schedule}")
    reasons |= {"restart": "with one session"} if schedule.sessions == 1 else {}
    if config.optimizer != "nt-asgd":
        reasons |= dict.fromkeys(("nonmono", "average_after"), "without --optimizer nt-asgd")
    return reasons
