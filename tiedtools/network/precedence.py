"""Precedence of settings: what a run uses of defaults, preset, and caller. Imports nothing heavy."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from tiedtools.base.errors import Contradiction
from tiedtools.base.processor import available_cores
from tiedtools.base.settings import Checked, checked, one_of, setting
from tiedtools.network.config import AVERAGING, PROBABILITY

RATES = {"adadelta": 1.0, "adam": 0.001}  # learning rates of optimizers whose steps hardly depend on the loss's scale
DROPOUT = 0.3  # probability at all sites where neither a preset nor the caller says otherwise


@dataclasses.dataclass(frozen=True)
class Shorthands(Checked):
    """Settings that stand for several others."""

    preset: str | None = setting(
        None,
        "Use a paper's settings; options given explicitly override them. `help` lists the presets.",
        metavar="NAME",
    )
    dropout: float | None = setting(
        None,
        "Dropout probability at all sites, not of `drop_weights`; the --drop options set it for one site.",
        PROBABILITY,
        metavar="P",
    )


def chosen(
    given: dict[str, Any],
    defaults: Mapping[str, Any],
    presets: Mapping[str, tuple[str, Mapping[str, Any]]],
    rates: dict[str, float],
    sites: Mapping[str, tuple[str, ...]],
) -> dict[str, Any]:
    """Return the settings of a run that differ from the defaults of fields.

    In order of precedence, from the lowest: defaults of the family, preset, what a chosen setting implies, caller.

    given     the settings that the caller chose, by name
    defaults  settings in which the family of models differs from the defaults of the fields
    presets   name -> (source, settings); dropout sites that a preset omits are 0
    rates     learning rates that optimizers imply
    sites     dropout kind -> its sites
    """
    preset, dropout = given.get("preset"), given.get("dropout")
    if preset is not None:
        one_of("preset", preset, list(presets))
    checked("dropout", dropout, float | None, PROBABILITY)
    values = {"precision": None, **defaults, **(presets[preset][1] if preset else {})}
    caller = {name: value for name, value in given.items() if name not in ("preset", "dropout")}
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
    for name in {f"drop_{site}" for of_kind in sites.values() for site in of_kind}:
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
