"""Loading of models of any kind."""

from __future__ import annotations

import os

from tiedtools.api.estimator import Path
from tiedtools.api.language import LanguageModel
from tiedtools.api.word2vec import Word2Vec
from tiedtools.models import load_model


def load(path: Path, threads: int | None = None) -> Word2Vec | LanguageModel:
    """Read a model of any kind, written by `save`, by a command, or by Mikolov's rnnlm.

    threads  number of threads to use; None: all cores

    Raises TiedtoolsError if the file is not a model; word vectors are read by Vectors.read.
    """
    model = load_model(os.fspath(path), threads)
    made = Word2Vec() if model.kind == "word2vec" else LanguageModel(model.kind)
    made.trained = model
    return made
