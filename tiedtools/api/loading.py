"""Loading of models of any kind."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from tiedtools.api.estimator import Path
from tiedtools.api.language import LanguageModel
from tiedtools.api.translation import Translator
from tiedtools.api.word2vec import Word2Vec
from tiedtools.errors import THREADS, checked
from tiedtools.models import load_model

OTHERS: dict[str, type[Word2Vec | Translator]] = {"word2vec": Word2Vec, "nmt": Translator}  # not language models


def load(path: Path, threads: int | None = None) -> Word2Vec | LanguageModel | Translator:
    """Read a model of any kind, written by `save`, by a command, or by Mikolov's rnnlm.

    threads  number of threads to use; None: all cores

    `fit` trains a new model with the configuration of the one read; training settings of language models, such as lr,
    and `threads`, unless given here, are the defaults.

    Raises TiedtoolsError if the file is not a model; word vectors are read by Vectors.read.
    """
    model = load_model(os.fspath(path), checked("threads", threads, int | None, THREADS))
    settings = settings_of(model.config)
    if threads is None:
        del settings["threads"]
    made: Word2Vec | LanguageModel | Translator
    if model.kind in OTHERS:
        made = OTHERS[model.kind](**settings)
    else:
        made = LanguageModel(model.kind, **settings)
    made.trained = model
    return made


def settings_of(config: Any) -> dict[str, Any]:
    """Return all settings of a configuration: of those left out, some would have other defaults than its fields."""
    settings = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    if "direct" in settings:
        settings["direct"] /= 10**6  # rnnlm's option is in millions
    return settings
