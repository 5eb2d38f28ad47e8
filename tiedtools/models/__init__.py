"""The models that are trained here, and how a language model is found again in its file."""

import importlib

from tiedtools.errors import TiedtoolsError, quoted
from tiedtools.files import modelfile

# By the `kind` in a model file's header: where the class is, imported only when it is wanted.
LANGUAGE_MODELS = {
    "lstm": ("tiedtools.models.lstm.model", "LstmLM"),
    "rnnlm": ("tiedtools.models.rnnlm.model", "Rnnlm"),
}


def load_language_model(path):
    """The language model of any kind in a model file, which may be one of Mikolov's rnnlm.

    Raises TiedtoolsError where there is none.
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
