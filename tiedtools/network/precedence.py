"""Precedence of settings: the caller's over a preset's over defaults. Imports nothing heavy."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from tiedtools.base.errors import Contradiction
from tiedtools.base.processor import available_cores
from tiedtools.base.settings import Checked, checked, one_of, setting
from tiedtools.network.config import AVERAGING, PROBABILITY

RATES = {"adadelta": 1.0, "adam": 0.001}  # learning rates of optimizers that hardly depend on the loss scale
DROPOUT = 0.3  # probability at all sites where neither a preset nor the caller says otherwise


@dataclasses.dataclass(frozen=True)
class Shorthands(Checked):
    """Settings that stand for several others."""

    preset: str | None = setting(None, metavar="NAME")(
        "Use a paper's settings; options given explicitly override them. `help` lists the presets."
    )
    dropout: float | None = setting(None, PROBABILITY, metavar="P")(
        "Dropout probability at all sites, not of `drop_weights`; the --drop options set it for one site."
    )


def chosen(
    options: dict[str, Any], defaults: Mapping[str, Any], presets: Mapping[str, tuple[str, Mapping[str, Any]]],
    rates: dict[str, float], sites: Mapping[str, tuple[str, ...]],
) -> dict[str, Any]:  # fmt: skip
    """Return the settings of a run that differ from the defaults of fields.

    Precedence, from lowest to highest: defaults of the family, preset, implications of a chosen setting, caller.

    options   the settings that the caller chose, by name
    defaults  the model family's defaults, where they differ from the defaults of the fields
    presets   name -> (source, settings); dropout sites that a preset omits are 0
    rates     learning rates that optimizers imply
    sites     dropout kind -> its sites
    """
    preset, dropout = options.get("preset"), options.get("dropout")
    if preset is not None:
        one_of("preset", preset, list(presets))
    checked("dropout", dropout, float | None, PROBABILITY)
    values = {"precision": None, **defaults, **(presets[preset][1] if preset else {})}
    caller = {name: value for name, value in options.items() if name not in ("preset", "dropout")}
    if caller.get("threads") is None:
        caller["threads"] = available_cores()

    implied: dict[str, Any] = {}
    optimizer = checked("optimizer", caller.get("optimizer", values.get("optimizer")), str | None)
    if optimizer != values.get("optimizer"):
        implied |= {"lr": rates[optimizer]} if optimizer in rates else {}
        # With a falling rate, the parameters to average would hardly move.
        implied |= {"schedule": "constant"} if optimizer in AVERAGING else {}

    before = values.get("dropout_kind", "standard")
    kind = checked("dropout_kind", caller.get("dropout_kind", before), str)
    for name in {f"drop_{site}" for sites_of_kind in sites.values() for site in sites_of_kind}:
        if name.removeprefix("drop_") not in sites.get(kind, ()):
            implied[name] = 0.0
        elif dropout is not None:
            implied[name] = dropout
        elif kind == before:
            implied[name] = values.get(name, 0.0 if preset else DROPOUT)
        else:
            implied[name] = values.get("drop_out", DROPOUT)
    return values | implied | caller


def check_sessions(config: Any, training: Any) -> None:
    """Raise Contradiction for an average of parameters over several sessions."""
    if config.averages and training.sessions > 1:
        raise Contradiction(
            f"`optimizer={config.optimizer}` averages the parameters of one session: omit `sessions`, or choose another"
            " `optimizer`"
        )
