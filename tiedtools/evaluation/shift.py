"""Change of words between two texts: vectors aligned, with intervals over runs or p-values of a permutation test."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tiedtools.evaluation.uncertainty import Estimate, estimate, neighbors
from tiedtools.vectors.alignment import aligned_cosines, common
from tiedtools.vectors.norms import unit
from tiedtools.vectors.runs import Runs


def run_cosines(one: Runs, two: Runs, rows: np.ndarray, other_rows: np.ndarray, pairs: Any) -> np.ndarray:
    """Return the aligned cosines of words in pairs (run of `one`, run of `two`), float64 [pairs, words]."""
    found = []
    for k, m in pairs:
        present = (one.present[k][rows] > 0) & (two.present[m][other_rows] > 0)
        found.append(aligned_cosines(one.matrix[k][rows], two.matrix[m][other_rows], present))
    return np.array(found)


def changes(one: Runs, two: Runs) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Return the change of each common word between two files of runs, and the words of only one of them.

    A change is 1 - the cosine of a word's two vectors after alignment of run k of one file with run k of the other.
    Each dict has word, count, count_other; change, low, high (see `estimate`); and expected: the mean change between
    two runs of one file, over both files: the change to expect between two texts that are samples of the same language,
    if a resample adds the same noise to a vector as a new sample does.
    """
    words, rows, other_rows = common(one.words, two.words)
    pairs = [(k, k) for k in range(min(len(one), len(two)))]
    between = run_cosines(one, two, rows, other_rows, pairs)
    wholes = one.on_whole_text, two.on_whole_text
    pairs = [(k, k) for k in range(min(map(len, wholes)))]
    whole = run_cosines(*wholes, rows, other_rows, pairs) if pairs else np.empty((0, len(words)))
    expected = np.zeros(len(words))
    for runs, own in (one, rows), (two, other_rows):
        if len(runs) < 2:
            expected[:] = np.nan
            break
        pairs = [(k, (k + 1) % len(runs)) for k in range(len(runs) if len(runs) > 2 else 1)]
        expected += (1 - mean_known(run_cosines(runs, runs, own, own, pairs))) / 2
    lines = []
    for word, row, other, values, center, without in zip(words, rows, other_rows, between.T, whole.T, expected):
        similar = estimate(values, center)
        change = Estimate(1 - similar.mean, 1 - similar.high, 1 - similar.low, similar.n)
        counts = dict(word=word, count=int(one.counts[row]), count_other=int(two.counts[other]))
        lines.append(counts | dict(change=change.mean, low=change.low, high=change.high, expected=float(without)))
    index, other_index = set(one.words), set(two.words)
    only = [word for word in one.words if word not in other_index]
    return lines, only, [word for word in two.words if word not in index]


def paths(slices: Mapping[str, Runs], words: list[str], top: int = 5) -> list[dict[str, Any]]:
    """Return the path of words through time slices: a dict for each word and slice that has it.

    The slices share a space, so that vectors are compared without alignment. Each dict has word, slice, count; cosine,
    low, high: to the word's vector in the first slice that has it; and neighbors, the `top` nearest words.
    """
    lines = []
    for word in words:
        first = None
        for name, runs in slices.items():
            row = runs.index.get(word)
            if row is None or not runs.present[:, row].any():
                continue
            units = [unit(np.asarray(matrix[[row]], np.float32))[0] for matrix in runs.matrix]
            first = units if first is None else first
            values = [a @ b if seen else np.nan for a, b, seen in zip(first, units, runs.present[:, row])]
            similar = estimate(values)
            near = [answer["neighbor"] for answer in neighbors(runs, [[(row, 1)]], top)[0]]
            place = dict(word=word, slice=name, count=int(runs.present[:, row].mean()))
            lines.append(place | dict(cosine=similar.mean, low=similar.low, high=similar.high, neighbors=near))
    return lines


def slice_changes(one: Runs, two: Runs) -> list[dict[str, Any]]:
    """Return the change of each common word between two slices, in one space: word, counts, change, low, high."""
    _, rows, other_rows = common(one.words, two.words)
    lines = []
    values = np.full((min(len(one), len(two)), len(rows)), np.nan)
    for k in range(len(values)):
        seen = (one.present[k][rows] > 0) & (two.present[k][other_rows] > 0)
        sides = [unit(np.asarray(m, np.float32)) for m in (one.matrix[k][rows[seen]], two.matrix[k][other_rows[seen]])]
        values[k, seen] = (sides[0] * sides[1]).sum(1)
    for row, other, cosines in zip(rows, other_rows, values.T):
        if not np.isnan(cosines).all():
            similar = estimate(cosines)
            counts = dict(count=int(one.present[:, row].mean()), count_other=int(two.present[:, other].mean()))
            change = dict(change=1 - similar.mean, low=1 - similar.high, high=1 - similar.low)
            lines.append(dict(word=one.words[row], **counts, **change))
    return lines


def mean_known(values: np.ndarray) -> np.ndarray:
    """Return the mean over axis 0 without NaN; NaN where all are."""
    known = ~np.isnan(values)
    return np.where(known, values, 0).sum(0) / np.where(known.any(0), known.sum(0), np.nan)


def permutation_p(observed: np.ndarray, permuted: np.ndarray) -> np.ndarray:
    """Return p = (1 + #{permuted >= observed}) / (1 + M) (Phipson and Smyth 2010); [words], [M, words] -> [words].

    NaN where the observed change is unknown; a permutation in which it is unknown counts as at least as large.
    """
    reached = ~(permuted < observed - 1e-12)
    return np.where(np.isnan(observed), np.nan, (1 + reached.sum(0)) / (1 + len(permuted)))


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Return the p-values adjusted for the false discovery rate (Benjamini and Hochberg 1995); NaN stays NaN."""
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    scaled = p[order] * len(order) / np.arange(1, len(order) + 1)
    q = np.full(len(p), np.nan)
    q[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1)
    return q


def permutation_changes(runs: Runs) -> tuple[list[dict[str, Any]], list[str], list[str]]:
    """Return the change of each word with the p-value of a permutation test, and the words of only one text.

    runs  runs 2 m and 2 m + 1, from 0, are the two sides of permutation m; permutation 0 is the texts as they are

    Each dict has word, count, count_other, change, and p.
    """
    rows = np.array([row for row, word in enumerate(runs.words) if word != "</s>"])
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
    """Return dicts of `permutation_changes` with q, their p-values adjusted for the number of words."""
    q = benjamini_hochberg(np.array([line["p"] for line in lines]))
    return [{**line, "q": float(value)} for line, value in zip(lines, q)]
