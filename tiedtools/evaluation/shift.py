"""Change of words between two texts: vectors aligned, with intervals over runs or p-values of a permutation test."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tiedtools.evaluation.uncertainty import Estimate, estimate, neighbors
from tiedtools.text.vocab import END
from tiedtools.vectors.edit import aligned_cosines, common, refuse_dimensions
from tiedtools.vectors.runs import Runs

SIMILAR = 101  # words of similar counts whose median change is expected


def run_cosines(
    one: Runs, two: Runs, rows: np.ndarray, other_rows: np.ndarray, pairs: Any = None, align: bool = True
) -> np.ndarray:
    """Return the cosines of words in pairs (run of `one`, run of `two`), float64 [pairs, words].

    pairs  default: the runs of equal numbers, or a single run and each of the other's
    align  whether to align the vectors of each pair first

    Raises TiedtoolsError for different dimensions.
    """
    refuse_dimensions(one.matrix.shape[-1], two.matrix.shape[-1])
    found = []
    if pairs is None:
        n, m = len(one), len(two)
        pairs = [(k % n, k % m) for k in range(max(n, m) if min(n, m) == 1 else min(n, m))]
    for k, m in pairs:
        present = (one.present[k][rows] > 0) & (two.present[m][other_rows] > 0)
        found.append(aligned_cosines(one.matrix[k][rows], two.matrix[m][other_rows], present, align))
    return np.array(found).reshape(-1, len(rows))


def estimates(one: Runs, two: Runs, rows: np.ndarray, other_rows: np.ndarray, align: bool) -> list[Estimate]:
    """Return the Estimate of each word's cosine between two files of runs; arguments as for `run_cosines`."""
    center, other = (runs.on_whole_text if len(runs.whole) else runs for runs in (one, two))
    whole = between = run_cosines(center, other, rows, other_rows, align=align)
    if min(len(one), len(two)) == 1:
        between = whole[:1]  # the spread of one file alone is not that of the change
    elif len(one.whole) or len(two.whole):
        between = run_cosines(one, two, rows, other_rows, align=align)
    return [estimate(*values) for values in zip(between.T, whole.T)]


def has(runs: Runs, rows: Any = slice(None)) -> Any:
    """Return which words of `rows` have a vector in a run, or in a run on the whole text: a resample may lack them."""
    return runs.present[:, rows].any(0) | (len(runs.whole) > 0) & (runs.counts[rows] > 0)


