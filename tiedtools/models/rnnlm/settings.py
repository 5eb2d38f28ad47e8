"""Settings of RNN language models under their public names, those of `tiedtools rnnlm`. Imports nothing heavy."""

from typing import Any

from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.training.schedules import Training
from tiedtools.training.settings import READING, sort_out

TRAINING = dict(schedule="halving", lr=0.1, epochs=2**31 - 1, clip=0.0, eval_batch=1)


def configure(direct: float = 0.0, **given: Any) -> list[Any]:
    """Return [RnnlmConfig, Training, dict of settings for reading texts].

    direct     size of the hash table of n-gram weights, in millions
    hidden     default 30; 100 with a document vector
    sentences  default: only with a document vector; they are shuffled, and their initial state is learned
    epochs     default: until validation no longer improves
    """
    document = bool(given.get("doc_dim"))
    sentences = given.get("sentences")
    sentences = document if sentences is None else sentences
    own = dict(sentences=sentences, learn_start=sentences, shuffle=sentences, direct=round(direct * 10**6))
    settings = {"hidden": 100 if document else 30, **TRAINING, **given, **own}
    return sort_out(settings, (RnnlmConfig, Training), (*READING, "valid_share"))
