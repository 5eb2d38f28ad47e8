"""Configuration of a translation model. Imports nothing heavy."""

import dataclasses
from typing import Any, ClassVar

from tiedtools.base.settings import SIDES, Range, Reading, checked, one_of, with_reading
from tiedtools.network.config import (
    OPTIMIZERS,
    PROBABILITY,
    RATES,
    Computation,
    Optimization,
    check_sessions,
    overridden,
)
from tiedtools.training.schedules import Training

VECTORS = "source", *SIDES  # names of the word vectors


@dataclasses.dataclass(frozen=True)
class TranslationConfig(Computation, Optimization):
    """Configuration of a translation model: DL4MT's, with the weight tying of Press & Wolf 2017, section 5.

    size, hidden    embedding and readout dimension m, and units n of the encoder in each direction and of the decoder
    tie             "none"; "decoder": the output embeddings are those of the decoder's input; "all": those of the
                    source, too (three-way weight tying), which needs a joint vocabulary
    init            standard deviation of weights at the start; None: 1 / sqrt(rows), for embeddings 1 / sqrt(m).
                    Square matrices of recurrence and attention start orthogonal, biases at 0
    drop_emb, drop_annotation, drop_out
                    dropout probabilities of embeddings, of the encoder's output, and of the readout
    batch           sentences per batch
    max_length      pairs with a longer sentence on either side, in tokens, are not used for training
    """

    size: int = 128
    hidden: int = 256
    tie: str = "none"
    optimizer: str = "adam"
    init: float | None = None
    drop_emb: float = 0.0
    drop_annotation: float = 0.0
    drop_out: float = 0.0
    batch: int = 32
    max_length: int = 100

    choices: ClassVar[dict] = {"tie": ("none", "decoder", "all")}
    ranges: ClassVar[dict] = {
        "size": Range(1, 10**5),
        "hidden": Range(1, 10**5),
        "init": Range(0),
        "drop_emb": PROBABILITY,
        "drop_annotation": PROBABILITY,
        "drop_out": PROBABILITY,
        "batch": Range(1, 10**5),
        "max_length": Range(1, 10**5),
    }


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


PRESETS = {
    # DL4MT's session 2 as Press & Wolf 2017 used it, section 5: 300,000 updates, which is .8 epochs of the 12 million
    # pairs of WMT 2014 English-French; the batch size is DL4MT's. Add --bpe 89500.
    "press-wolf-nmt": (
        "Press & Wolf 2017, table 8, WMT 2014: the model of DL4MT; add --tie decoder or all",
        dict(
            size=500, hidden=1000, init=0.01, optimizer="adadelta", lr=1.0, schedule="constant", clip=1.0, batch=32,
            max_length=49, epochs=1,
        ),
    ),
    # Sizes, dropout, and batch are those of nmtpytorch's configuration for Multi30k; the rest: ours.
    "multi30k": (
        "small texts such as Multi30k, as in nmtpytorch; add --tie decoder or all, and --bpe 10000",
        dict(
            size=128, hidden=256, drop_emb=0.3, drop_annotation=0.5, drop_out=0.5, l2=1e-5, optimizer="adam", lr=1e-3,
            schedule="plateau", decay=2.0, clip=1.0, batch=32, epochs=40,
        ),
    ),
}  # fmt: skip
