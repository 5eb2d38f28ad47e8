"""Configuration of a translation model. Imports nothing heavy."""

import dataclasses
from typing import ClassVar

from tiedtools.base.settings import SIDES, Range
from tiedtools.network.config import PROBABILITY, Computation, Optimization

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
