"""Loading of models of any kind."""

from __future__ import annotations

import os

from tiedtools.api.language import LanguageModel
from tiedtools.api.runs import Runs
from tiedtools.api.translation import Translator
from tiedtools.api.word2vec import Word2Vec
from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores
from tiedtools.base.settings import THREADS, checked, settings_of
from tiedtools.files.families import FAMILIES, LANGUAGE
from tiedtools.files.modelfile import WRONG, corrupt, is_model, load_model
from tiedtools.text.phrases import Phrases
from tiedtools.text.sources import Path
from tiedtools.vectors.runs import is_runs
from tiedtools.vectors.vectors import Vectors


def load(path: Path, threads: int | None = None) -> Word2Vec | LanguageModel | Translator | Runs | Vectors:
    """Read a model of any kind, written by `save`, by a command, or by Mikolov's rnnlm; a file of Runs; or Vectors.

    threads  number of threads the model uses; None: all cores

    The model keeps the settings of its training, and `fit` trains a new model with them. Without `threads`, `fit` uses
    as many threads as the earlier training, at most one per core. rnnlm's files lack settings of texts and epochs,
    such as min_count and lr, which then have their defaults.

    Other files are read as word vectors, with the defaults of Vectors.read; "MODEL:out" reads output vectors, too.

    Raises TiedtoolsError if the file is none of these, or corrupt.
    """
    checked("path", path, str | os.PathLike)
    if is_runs(os.fspath(path)):
        return Runs.load(path)
    if not is_model(os.fspath(path)):
        return Vectors.read(path)
    model = load_model(os.fspath(path), checked("threads", threads, int | None, THREADS))
    estimator: Word2Vec | LanguageModel | Translator
    try:
        settings = settings_of(model.config) | {"threads": None} | (model.settings or {})
        trained_threads = settings.pop("threads")
        settings |= {"phrases": Phrases.of(settings["phrases"])} if "phrases" in settings else {}
        if threads_to_use := threads or trained_threads and min(trained_threads, available_cores()):
            settings["threads"] = threads_to_use
        family = FAMILIES[model.kind]
        estimator = family.get("estimator")(*[model.kind] * (family.says == LANGUAGE), **settings)
    except (*WRONG, TiedtoolsError) as error:
        raise corrupt(os.fspath(path), error) from None
    estimator.trained = model
    return estimator
