"""Settings of LSTM language models under their public names, those of `tiedtools lstm`. Imports nothing heavy."""

from typing import Any

from tiedtools.base.settings import LmReading, checked, one_of, with_reading
from tiedtools.models.lstm.config import LstmConfig
from tiedtools.models.lstm.presets import PRESETS
from tiedtools.network.config import PROBABILITY, SITES
from tiedtools.network.settings import RATES, check_sessions, overridden
from tiedtools.training.schedules import Training

DROPOUT = 0.3  # probability at all sites where neither a preset nor a setting says otherwise


def settle(preset: str | None = None, dropout: float | None = None, **given: Any) -> dict[str, Any]:
    """Return all settings that differ from the defaults of LstmConfig and Training: given ones override the preset.

    preset   name in PRESETS
    dropout  probability at all sites of this kind of dropout; drop_emb and the like override it
    """
    if preset is not None:
        one_of("preset", preset, list(PRESETS))
    dropout = checked("dropout", dropout, float | None, PROBABILITY)
    values = PRESETS[preset][1] if preset else {}
    settings = overridden(values, given, RATES)
    if given.get("subwords") and "tying" not in given and values.get("tying") == "tied":
        settings["tying"] = "untied"  # `reuse` ties composed embeddings
    kind = checked("dropout_kind", settings.get("dropout_kind", "standard"), str)
    sites = SITES.get(kind, ())
    rates = dict.fromkeys(sites, dropout)
    if dropout is None and kind == values.get("dropout_kind", kind):
        rates = {site: values.get(f"drop_{site}", 0.0 if preset else DROPOUT) for site in sites}
    elif dropout is None:
        rates = dict.fromkeys(sites, values.get("drop_out", DROPOUT))
    for site in SITES["gal"]:
        settings[f"drop_{site}"] = given.get(f"drop_{site}", rates.get(site, 0.0))
    return settings


def configure(**given: Any) -> list[Any]:
    """Return [LstmConfig, Training, dict of settings for reading texts]; see `settle`."""
    made = with_reading(settle(**given), (LstmConfig, Training), LmReading, ("dropout", "preset"))
    check_sessions(*made[:2])
    return made
