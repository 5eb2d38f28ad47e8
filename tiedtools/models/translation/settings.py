"""Settings of translation models under their public names, those of `tiedtools nmt`. Imports nothing heavy."""

import dataclasses
from typing import Any, ClassVar

from tiedtools.base.settings import Range, Reading, checked, one_of, with_reading
from tiedtools.models.translation.config import TranslationConfig
from tiedtools.models.translation.presets import PRESETS
from tiedtools.network.config import OPTIMIZERS, PROBABILITY
from tiedtools.network.settings import RATES, check_sessions, overridden
from tiedtools.training.schedules import Training

SITES = "drop_emb", "drop_annotation", "drop_out"
DEFAULTS = dict(
    optimizer="adam", lr=RATES["adam"], schedule="plateau", decay=2.0, clip=1.0, epochs=30, eval_batch=32,
    **dict.fromkeys(SITES, 0.3),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class BitextReading(Reading):
    """How bitexts are read and validated; limits of the vocabulary are those of each side.

    bpe   number of merges of byte pair encoding, learned from both sides together; None: words
    bleu  validate by BLEU as well, and keep the model with the highest
    """

    bpe: int | None = None
    bleu: bool = True

    ranges: ClassVar[dict[str, Range]] = {"bpe": Range(0, 10**7), "max_vocab": Range(3)}


def settle(preset: str | None = None, dropout: float | None = None, **given: Any) -> dict[str, Any]:
    """Return all settings that differ from the defaults of TranslationConfig and Training: given ones override.

    preset   name in PRESETS
    dropout  probability at all sites; drop_emb and the like override it
    """
    if preset is not None:
        one_of("preset", preset, list(PRESETS))
    dropout = checked("dropout", dropout, float | None, PROBABILITY)
    values = DEFAULTS | (dict.fromkeys(SITES, 0.0) | PRESETS[preset][1] if preset else {})
    settings = overridden(values, given, dict.fromkeys(OPTIMIZERS, 1.0) | RATES)
    if dropout is not None:
        settings |= {site: given.get(site, dropout) for site in SITES}
    return settings


def configure(**given: Any) -> list[Any]:
    """Return [TranslationConfig, Training, dict of settings for reading texts]; see `settle`."""
    made = with_reading(settle(**given), (TranslationConfig, Training), BitextReading, ("dropout", "preset"))
    check_sessions(*made[:2])
    return made
