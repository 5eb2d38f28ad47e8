"""Means and intervals over many training runs: cosines, neighbors, and stability.

The runs are resamples of the documents of one text (the bootstrap) or differ only in their seeds; their standard
deviation therefore estimates the standard error of the result of one run. A resample has only 63% of the documents,
some repeated: its cosines of related words are lower than those of a text of new documents. Means are therefore those
of runs on the whole text, where there are any (docs/results.md#uncertainty). Shapes: R runs, V words, E dimensions.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from tiedtools.evaluation import similarity
from tiedtools.evaluation.similarity import INTERVAL
from tiedtools.text.vocab import END
from tiedtools.vectors.edit import BANDS
from tiedtools.vectors.neighbors import Candidates, largest
from tiedtools.vectors.norms import unit
from tiedtools.vectors.runs import Runs

MANY = 40  # runs from which on the interval has the percentiles of the runs
BLOCK = 1 << 25  # numbers in a block of cosines of all runs
TAILS = 100 * (1 - INTERVAL) / 2, 100 * (1 + INTERVAL) / 2

Sum = Sequence[tuple[int, int]]  # (row, sign) of each word of a sum


class Estimate(NamedTuple):
    """The mean over runs and its 95% interval, NaN with fewer than two runs; n: number of runs that have a value."""

    mean: float
    low: float
    high: float
    n: int


def known(values: Any) -> np.ndarray:
    """Return values without NaN, float64."""
    values = np.asarray(values, np.float64)
    return values[~np.isnan(values)]


def estimate(values: Any, whole: Any = (), fisher: bool = True) -> Estimate:
    """Return the Estimate of a quantity from its values in R runs, NaN where a run has none.

    whole   its values in runs on the whole text, whose mean replaces that of `values`
    fisher  the values are cosines or correlations: the interval is computed from z = artanh(value) (Fisher 1915);
            otherwise they are shares: the interval is clipped to 0..1

    With fewer than MANY runs, the interval is mean +- t s, with Student's t for n - 1 degrees of freedom and the
    standard deviation s of the runs. Otherwise its bounds are the 2.5 and 97.5 percentiles, moved with the mean.
    """
    values, whole = known(values), known(whole)
    n, center = len(values), whole if len(whole) else values
    if n < 2:
        return Estimate(float(center.mean()) if len(center) else np.nan, np.nan, np.nan, n)
    z, middle = (np.arctanh(np.clip(x, -1 + 1e-9, 1 - 1e-9)) if fisher else x for x in (values, center))
    if n >= MANY:
        ends = middle.mean() + np.percentile(z, TAILS) - z.mean()
    else:
        ends = middle.mean() + np.array([-1, 1]) * stdtrit(n - 1, TAILS[1] / 100) * z.std(ddof=1)
    low, high = np.tanh(ends) if fisher else np.clip(ends, 0, 1)
    mean = float(center.mean())  # outside of the interval if a value is 1 or -1
    return Estimate(mean, min(mean, float(low)), max(mean, float(high)), n)


def difference(one: Any, two: Any, one_whole: Any = (), two_whole: Any = (), widest: float = 2) -> Estimate:
    """Return the Estimate of mean(two) - mean(one), the values of independent runs, with Welch's t-interval.

    one_whole, two_whole  values in runs on the whole texts, as for `estimate`
    widest                largest possible difference, to which the interval is clipped: 2 for cosines and correlations
    """
    samples, wholes = [known(one), known(two)], [known(one_whole), known(two_whole)]
    n = min(map(len, samples))
    centers = [whole if len(whole) else sample for sample, whole in zip(samples, wholes)]
    if not all(map(len, centers)):
        return Estimate(np.nan, np.nan, np.nan, 0)
    gap = float(centers[1].mean() - centers[0].mean())
    if n < 2:
        return Estimate(gap, np.nan, np.nan, n)
    variances = np.array([sample.var(ddof=1) for sample in samples])
    scale = np.square(variances) @ [1 / (len(sample) - 1) for sample in samples]
    freedom = variances.sum() ** 2 / scale if scale else n - 1
    reach = stdtrit(freedom, TAILS[1] / 100) * np.sqrt(variances.sum())
    low, high = np.clip([gap - reach, gap + reach], -widest, widest).tolist()
    return Estimate(gap, low, high, n)


def cosines(runs: Runs, sums: Sequence[Sum], columns: int) -> Iterator[np.ndarray]:
    """Yield for each run the cosines of sums of unit vectors with the first words, float32 [sums, columns].

    NaN where the run lacks a word of the sum or the other word.
    """
    for matrix, present in zip(runs.matrix, runs.present > 0):
        units = unit(np.asarray(matrix, np.float32))
        totals = np.stack([sum(np.float32(sign) * units[row] for row, sign in terms) for terms in sums])
        block = np.clip(unit(totals) @ units[:columns].T, -1, 1)
        block[:, ~present[:columns]] = np.nan
        block[[not all(present[row] for row, _ in terms) for terms in sums]] = np.nan
        yield block


def neighbors(
    runs: Runs, sums: Sequence[Sum], top: int = 10, limit: int | None = None, counts: Any = None, least: int = 0
) -> list[list[dict[str, Any]]]:  # fmt: skip
    """Return the `top` words with the highest mean cosine to each sum of unit vectors, nearest first.

    limit  only the first `limit` words can be answers; an answer must be in half of the runs and, of several, in two
    least  leave out words with a smaller count, if there are `counts`, [V]

    Each answer is a dict: neighbor; cosine, low, high (see `estimate`); rank, rank_low, rank_high: the median of its
    rank in each run and the bounds of its central 95%, the words of the sum excluded; in_top: number of runs in which
    it is among the `top`; runs: number of runs that have all words.
    """
    limit, answers = min(limit or len(runs.words), len(runs.words)), []
    size = max(1, BLOCK // (len(runs) * limit))
    parts = [sums[k : k + size] for k in range(0, len(sums), size)]
    for part in Candidates.watch(parts, len(parts)):
        resampled, whole = (list(cosines(r, part, limit)) for r in (runs, runs.on_whole_text))
        for k, terms in enumerate(part):
            block, center = np.array([b[k] for b in resampled]), np.array([b[k] for b in whole or resampled])
            own = [row for row, _ in terms if row < limit]
            block[:, own] = center[:, own] = np.nan
            if counts is not None:
                block[:, counts[:limit] < least] = center[:, counts[:limit] < least] = np.nan
            n, seen = (~np.isnan(block)).sum(0), ~np.isnan(center)
            means = np.where(seen, center, 0).sum(0, dtype=np.float64) / np.maximum(seen.sum(0), 1)
            means[(n < min(2, len(runs))) | (2 * n < len(runs)) | ~seen.any(0)] = np.nan
            columns = [(row, center[:, row] if whole else ()) for row in largest(means, top)]
            answers.append([neighbor(runs.words[row], block, row, top, column) for row, column in columns])
    return answers


def neighbor(word: str, block: np.ndarray, row: int, top: int, whole: Any) -> dict[str, Any]:
    """Return one answer of `neighbors`; block: cosines of the words in each run, [R, V]; whole: as for `estimate`."""
    values = block[:, row]
    block, values = block[~np.isnan(values)], values[~np.isnan(values)]
    ranks = 1 + (block > values[:, None]).sum(1) + (block[:, :row] == values[:, None]).sum(1)
    mean, low, high, n = estimate(values, whole)
    rank_low, rank, rank_high = np.percentile(ranks, [TAILS[0], 50, TAILS[1]]).tolist()
    places = dict(rank=rank, rank_low=rank_low, rank_high=rank_high, in_top=int((ranks <= top).sum()))
    return dict(neighbor=word, cosine=mean, low=low, high=high, **places, runs=n)


def cosine_of(runs: Runs, one: Sum, two: Sum) -> np.ndarray:
    """Return the cosine of two sums of unit vectors in each run, float64 [R]; NaN where the run lacks a word."""
    rows = [row for row, _ in (*one, *two)]
    values = np.full(len(runs), np.nan)
    for k in np.flatnonzero((runs.present[:, rows] > 0).all(1)):
        units = unit(np.asarray(runs.matrix[k][rows], np.float32)) * [[sign] for _, sign in (*one, *two)]
        values[k] = np.prod(unit(np.stack([units[: len(one)].sum(0), units[len(one) :].sum(0)])), 0).sum()
    return np.clip(values, -1, 1)  # rounding can exceed 1


def stability(runs: Runs, rows: Sequence[int], top: int = 10) -> np.ndarray:
    """Return the share of the `top` nearest neighbors common to two runs, for the words `rows`, float64.

    It is the mean over all pairs of runs that have the word, as in Wendlandt et al. 2018; NaN for fewer than two runs.
    """
    nearest = np.full((len(rows), len(runs), top), -1)
    size = max(1, BLOCK // len(runs.words))
    for part in (slice(k, k + size) for k in range(0, len(rows), size)):
        sums = [[(row, 1)] for row in rows[part]]
        for k, block in enumerate(cosines(runs, sums, len(runs.words))):
            block[np.arange(len(sums)), rows[part]] = np.nan
            for place, values in enumerate(block, part.start):
                chosen = largest(values, top)  # the first words among those with equal cosines, as in `neighbors`
                nearest[place, k, : len(chosen)] = chosen
    shares = np.full(len(rows), np.nan)
    for k, lists in enumerate(nearest):
        lists = lists[(lists >= 0).any(1)]
        n = len(lists)
        if n > 1:
            times = np.unique(lists[lists >= 0], return_counts=True)[1]
            shares[k] = (times * (times - 1)).sum() / (top * n * (n - 1))
    return shares


def by_rank(runs: Runs) -> np.ndarray:
    """Return the rows of the words of the text, the most frequent first, without `</s>`; a slice lacks some words."""
    order = np.argsort(-runs.counts, kind="stable")
    return order[[runs.counts[row] > 0 and runs.words[row] != END for row in order]]


def bands(runs: Runs, sample: int, seed: int, top: int = 10) -> tuple[list[dict[str, Any]], dict[int, float]]:
    """Return the stability of words by frequency: a dict for each band of ranks, and the share of each word measured.

    sample  number of words drawn from each band
    """
    rng, order, lines, measured = np.random.default_rng(seed), by_rank(runs), [], {}
    for first, after in zip(BANDS, (*BANDS[1:], len(order) + 1)):
        band = order[first - 1 : after - 1]
        if not len(band):
            break
        rows = np.sort(rng.permutation(band)[:sample])
        shares = stability(runs, rows.tolist(), top)
        measured |= dict(zip(rows.tolist(), shares.tolist()))
        spread = estimate(shares)
        error = float(np.nanstd(shares, ddof=1) / np.sqrt(spread.n)) if spread.n > 1 else np.nan
        low, high = np.clip(spread.mean + similarity.Z * error * np.array([-1, 1]), 0, 1).tolist()
        counts = dict[str, float](words=len(rows), least_count=int(runs.counts[band].min()))
        counts["runs_with_word"] = float((runs.present[:, rows] > 0).sum(0).mean())
        ranks = f"{first:,} to {first + len(band) - 1:,}"
        lines.append(dict(ranks=ranks, **counts, shared=spread.mean, low=low, high=high))
    return lines, measured
