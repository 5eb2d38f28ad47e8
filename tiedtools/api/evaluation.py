"""Evaluation of word vectors on similarity and analogy sets."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Any

from tiedtools.api.estimator import Estimator
from tiedtools.api.word2vec import Word2Vec
from tiedtools.base.errors import Mistyped, TiedtoolsError
from tiedtools.base.settings import Range, checked, one_of
from tiedtools.evaluation import analogysets, similarity
from tiedtools.text.datasets import locate
from tiedtools.text.sources import Path, is_path
from tiedtools.vectors.neighbors import METHODS
from tiedtools.vectors.vectors import Vectors, refuse_absent

Source = Vectors | Estimator | Path  # of word vectors


def vectors_of(source: Source) -> Vectors:
    """Return the word Vectors of an argument: Vectors, a trained model, or a path. Raises TiedtoolsError."""
    if isinstance(source, Vectors):
        return source
    if isinstance(source, Estimator):
        return source.vectors
    if not isinstance(source, str | os.PathLike):
        raise TiedtoolsError(f"expected Vectors, a trained model, or a path, found {type(source).__name__}")
    return Vectors.read(source)


def composer_of(source: Source) -> Any:
    """Return a function that composes Vectors of a list of words. Raises TiedtoolsError if the model composes none."""
    from tiedtools.models.composing import compose, needed

    if isinstance(source, Vectors | Word2Vec):
        return vectors_of(source).compose
    return functools.partial(compose, source.model) if isinstance(source, Estimator) else needed(os.fspath(source))


def evaluate_similarity(
    vectors: Source, sets: Path | Iterable[Path] = (), *, against: Source | None = None, data: Path | None = None,
    oov: str = "skip", case: str = "fallback", bootstrap: int = 1000, seed: int = 1
) -> dict[str, Any]:  # fmt: skip
    """Compare cosine similarities with human similarity scores, as `tiedtools eval-sim --json` does.

    vectors    Vectors, a trained model, or the path of vectors or of a model
    sets       name of a similarity set, as in `tiedtools eval-sim --set`, or path of a file of `word word score` lines,
               or several of them; empty: all named sets that exist locally, or, if none does, all of them,
               downloaded
    against    other vectors, for a paired comparison on the pairs that both cover
    data       folder of the named sets, searched before TIEDTOOLS_DATA and the downloads
    oov, case  what to do with unknown words, and how to look words up; see `tiedtools eval-sim --help`
    bootstrap  number of resamples for 95% intervals and p-values; 0 disables both
    seed       random seed of the resampling

    Returns a dict: sets, a dict for each set (set, pairs, covered, oov_words, rho, low, high); mean_rho, mean_low, and
    mean_high, over the sets; and, if `against` is given, differences, a dict for each set and, of several, for their
    mean (set, pairs, rho, rho_first for `against`, difference, low, high, p). Raises TiedtoolsError for unreadable or
    missing sets.
    """
    one_of("oov", oov, similarity.OOV)
    one_of("case", case, similarity.CASES)
    bootstrap, seed = checked("bootstrap", bootstrap, int, Range(0, 10**7)), checked("seed", seed, int, Range(0))
    names = [sets] if isinstance(sets, str | os.PathLike) else [*sets]
    if not all(map(is_path, names)):
        raise Mistyped("`sets` must be names of sets or paths; write pairs to a file, as `word word score` lines")
    sources = with_reference(vectors, against)
    pairs = locate([os.fspath(name) for name in names], folder(data))
    results, differences = similarity.evaluate(sources, vectors_of, pairs, oov, case, bootstrap, seed, composer_of)
    return as_answer(results, differences, against)


def evaluate_analogies(
    vectors: Source, questions: Path = "google-analogies", *, against: Source | None = None, data: Path | None = None,
    method: str | None = None, restrict: int | None = None, case: str = "fallback"
) -> dict[str, Any]:  # fmt: skip
    """Answer analogy questions, as `tiedtools eval-analogy --json` does.

    vectors    Vectors, a trained model, or the path of vectors or of a model
    questions  name of an analogy set, or path of a file in word2vec's format, or of pairs under `: section` lines
    against    other vectors, for a paired comparison on the questions that both cover
    data       folder of the named set, searched before TIEDTOOLS_DATA and the downloads
    method     "add" (3CosAdd), "mul" (3CosMul; Levy and Goldberg 2014), or, for pairs, "avg" (3CosAvg; Drozd et al.
               2016); None: "avg" for pairs, otherwise "add"
    restrict   consider only this many words, from the first, in questions and as answers
    case       how to look words up; see `tiedtools eval-analogy --help`

    Returns a dict: sections, a dict for each section (section, questions, covered, correct, accuracy, low, high); and,
    if `against` is given, differences, likewise (section, questions, accuracy, accuracy_first for `against`,
    difference, low, high, p). Raises TiedtoolsError for unreadable or missing questions.
    """
    if method is not None:
        one_of("method", method, (*METHODS, "avg"))
    one_of("case", case, similarity.CASES)
    restrict = checked("restrict", restrict, int | None, Range(1))
    if not is_path(questions):
        raise Mistyped(f"`questions` must be the name of a set or a path, not {type(questions).__name__}")
    sources = with_reference(vectors, against)
    ((_, path),) = locate([os.fspath(questions)], folder(data)).items()
    results, differences = analogysets.evaluate(sources, vectors_of, analogysets.read_set(path), method, restrict, case)
    return as_answer(results, differences[0]["sections"] if differences else [], against)


def with_reference(vectors: Source, against: Source | None) -> list[Any]:
    """Return the list of vectors to evaluate, `against` first. Raises TiedtoolsError if a file is missing."""
    sources = [*([] if against is None else [against]), vectors]
    refuse_absent([os.fspath(file) for file in sources if isinstance(file, str | os.PathLike)])
    return sources


def as_answer(results: list[Any], differences: list[Any], against: object) -> dict[str, Any]:
    """Return the last result without its file, and with the differences from `against`, if any."""
    figures = {name: value for name, value in results[-1].items() if name not in ("file", "method")}
    lines = [{name: value for name, value in line.items() if name != "file"} for line in differences]
    return figures if against is None else {**figures, "differences": lines}


def folder(data: Path | None) -> Path | None:
    """Return the folder of data sets. Raises TiedtoolsError unless it exists."""
    if data is not None and not os.path.isdir(data):
        raise TiedtoolsError(f"`data={os.fspath(data)!r}` is not a folder; check the name")
    return data
