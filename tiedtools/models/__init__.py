"""The models that are trained here, and how a language model is found again in its file."""

import importlib

from tiedtools import __version__, checkpoints, modelfile
from tiedtools.errors import TiedtoolsError, quoted

# By the `kind` in a model file's header: where the class is, imported only when it is wanted.
LANGUAGE_MODELS = {
    "lstm": ("tiedtools.models.lstmlm", "LstmLM"),
    "rnnlm": ("tiedtools.models.rnnlm", "Rnnlm"),
}


def load_language_model(path):
    """The language model in a model file, of whichever kind it is, or in one of Mikolov's rnnlm.

    Raises TiedtoolsError where there is none.
    """
    if is_rnnlm_file(path):
        return importlib.import_module("tiedtools.models.rnnlmfile").read(path)
    kind = str(modelfile.kind(path))
    if kind == "word2vec":
        raise TiedtoolsError(
            f"{path}: word vectors (a model of `tiedtools w2v`), which predict no next word; give a language model"
        )
    if kind == checkpoints.KIND:
        raise TiedtoolsError(
            f"{path}: a checkpoint; the command that wrote it makes a model of it, with --resume --save-model FILE"
        )
    if kind not in LANGUAGE_MODELS:
        known = ", ".join(LANGUAGE_MODELS)
        raise TiedtoolsError(
            f"{path}: a model of kind {quoted(kind)}; tiedtools {__version__} has language models of {known}"
        )
    module, name = LANGUAGE_MODELS[kind]
    return getattr(importlib.import_module(module), name).load(path)


def is_rnnlm_file(path):
    """Whether a file begins as those of Mikolov's rnnlm do; False also where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read(8) == b"version:"
    except OSError:
        return False
