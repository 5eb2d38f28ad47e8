"""The library's logger, "tiedtools", and formatting of figures for messages and JSON.

Applications decide whether to show messages of the logger.
"""

import json
import logging
import math
from typing import Any

log = logging.getLogger("tiedtools")


def perplexity(nats: float, predictions: int = 1) -> float | None:
    """Return the perplexity exp(nats / predictions) of a summed loss in nats; None without predictions.

    Infinite beyond exp(690), the largest number allowed in model files and checkpoints.
    """
    if predictions <= 0:
        return None
    return math.inf if nats > 690 * predictions else math.exp(nats / predictions)


def in_digits(figure: float | None, form: str | None = None) -> str:
    """Format a perplexity or an entropy for messages: "undefined" for None and NaN, "infinite" for infinity.

    form  format specification; None: two decimals, or three significant digits from one million up
    """
    if figure is None or math.isnan(figure):
        return "undefined"
    if math.isinf(figure):
        return "infinite"
    return format(figure, form or (".2f" if figure < 1e6 else ".3g"))


def finite(value: Any) -> Any:
    """Replace NaN and infinities by None in a number or in nested dicts and lists, since JSON cannot represent them."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_json(value: Any) -> str:
    """Return a value as JSON, with null for NaN and infinities, which JSON cannot represent."""
    return json.dumps(finite(value))
