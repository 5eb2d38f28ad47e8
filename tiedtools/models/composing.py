"""Word vectors that a model composes from subwords, for words outside its vocabulary."""

import functools

import numpy as np

from tiedtools.errors import TiedtoolsError, quoted
from tiedtools.files import modelfile
from tiedtools.messages import log
from tiedtools.models import load_model
from tiedtools.text.sources import counted, shown
from tiedtools.vectors.vectors import Vectors, find_model

SHOWN = 5  # words in a warning


def composer(path):
    """Return the function words -> `compose`d Vectors, like those that Vectors.read reads from `path`.

    None if the file is not a model that composes them from subwords. Raises TiedtoolsError if the model is corrupt.
    """
    model_file, which = find_model(path) or (None, None)
    if model_file is None or modelfile.is_rnnlm(model_file):
        return None
    config = modelfile.read(model_file, {"header"})[0]["config"]
    if not config.get("subwords") or which != "in" and config.get("reuse") == "plain":
        return None
    return functools.partial(compose, load_model(model_file), which=which, name=path)


def needed(path):
    """Return the `composer` of `path`. Raises TiedtoolsError if there is none."""
    if made := composer(path):
        return made
    raise TiedtoolsError(
        f"{shown(path)}: has no composed word vectors; give a model trained with `lstm --subwords`, or another `oov`"
    )


def compose(model, words, which="in", name="model"):
    """Return the Vectors of the words that have a subword known to the model, without the others.

    which  "in", "out", "sum", or "concat"
    name   name of the model, for the warning about unknown subwords

    Raises TiedtoolsError if the model does not compose these vectors.
    """
    if model.vocab.subwords is None:
        raise TiedtoolsError("the model has a vector per word; to compose vectors, train one with `subwords`")
    unknown = {word: model.vocab.subwords.unknown(word) for word in words}
    found = [word for word in unknown if not unknown[word][1]]
    tell_unknown(name, {word: unknown[word][0] for word in found})
    return model.compose(found, which) if found else Vectors([], np.zeros((0, 0)))


def tell_unknown(name, unknown):
    """Log which words have unknown subwords. unknown: dict: word -> list of them."""
    lacking = [f"{quoted(word)} ({' '.join(subwords)})" for word, subwords in unknown.items() if subwords]
    if lacking:
        others = f", and {len(lacking) - SHOWN:,} more" if lacking[SHOWN:] else ""
        words = counted(len(lacking), "word")
        log.warning(f"{name}: unknown subwords left out of {words}: {', '.join(lacking[:SHOWN])}{others}")
