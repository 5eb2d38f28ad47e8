"""Loading of models of any kind."""

from __future__ import annotations

import os

from tiedtools.api.estimator import Path
from tiedtools.api.language import LanguageModel
from tiedtools.api.translation import Translator
from tiedtools.api.word2vec import Word2Vec
from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores
from tiedtools.base.settings import THREADS, checked, settings_of
from tiedtools.files.families import FAMILIES
from tiedtools.files.modelfile import WRONG, corrupt
from tiedtools.models.families import load_model


def load(path: Path, threads: int | None = None) -> Word2Vec | LanguageModel | Translator:
    """Read a model of any kind, written by `save`, by a command, or by Mikolov's rnnlm.

    threads  number of threads to use; None: all cores

    The model has all settings that it was trained with, and `fit` trains a new one with them; unless `threads` is
    given, with as many threads as before, at most all cores. rnnlm's files lack settings of texts and epochs, such as
    min_count and lr, which are then the defaults.

    Raises TiedtoolsError if the file is not a model; word vectors are read by Vectors.read.
    """
    model = load_model(os.fspath(path), checked("threads", threads, int | None, THREADS))
    made: Word2Vec | LanguageModel | Translator
    try:
        settings = settings_of(model.config) | {"threads": None} | (model.settings or {})
        recorded = settings.pop("threads")
        if number := threads or recorded and min(recorded, available_cores()):
            settings["threads"] = number
        made = FAMILIES[model.kind].get("estimator").of(model.kind, settings)
    except (*WRONG, TiedtoolsError) as error:
        raise corrupt(os.fspath(path), error) from None
    made.trained = model
    return made
