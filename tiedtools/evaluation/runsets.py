"""Similarity, analogies, and comparison of files of several training runs: means and intervals over the runs."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tiedtools.evaluation import analogysets, comparison, similarity
from tiedtools.evaluation.uncertainty import difference, estimate
from tiedtools.vectors.runs import Runs, is_runs
from tiedtools.vectors.vectors import Vectors

Lines = list[dict[str, Any]]
Files = Iterable[tuple[str, Runs]]  # name and runs of each file
Sets = Sequence[similarity.SimilaritySet]
ByRun = Sequence[similarity.Judged]  # a set judged by each run


def each(runs: Runs, whole: bool = True) -> Iterator[Vectors]:
    """Yield the Vectors of each run, read when it is needed, and of each run on the whole text.

    whole  False: without those on the whole text
    """
    return (Vectors(*run) for some in (runs, runs.on_whole_text)[: 1 + whole] for run in some)


def runs_of(path: str, **reading: Any) -> Runs:
    """Read a file of runs, or any vectors as a single run; `reading` as for Vectors.read."""
    return Runs.read(path) if is_runs(path) else Runs.of_one(Vectors.read(path, **reading))


def read_runs(files: Iterable[str], **reading: Any) -> Files:
    """Return the Files of these names, each of which is read when it is needed; arguments as for `runs_of`."""
    return ((file, runs_of(file, **reading)) for file in files)


def spelled(tuples: Iterable[Any], runs: Runs, case: str, restrict: int | None = None) -> list[tuple[Any, ...]]:
    """Return tuples of words as a file of runs spells them, None for unknown words: a run without `Paris` must not
    fall back to `paris`, unless all do. `case` as for similarity.find_row; restrict: only these first words.
    """
    words = [runs.words[row] for row in np.flatnonzero(runs.present.any(0) | (runs.counts > 0))][:restrict]
    index = {word: row for row, word in enumerate(words)}
    find = lambda word: words[row] if (row := similarity.find_row(index, word, case)) >= 0 else None
    return [tuple(map(find, each)) for each in tuples]


def covered(*files: ByRun) -> np.ndarray:
    """Return which pairs of a set all runs of these files cover, bool [pairs]."""
    return np.logical_and.reduce([judged.used for runs in files for judged in runs])


def rhos(one: similarity.SimilaritySet, used: np.ndarray, runs: ByRun) -> np.ndarray:
    """Return rho of each run on the pairs `used` of a set, float64 [R]."""
    return np.array([similarity.spearman(one.scores[used], judged.cosines[used]) for judged in runs])


def correlations(sets: Sets, judged: Sequence[ByRun], resamples: int, seed: int, W: int = 0) -> Lines:
    """Evaluate runs on similarity sets. judged: for each set, that of each run; the last W are on the whole text.

    Returns a dict for each set: set, pairs, covered (in all runs); rho, low, high: see `estimate`; and pairs_low and
    pairs_high: the 95% bootstrap interval of rho over pairs.
    """
    lines = []
    for one, of_set in zip(sets, judged):
        used = covered(of_set)
        values, whole = np.split(rhos(one, used, of_set), [len(of_set) - W])
        centers = [j.cosines[used] for j in of_set[-W:]]  # all if W is 0
        samples = similarity.bootstrap(one.scores[used], centers, resamples, one.own_seed(seed)).mean(0)
        mean, low, high, _ = estimate(values, whole)
        pairs_low, pairs_high = similarity.interval(samples)
        counts = dict(set=one.name, pairs=len(one.pairs), covered=int(used.sum()))
        lines.append(dict(**counts, rho=mean, low=low, high=high, pairs_low=pairs_low, pairs_high=pairs_high))
    return lines


def similarities(files: Files, sets: Sets, case: str, resamples: int, seed: int) -> tuple[Lines, Lines]:
    """Evaluate files of runs on similarity sets; `case` as for similarity.judge.

    Returns the dicts of `correlations` for each file, with its number of runs, and the difference of each further file
    from the first on each set, as a dict.
    """
    lines, differences, first = Lines(), Lines(), None
    for file, runs in files:
        as_spelled = [one._replace(pairs=spelled(one.pairs, runs, case)) for one in sets]
        by_run = [[similarity.judge(vectors, one, "skip", "as-is") for one in as_spelled] for vectors in each(runs)]
        similarity.log_undefined([file], sets, *by_run)
        judged = [*zip(*by_run)]
        of_file = correlations(sets, judged, resamples, seed, len(runs.whole))
        lines += [{**line, "runs": len(runs), "file": file} for line in of_file]
        for one, *both in zip(sets, first[0], judged) if first else ():
            used, sizes = covered(*both), (first[1], len(runs))  # type: ignore[index]
            a, b = (np.split(rhos(one, used, of_file), [n]) for of_file, n in zip(both, sizes))
            gap, low, high, _ = difference(a[0], b[0], a[1], b[1])
            counts = dict(set=one.name, pairs=int(used.sum()))
            differences.append(dict(**counts, difference=gap, low=low, high=high, file=file))
        first = first or (judged, len(runs))
    return lines, differences


def analogies(
    files: Files, questions: analogysets.AnalogySet, method: str | None, restrict: int | None, case: str
) -> tuple[Lines, Lines]:
    """Evaluate files of runs on analogies; arguments as for analogysets.evaluate.

    Returns a dict for each file, method, and section, and the difference of each further file from the first, likewise.
    """
    # The accuracies on the questions `used` of the first n runs, and of those on the whole text.
    split = lambda right, used, n: np.split(right[:, used].sum(1) / (used.sum() or np.nan), [n])
    lines, differences, first = Lines(), Lines(), dict[str, Any]()
    for file, runs in files:
        as_spelled = questions._replace(questions=spelled(questions.questions, runs, case, restrict))
        for way in analogysets.methods_of(questions, method):
            answered = [analogysets.answer(run, as_spelled, way, restrict, "as-is") for run in each(runs)]
            known, right = (np.array(each) for each in zip(*answered))
            known, label = known.all(0), dict(method=way, file=file)
            known_first, right_first, n_first = first.setdefault(way, (known, right, len(runs)))
            for section, within in questions.sections.items():
                used = within & known
                values, values_whole = split(right, used, len(runs))
                accuracy, low, high, _ = estimate(values, values_whole, fisher=False)
                counts = dict(section=section, questions=int(within.sum()), covered=int(used.sum()), runs=len(runs))
                lines.append(dict(**counts, accuracy=accuracy, low=low, high=high, **label))
                if right_first is right:
                    continue
                used &= known_first
                (a, a_whole), (b, b_whole) = split(right_first, used, n_first), split(right, used, len(runs))
                gap, low, high, _ = difference(a, b, a_whole, b_whole, widest=1)
                figures = dict(questions=int(used.sum()), difference=gap, low=low, high=high)
                differences.append(dict(section=section, **figures, **label))
    return lines, differences


def comparisons(one: Runs, two: Runs, limit: int, top: int, seed: int) -> Lines:
    """Compare run k of one file with run k of the other, or a single one with each; see comparison.compare.

    Returns a dict for each measure.
    """
    sides = [itertools.cycle(each(runs, False)) if len(runs) == 1 else each(runs, False) for runs in (one, two)]
    pairs = itertools.islice(zip(*sides), max(len(one), len(two)))
    every = [comparison.compare(a, b, limit, top, seed) for a, b in pairs]
    values = {
        "cosines_rho": [result["cosines"]["rho"] for result in every],
        "subspace_distance": [result["subspaces"]["distance"] for result in every],
        "neighbors_shared": [result["neighbors"]["share"]["value"] for result in every],
        "neighbors_jaccard": [result["neighbors"]["jaccard"]["value"] for result in every],
    }
    lines = Lines()
    for measure, numbers in values.items():
        value, low, high, n = estimate(numbers, fisher=measure == "cosines_rho")
        lines.append(dict(measure=measure, value=value, low=low, high=high, pairs=n))
    return lines