def changes(one: Runs, two: Runs, align: bool = True) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Return the change of each common word between two files of runs, and the words of only one of them.

    align  whether to align run k of one file with run k of the other; slices share a space without it

    A change is 1 - the cosine of a word's two vectors. Each dict has word; count, count_other, nan if unknown; change,
    low, high (see `estimate`); and expected, the change to expect from a word whose use did not change: with `align`
    and several runs, the mean change between two runs of one file, over both files, if a resample adds the same noise
    to a vector as a new sample does; otherwise the median change of the SIMILAR words nearest in count, or in the file
    if counts are unknown.
    """
    words, rows, other_rows = common(one.words, two.words)
    similar = estimates(one, two, rows, other_rows, align)
    change = 1 - np.array([value.mean for value in similar])
    counts, other_counts = one.counts[rows], two.counts[other_rows]
    if align and min(len(one), len(two)) > 1:
        expected = np.zeros(len(words))
        for runs, own in (one, rows), (two, other_rows):
            pairs = [(k, (k + 1) % len(runs)) for k in range(len(runs) if len(runs) > 2 else 1)]
            expected += (1 - np.ma.masked_invalid(run_cosines(runs, runs, own, own, pairs)).mean(0).filled(np.nan)) / 2
    else:
        expected = np.full(len(words), np.nan)
        order = np.argsort(-(counts + other_counts), kind="stable")
        order = order[~np.isnan(change[order])]
        n, half = len(order), SIMILAR // 2
        if n > SIMILAR:
            from scipy.ndimage import median_filter  # imported here because SciPy loads slowly

            expected[order] = median_filter(change[order], SIMILAR)[np.clip(np.arange(n), half, n - 1 - half)]
        elif n:
            expected[order] = np.median(change[order])
    names = "word", "count", "count_other", "change", "low", "high", "expected"
    known = (array.tolist() if array.any() else [math.nan] * len(words) for array in (counts, other_counts))
    columns = *known, change.tolist(), similar, expected.tolist()
    lines = [
        dict(zip(names, (word, count, other, value, 1 - near.high, 1 - near.low, usual)))
        for word, count, other, value, near, usual in zip(words, *columns)
        if value == value
    ]
    seen = [dict.fromkeys(runs.words[row] for row in np.flatnonzero(has(runs))) for runs in (one, two)]
    only, other_only = ([word for word in seen[k] if word not in seen[1 - k] and word != END] for k in (0, 1))
    return lines, only, other_only


def paths(slices: Mapping[str, Runs], words: list[str], top: int = 5) -> list[dict[str, Any]]:
    """Return the path of words through time slices: a dict for each word and slice that has it.

    The slices share a space, so that vectors are compared without alignment. Each dict has word, slice, count; cosine,
    low, high: to the word's vector in the first slice that has it; and neighbors, the `top` nearest words.
    """
    first, lines = {}, {word: [] for word in words}
    for name, runs in slices.items():
        rows = {word: runs.index[word] for word in lines if word in runs.index and has(runs, runs.index[word])}
        nearest = neighbors(runs, [[(row, 1)] for row in rows.values()], top)
        for (word, row), answers in zip(rows.items(), nearest):
            start, start_row = first.setdefault(word, (runs, row))
            (similar,) = estimates(start, runs, np.array([start_row]), np.array([row]), align=False)
            if runs is start:
                similar = Estimate(1.0, math.nan, math.nan, len(runs))
            place = dict(word=word, slice=name, count=int(runs.counts[row]))
            near = dict(cosine=similar.mean, low=similar.low, high=similar.high)
            lines[word].append(place | near | dict(neighbors=[answer["neighbor"] for answer in answers]))
    return [line for word in words for line in lines[word]]


def permutation_p(observed: np.ndarray, permuted: np.ndarray) -> np.ndarray:
    """Return p = (1 + #{permuted >= observed}) / (1 + M) (Phipson and Smyth 2010); [words], [M, words] -> [words].

    NaN where the observed change is unknown; a permutation in which it is unknown counts as at least as large.
    """
    reached = ~(permuted < observed - 1e-12)
    return np.where(np.isnan(observed), np.nan, (1 + reached.sum(0)) / (1 + len(permuted)))


def permutation_changes(runs: Runs) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Return the change of each word with the p-value of a permutation test, and the words of only one text.

    runs  runs 2 m and 2 m + 1, from 0, are the two sides of permutation m; permutation 0 is the texts as they are

    Each dict has word, count, count_other, change, and p.
    """
    rows = np.array([row for row, word in enumerate(runs.words) if word != END])
    pairs = [(k, k + 1) for k in range(0, len(runs), 2)]
    observed, *permuted = 1 - run_cosines(runs, runs, rows, rows, pairs)
    p = permutation_p(observed, np.array(permuted))
    lines = [
        dict(word=runs.words[row], count=int(count), count_other=int(other), change=float(change), p=float(value))
        for row, (count, other), change, value in zip(rows, runs.present[:2, rows].T, observed, p)
        if count and other
    ]
    only_one, only_two = ([runs.words[row] for row in rows if not runs.present[other, row]] for other in (1, 0))
    return lines, only_one, only_two


def adjusted(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return dicts of `permutation_changes` with q, p adjusted for their number (Benjamini and Hochberg 1995)."""
    from scipy.stats import false_discovery_control  # imported here because SciPy loads slowly

    q = false_discovery_control([line["p"] for line in lines]) if lines else ()
    return [{**line, "q": float(value)} for line, value in zip(lines, q)]
