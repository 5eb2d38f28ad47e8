"""Models, and loading of models of any kind."""

import importlib

from tiedtools.base.errors import TiedtoolsError, quoted
from tiedtools.files import modelfile

# `kind` in a model file's header -> module and class, imported only when needed.
MODELS = {
    "word2vec": ("tiedtools.models.word2vec.model", "Word2Vec"),
    "lstm": ("tiedtools.models.lm.model", "LstmLM"),
    "rnnlm": ("tiedtools.models.rnnlm.model", "Rnnlm"),
    "nmt": ("tiedtools.models.translation.model", "Translator"),
}
TRAINERS = {
    "word2vec": ("tiedtools.models.word2vec.trainer", "Word2VecTrainer"),
    "lstm": ("tiedtools.models.lm.trainer", "LstmTrainer"),
    "lm": ("tiedtools.models.lm.trainer", "LstmTrainer"),
    "rnnlm": ("tiedtools.models.rnnlm.trainer", "RnnlmTrainer"),
    "nmt": ("tiedtools.models.translation.trainer", "TranslationTrainer"),
}


def found(module, name):
    """Import a module and return the attribute `name` of it."""
    return getattr(importlib.import_module(module), name)


def load_model(path, threads=None):
    """Read a model of any kind from a model file of tiedtools or of Mikolov's rnnlm.

    threads  number of threads to use; None: all cores

    Raises TiedtoolsError if the file does not hold a model.
    """
    if modelfile.is_rnnlm(path):
        return found("tiedtools.models.rnnlm.program", "read")(path, threads)
    kind = str(modelfile.kind(path))
    modelfile.refuse_checkpoint(path, kind)
    if kind not in MODELS:
        raise TiedtoolsError(
            f"{path}: is a model of kind {quoted(kind)}, not a language model;"
            " give a model of `tiedtools lm` or `rnnlm`"
        )
    return found(*MODELS[kind]).load(path, threads)


def load_language_model(path):
    """Read a language model as `load_model` does. Raises TiedtoolsError if the file does not hold one."""
    return load_kind(path, lambda kind: kind not in ("word2vec", "nmt"), "a language model", "lm` or `tiedtools rnnlm")


def load_translator(path):
    """Read a translation model as `load_model` does. Raises TiedtoolsError if the file does not hold one."""
    return load_kind(path, lambda kind: kind == "nmt", "a translation model", "nmt")


def load_kind(path, wanted, name, command):
    """Read a model as `load_model` does, of a kind that is wanted. Raises TiedtoolsError for another model."""
    kind = "rnnlm" if modelfile.is_rnnlm(path) else modelfile.kind(path)
    if kind in MODELS and not wanted(kind):
        other = {"word2vec": "word vectors (a model of `tiedtools w2v`)", "nmt": "a translation model"}
        is_a = other.get(kind, "a language model")
        raise TiedtoolsError(f"{path}: is {is_a}, not {name}; give a model of `tiedtools {command}`")
    return load_model(path)
