"""Defaults of settings that depend on others, the same for all batched models. Imports nothing heavy."""

from typing import Any

from tiedtools.base.errors import Contradiction
from tiedtools.base.processor import available_cores
from tiedtools.base.settings import checked
from tiedtools.network.config import AVERAGING

RATES = {"adadelta": 1.0, "adam": 0.001}  # learning rates of optimizers whose steps hardly depend on the loss's scale


def overridden(values: dict[str, Any], given: dict[str, Any], rates: dict[str, float]) -> dict[str, Any]:
    """Return the settings of a preset, overridden by given ones, with those that neither has.

    values, given  settings by name
    rates          learning rates by optimizer, where only the optimizer is given
    """
    threads = given.get("threads")
    optimizer = checked("optimizer", given.get("optimizer", values.get("optimizer")), str | None)
    settings = {"precision": None, **values, **given, "threads": available_cores() if threads is None else threads}
    if optimizer != values.get("optimizer"):
        if optimizer in rates and "lr" not in given:
            settings["lr"] = rates[optimizer]
        if optimizer in AVERAGING and "schedule" not in given:
            settings["schedule"] = "constant"  # with a falling rate, the parameters to average would hardly move
    return settings


def check_sessions(config: Any, training: Any) -> None:
    """Raise Contradiction for an average of parameters over several sessions."""
    if config.averages and training.sessions > 1:
        raise Contradiction(
            f"`optimizer={config.optimizer}` averages the parameters of one session: omit `sessions`, or choose another"
            " `optimizer`"
        )
