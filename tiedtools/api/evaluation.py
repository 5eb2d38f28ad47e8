"""Evaluation of word vectors on similarity and analogy sets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tiedtools.api.estimator import Estimator, Path
from tiedtools.text.datasets import locate
from tiedtools.vectors.vectors import Vectors


def vectors_of(source: Vectors | Estimator | Path) -> Vectors:
    """Return word Vectors, the vectors of a trained model, or those in a file."""
    if isinstance(source, Vectors):
        return source
    return source.vectors if isinstance(source, Estimator) else Vectors.read(source)


def evaluate_similarity(
    vectors: Vectors | Estimator | Path,
    sets: Iterable[str] = (),
    *,
    against: Vectors | Estimator | Path | None = None,
    data: Path | None = None,
    oov: str = "skip",
    case: str = "fallback",
    bootstrap: int = 1000,
    seed: int = 1,
) -> dict[str, Any]:
    """Compare cosine similarities with human similarity scores, as `tiedtools eval-sim --json` does.

    vectors    Vectors, a trained model, or the path of vectors or of a model
    sets       names of similarity sets ("simlex", "men", "rw", "verb143", "mturk771") or paths of files of
               `word word score` lines; empty: all named sets that are found
    against    other vectors, for a paired comparison on the pairs that both cover
    data       folder of the named sets, searched before TIEDTOOLS_DATA and the downloads
    oov, case  what to do with unknown words, and how to look words up; see `tiedtools eval-sim --help`
    bootstrap  number of resamples for 95% intervals and p-values; 0: none
    seed       random seed of the resampling

    Returns a dict: sets, a dict for each set (set, pairs, covered, oov_words, rho, low, high); mean_rho, mean_low, and
    mean_high, over the sets; and, if `against` is given, differences, a dict for each set (rho, rho_first, that of
    `against`, difference, low, high, p). Raises TiedtoolsError for unreadable or missing sets.
    """
    from tiedtools.evaluation.similarity import evaluate

    pairs, files = locate(list(sets), data), [*([] if against is None else [against]), vectors]
    results, differences = evaluate(files, vectors_of, pairs, oov, case, bootstrap, seed)
    return answer(results, differences, against)


def evaluate_analogies(
    vectors: Vectors | Estimator | Path,
    questions: str = "google-analogies",
    *,
    against: Vectors | Estimator | Path | None = None,
    data: Path | None = None,
    method: str = "add",
    restrict: int | None = None,
    case: str = "fallback",
) -> dict[str, Any]:
    """Answer analogy questions, as `tiedtools eval-analogy --json` does.

    vectors    Vectors, a trained model, or the path of vectors or of a model
    questions  name of an analogy set, or path of a file in word2vec's format
    against    other vectors, for a paired comparison on the questions that both cover
    data       folder of the named set, searched before TIEDTOOLS_DATA and the downloads
    method     "add" (3CosAdd) or "mul" (3CosMul; Levy and Goldberg 2014)
    restrict   consider only this many words, from the first, as answers
    case       how to look words up; see `tiedtools eval-analogy --help`

    Returns a dict: sections, a dict for each section (section, questions, covered, correct, accuracy, low, high); and,
    if `against` is given, differences, likewise. Raises TiedtoolsError for unreadable or missing questions.
    """
    from tiedtools.evaluation.analogysets import evaluate, read_set

    ((_, path),) = locate([questions], data).items()
    files = [*([] if against is None else [against]), vectors]
    results, differences = evaluate(files, vectors_of, read_set(path), [method], restrict, case)
    return answer(results, differences[0]["sections"] if differences else [], against)


def answer(results: list[Any], differences: list[Any], against: object) -> dict[str, Any]:
    """Return the last result without its file, with the differences from `against` if it is given."""
    found = {name: value for name, value in results[-1].items() if name not in ("file", "method")}
    lines = [{name: value for name, value in line.items() if name != "file"} for line in differences]
    return found if against is None else {**found, "differences": lines}
