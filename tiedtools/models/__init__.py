"""Models, and loading of language models of any kind."""

import importlib

from tiedtools.errors import TiedtoolsError, quoted
from tiedtools.files import modelfile

# `kind` in a model file's header -> module and class, imported only when needed.
LANGUAGE_MODELS = {
    "lstm": ("tiedtools.models.lstm.model", "LstmLM"),
    "rnnlm": ("tiedtools.models.rnnlm.model", "Rnnlm"),
}


def load_language_model(path):
    """Read a language model of any kind from a model file of tiedtools or of Mikolov's rnnlm.

    Raises TiedtoolsError if the file does not hold a language model.
    """
    if modelfile.is_rnnlm(path):
        return importlib.import_module("tiedtools.models.rnnlm.rnnlmfile").read(path)
    kind = str(modelfile.kind(path))
    modelfile.refuse_checkpoint(path, kind)
    if kind not in LANGUAGE_MODELS:
        found = "word vectors (a model of `tiedtools w2v`)" if kind == "word2vec" else f"a model of kind {quoted(kind)}"
        raise TiedtoolsError(f"{path}: is {found}, not a language model; give a model of `tiedtools lstm` or `rnnlm`")
    module, name = LANGUAGE_MODELS[kind]
    return getattr(importlib.import_module(module), name).load(path)
