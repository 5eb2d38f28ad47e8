"""Figures of a run, as messages and JSON show them."""

import json
import math


def perplexity(nats, predictions=1):
    """exp(nats / predictions) of a summed loss; None where nothing was predicted.

    Infinite beyond exp(690), the largest number of model files and checkpoints.
    """
    if predictions <= 0:
        return None
    return math.inf if nats > 690 * predictions else math.exp(nats / predictions)


def in_digits(figure, form=None):
    """A perplexity or an entropy as messages show it: "undefined" for None and NaN, or "infinite".

    form  format specification; None: two decimals, or three digits from a million on
    """
    if figure is None or math.isnan(figure):
        return "undefined"
    if math.isinf(figure):
        return "infinite"
    return format(figure, form or (".2f" if figure < 1e6 else ".3g"))


def finite(value):
    """A number, or a dict or list of such, at any depth, as JSON can hold it: None for NaN and infinities."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_json(value):
    """JSON text, with null for NaN and infinities, which JSON does not have."""
    return json.dumps(finite(value))
