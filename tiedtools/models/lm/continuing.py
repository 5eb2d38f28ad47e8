"""Training that continues from a recurrent language model."""

from dataclasses import asdict, fields
from typing import Any

import numpy as np

from tiedtools.base.settings import LmContinuation
from tiedtools.models.continuing import SPLIT, Source, identity, rows_of
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.network.config import Composition
from tiedtools.training.schedules import Training

# Settings that determine names and shapes of parameters, and the subwords of words.
SHAPE = [field.name for field in fields(Composition)]
SHAPE += "cell size hidden layers layer_widths depth tying linear_bias projection output_bias".split()


def read_source(path: str) -> Source:
    """Read a language model to continue from. Raises TiedtoolsError for other files, such as checkpoints."""
    model = LstmLM.load(path)
    names = {field.name for kind in (LstmConfig, Training) for field in fields(kind)} - {"seed", "threads", "precision"}
    settings = asdict(model.config) | (model.settings or {}) | {"segmentation": None}
    settings = {name: value for name, value in settings.items() if name in names | {*SPLIT}}
    return Source(path, model.vocab, dict(model.params.owners()), settings)


def continued(source: Source, vocab: Any, config: LstmConfig, continuation: LmContinuation) -> LstmLM:
    """Return a model for a Vocab with all words and subwords of a Source, whose parameters it has; others are random.

    If new words have more syllables than the known ones, the projection has random rows for these positions.
    """
    model = LstmLM(vocab, config, frozen=continuation.freeze is not None)
    words, units = rows_of(source.vocab, vocab), None
    if config.subwords:
        units = np.array([vocab.subwords.index[unit] - 1 for unit in source.vocab.subwords.units[1:]])
    for name, array in model.params.owners():
        known = source.arrays[name]
        if name in ("emb_in", "emb_out", "emb_out.b"):
            array[words] = known
        elif name.endswith(".emb.E"):
            array[units] = known
        else:
            array[: len(known)] = known
    model.params.changed()
    model.continued = identity(source.path, continuation)
    return model
