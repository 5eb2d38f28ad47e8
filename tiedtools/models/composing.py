"""Vectors of out-of-vocabulary words, composed from subwords by a model, and the gates of its highway layers."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError, quoted
from tiedtools.base.messages import log
from tiedtools.files import modelfile
from tiedtools.files.modelfile import load_model
from tiedtools.text.sources import counted, shown
from tiedtools.vectors.modelvectors import find_model
from tiedtools.vectors.rows import is_fasttext
from tiedtools.vectors.vectors import Vectors

SHOWN = 5  # words in a warning


def composer(path: str, vectors: Vectors | None = None) -> Callable[[list[str]], Vectors] | None:
    """Return the function words -> `compose`d Vectors, to extend the Vectors that Vectors.read reads from `path`.

    None if the file is not a model with composed vectors. Raises TiedtoolsError if the model is corrupt.

    vectors  these Vectors, if they have been read: those of a fastText model compose words themselves
    """
    model_file, which = find_model(path) or (None, "in")
    config: dict[str, Any] = {}
    if model_file is not None and not modelfile.is_rnnlm(model_file):
        config = modelfile.read_header(model_file)["config"]
    subwords = config.get("subwords")
    if vectors is None and (subwords == "ngrams" or is_fasttext(path)):
        vectors = Vectors.read(path)
    if vectors is not None and vectors.composes:
        return vectors.compose
    if subwords in (None, "ngrams") or which != "in" and config.get("reuse") == "plain":
        return None
    return functools.partial(compose, load_model(str(model_file)), which=which, name=path)


def needed(path: str) -> Callable[[list[str]], Vectors]:
    """Return the `composer` of `path`. Raises TiedtoolsError if there is none."""
    if function := composer(path):
        return function
    models = "a model of fastText with n-grams, or one trained with `w2v --subwords` or `lstm --subwords`"
    raise TiedtoolsError(f"{shown(path)}: has no composed word vectors; give {models}, or another `oov`")


def compose(model: Any, words: list[str], which: str = "in", name: str = "model") -> Vectors:
    """Return the Vectors of the words with at least one known subword; other words are omitted.

    which  "in", "out", "sum", or "concat"
    name   name of the model, for the warning about unknown subwords

    Raises TiedtoolsError if the model does not compose these vectors.
    """
    unknown = unknown_subwords(model, words, name)
    warn_of_cuts(model, words, name)
    composable = [word for word in unknown if not unknown[word][1]]
    if reports := [f"{quoted(word)} ({' '.join(unknown[word][0])})" for word in composable if unknown[word][0]]:
        log.warning(f"{name}: unknown subwords left out of {counted(len(reports), 'word')}: {first_of(reports)}")
    return model.compose(composable, which) if composable else Vectors([], np.zeros((0, 0)))


def of_words(model: Any, words: list[str], name: str = "model") -> Any:
    """Return a language model with another vocabulary, which begins with `</s>`, through its composed output.

    Words with unknown subwords are left out, as in Assylbekov and Takhanov's table 5, and a message lists them. Raises
    TiedtoolsError if the model has an output vector per word.
    """
    unknown = unknown_subwords(model, words, name)
    if model.config.reuse == "plain":
        raise TiedtoolsError(f"{name}: has an output vector per word; train a model with `lstm --subwords --reuse all`")
    if omitted := [quoted(word) for word in words if unknown[word][0]]:
        problem = f"{len(omitted):,} of {counted(len(words), 'word')} left out of the vocabulary for unknown subwords"
        log.warning(f"{name}: {problem}: {first_of(omitted)}")
    known = [word for word in words if not unknown[word][0]]
    warn_of_cuts(model, known, name)
    return model.of_words(known)


def unknown_subwords(model: Any, words: list[str], name: str) -> dict[str, Any]:
    """Return the result of Subwords.unknown for each word. Raises TiedtoolsError if the model has no subwords."""
    if model.vocab.subwords is None:
        raise TiedtoolsError(f"{name}: has a vector per word; to compose vectors, train a model with `lstm --subwords`")
    return {word: model.vocab.subwords.unknown(word) for word in words}


def warn_of_cuts(model: Any, words: list[str], name: str) -> None:
    """Log a warning if words have more subwords than the model uses."""
    sizes = (model.vocab.subwords.table(words) > 0).sum(1) if model.longest and words else []
    if truncated := [quoted(word) for word, size in zip(words, sizes) if size > model.longest]:
        limit = f"the first {model.longest} {model.vocab.subwords.kind}"
        log.warning(f"{name}: {counted(len(truncated), 'word')} cut to {limit}: {first_of(truncated)}")


def gates(path: str) -> list[tuple[str, np.ndarray]]:
    """Return the transform gates of a model's highway layers over its vocabulary: (name, array [V, m]) each.

    Names are "hw1, input", "hw1, output", ..., or "hw1, tied" if both are equal. Raises TiedtoolsError if the model
    has no highway layers.
    """
    model = load_model(path)
    sides, named = model.gates() if hasattr(model, "gates") else [], []
    for k, (first, *second) in enumerate(zip(*sides), 1):
        if model.config.one_table or second and np.array_equal(first, second[0]):
            named.append((f"hw{k}, tied", first))
        else:
            named += zip((f"hw{k}, input", f"hw{k}, output"), [first, *second])
    if not named:
        raise TiedtoolsError(f"{path}: has no highway layers; give a model trained with `lstm --subwords`")
    return named


def first_of(items: list[str]) -> str:
    """Return a text with the first SHOWN of some strings, and the number of the others."""
    others = f", and {len(items) - SHOWN:,} more" if items[SHOWN:] else ""
    return ", ".join(items[:SHOWN]) + others
