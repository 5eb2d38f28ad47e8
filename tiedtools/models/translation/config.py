"""Configuration of a translation model. Imports nothing heavy."""

import dataclasses
from typing import Any

from tiedtools.base.settings import SIDES, Range, Reading, setting, with_reading
from tiedtools.network import config as parts
from tiedtools.training.schedules import Training

VECTORS = "source", *SIDES  # names of the word vectors
SITES = {"standard": ("emb", "annotation", "out")}
DEFAULTS = dict(optimizer="adam", decay=2.0, clip=1.0, epochs=30)


@dataclasses.dataclass(frozen=True)
class TranslationConfig(parts.Computation, parts.Optimization):
    """Configuration of a translation model: DL4MT's, with the weight tying of Press & Wolf 2017, section 3.

    size is the embedding and readout dimension m, hidden the number of units n of each layer. Biases are initially 0.
    """

    size: int = setting(128, Range(1, 10**5))("Embedding dimension.")
    hidden: int = setting(256, Range(1, 10**5))("Hidden units of the encoder, in each direction, and of the decoder.")
    tie: str = setting("none", choices=("none", "decoder", "all"))(
        "Tie the decoder's input and output embeddings, or these and the source embeddings (three-way; the vocabulary"
        " is then joint) (Press & Wolf 2017)."
    )
    init: float | None = setting(None, Range(0))(
        "Standard deviation of initial weights, except square matrices of recurrence and attention, which are"
        " orthogonal.  [default: 1 / sqrt(rows); embeddings: 1 / sqrt(size)]"
    )
    drop_emb: float = parts.dropout("of embeddings.")
    drop_annotation: float = parts.dropout("of the encoder's output.")
    drop_out: float = parts.dropout("of the readout, the input of the softmax.")
    batch: int = setting(32, Range(1, 10**5))("Batch size in sentence pairs.")
    max_length: int = setting(100, Range(1, 10**5), metavar="N")(
        "Omit training pairs with more than N words or symbols on either side."
    )


@dataclasses.dataclass(frozen=True)
class TranslationTraining(Training):
    """Training settings of a translation model."""

    restart: str = setting("best", choices=("best", "last"))(
        "Model that each later session starts from: best, as for `keep`, or last epoch."
    )
    keep: str = setting("best", choices=("best", "last"))(
        "Model to save: best validation BLEU (with `bleu=False`, loss), or last epoch."
    )
    lr: float = setting(parts.RATES["adam"], Range(0, min_open=True))(
        "Initial learning rate.  [default for adadelta and others: 1]"
    )
    eval_batch: int = setting(32, Range(1, 10**5))("Batch size in sentence pairs in validation.")


@dataclasses.dataclass(frozen=True)
class BitextReading(Reading):
    """Settings for reading and validating bitexts; vocabulary limits apply to each side."""

    bpe: int | None = setting(None, Range(0, 10**7), metavar="N")(
        "Split words by byte-pair encoding, N merges learned from both sides together (subword-nmt).  [default: words]"
    )
    min_count: int = setting(1, Range(0))(
        "Replace words, or symbols of `bpe`, that occur less often than this with `<unk>`."
    )
    max_vocab: int | None = setting(None, Range(3), metavar="N")(
        "Keep only the most frequent words or symbols of each side (`tie=all`: of both together): N at most, including"
        " `</s>` and `<unk>`.  [default: no limit]"
    )
    phrases: object | None = setting(None, metavar="LIST")(
        "Join the phrases of LIST, written by `tiedtools phrases --save`, in the source texts.  [default: none]"
    )
    target_field: str | None = setting(None, metavar="NAME")(
        "Field or column of the target, like `field`.  [default: that of the source]"
    )
    bleu: bool = setting(True)(
        "Validate by BLEU of greedy translations, too, and keep the model with the highest; `bleu=False`: that with"
        " the lowest perplexity."
    )


KINDS = TranslationConfig, TranslationTraining, parts.Shorthands, BitextReading


def configure(**options: Any) -> list[Any]:
    """Return [TranslationConfig, Training, dict of settings for reading texts], complete and checked; see `chosen`."""
    settings = parts.chosen(options, DEFAULTS, PRESETS, dict.fromkeys(parts.OPTIMIZERS, 1.0) | parts.RATES, SITES)
    config, training, _, reading = with_reading(settings, *KINDS)
    parts.check_averages(config, training)
    return [config, training, reading]


PRESETS = {
    # DL4MT's session 2, as in Press & Wolf 2017, section 4.3: 300,000 updates, or .8 epochs of the 12 million pairs
    # of WMT 2014 English-French; the batch size is DL4MT's. Add --bpe 89500.
    "press-wolf-nmt": (
        "Press & Wolf 2017, table 8, WMT 2014: the model of DL4MT; add --tie decoder or all",
        dict(
            size=500, hidden=1000, init=0.01, drop_emb=0.0, drop_annotation=0.0, drop_out=0.0, optimizer="adadelta",
            lr=1.0, schedule="constant", clip=1.0, batch=32, max_length=49, epochs=1
        )
    ),
    # Sizes, dropout, and batch come from nmtpytorch's configuration for Multi30k; the other settings are ours.
    "multi30k": (
        "small texts such as Multi30k, as in nmtpytorch; add --tie decoder or all, and --bpe 10000",
        dict(
            size=128, hidden=256, drop_emb=0.3, drop_annotation=0.5, drop_out=0.5, l2=1e-5, optimizer="adam", lr=1e-3,
            schedule="plateau", decay=2.0, clip=1.0, batch=32, epochs=40
        )
    )
}  # fmt: skip
