"""Settings of RNN language models under their public names, those of `tiedtools rnnlm`. Imports nothing heavy."""

from typing import Any

from tiedtools.base.errors import Contradiction
from tiedtools.base.settings import LmReading, Range, checked, with_reading
from tiedtools.models.rnnlm.config import MILLIONS, RnnlmConfig
from tiedtools.training.schedules import Training

ENDLESS = 2**31 - 1  # number of epochs: until validation no longer improves
TRAINING = dict(schedule="halving", lr=0.1, epochs=ENDLESS, clip=0.0, eval_batch=1)


def configure(direct: float = 0.0, size: int | None = None, **given: Any) -> list[Any]:
    """Return [RnnlmConfig, Training, dict of settings for reading texts].

    direct     size of the hash table of n-gram weights, in millions
    size       the same as `hidden`: default 30; 100 with a document vector
    sentences  default: only with a document vector; they are shuffled, and their initial state is learned
    epochs     default: until validation no longer improves
    """
    direct = checked("direct", direct, float, Range(0, MILLIONS))
    if size is not None:
        if "hidden" in given:
            raise Contradiction("`size` and `hidden` are the same; give one of them")
        given["hidden"] = checked("size", size, int, RnnlmConfig.ranges["hidden"])
    document = bool(given.get("doc_dim"))
    sentences = given.get("sentences")
    sentences = document if sentences is None else sentences
    own = dict(sentences=sentences, learn_start=sentences, shuffle=sentences, direct=round(direct * 10**6))
    settings = {"hidden": 100 if document else 30, **TRAINING, **given, **own}
    return with_reading(settings, (RnnlmConfig, Training), LmReading, ("size",))
