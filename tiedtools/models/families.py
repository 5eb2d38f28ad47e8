"""Loading of models of any family."""

from typing import Any

from tiedtools.base.errors import TiedtoolsError, quoted
from tiedtools.files import modelfile
from tiedtools.files.families import FAMILIES, LANGUAGE, TRANSLATION, commands, imported


def load_model(path: str, threads: int | None = None) -> Any:
    """Read a model of any kind from a model file of tiedtools or of Mikolov's rnnlm.

    threads  number of threads to use; None: all cores

    Raises TiedtoolsError if the file does not hold a model.
    """
    if modelfile.is_rnnlm(path):
        return imported("tiedtools.models.rnnlm.program:read")(path, threads)
    kind = str(modelfile.kind(path))
    modelfile.refuse_checkpoint(path, kind)
    if kind not in FAMILIES:
        raise TiedtoolsError(
            f"{path}: is a model of kind {quoted(kind)}, not a language model;"
            " give a model of `tiedtools lm` or `rnnlm`"
        )
    return FAMILIES[kind].get("model").load(path, threads)


def load_language_model(path: str) -> Any:
    """Read a language model as `load_model` does. Raises TiedtoolsError if it is another model."""
    return load_as(LANGUAGE, path)


def load_translator(path: str) -> Any:
    """Read a translation model as `load_model` does. Raises TiedtoolsError if it is another model."""
    return load_as(TRANSLATION, path)


def load_as(says: str, path: str) -> Any:
    """Read a model as `load_model` does. Raises TiedtoolsError if its family is not called `says`, such as LANGUAGE."""
    family = FAMILIES.get(str(modelfile.kind(path)))
    if family and family.says != says:
        raise TiedtoolsError(f"{path}: is {family.says}, not {says}; give a model of {commands(says)}")
    return load_model(path)
