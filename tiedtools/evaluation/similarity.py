"""Word similarity: does the cosine of two vectors rank word pairs as people do?

    similarity set -> pairs sorted -> cosines -> Spearman's rho -> bootstrap over pairs -> 95% interval

Pairs are sorted when they are read, and so are the two words of each, so no figure depends on their order in
the file. Letters in shapes: P pairs, N resamples.
"""

import math
import zlib
from typing import NamedTuple

import numpy as np

from tiedtools.errors import TiedtoolsError, quoted
from tiedtools.text.sources import BLANKS, WORD, numbered_lines

INTERVAL = 0.95
Z = 1.959964  # INTERVAL in standard errors: that part of the normal distribution lies within -Z..Z
OOV = ("skip", "zero", "mean")
CASES = ("as-is", "lower", "fallback")
# Resamples are ranked in blocks of about this many numbers, which stay in cache.
BLOCK = 1 << 18


class SimilaritySet(NamedTuple):
    """Word pairs and how similar people found them, sorted; a pair published twice stands here twice."""

    name: str
    path: str
    pairs: list  # P tuples (word, word)
    scores: np.ndarray  # (P,) float64; only their order matters

    def stream(self, seed):
        """A seed of this set's own: did all sets see the same draws, their mean would vary more than it does."""
        return [seed, zlib.crc32(self.scores.tobytes())]


class Judged(NamedTuple):
    """What one file of vectors says about a SimilaritySet."""

    cosines: np.ndarray  # (P,) float64
    known: np.ndarray  # (P,) bool: both words have a vector
    used: np.ndarray  # (P,) bool: the pair counts towards rho; `known` unless unknown words are scored
    oov_words: int  # distinct words of the set that have no vector


def read_set(path, name=None):
    """Read `word word score` lines (tab, comma or blanks between; `#` comments) into a SimilaritySet.

    A first line whose score is no number is a header. Raises TiedtoolsError naming the file and the line.
    """
    triples, first_line = [], True
    for number, line in numbered_lines(path):
        if not line.strip(BLANKS) or line.startswith("#"):
            continue
        comma = "\t" if "\t" in line else "," if "," in line else None
        fields = [field.strip(BLANKS) for field in line.split(comma)] if comma else WORD.findall(line)
        score = as_number(fields[-1])
        is_header = first_line and score is None and len(fields) >= 3
        first_line = False
        if is_header:
            continue
        if len(fields) != 3 or not all(fields):
            found = quoted(line.strip())
            raise TiedtoolsError(f"{path}:{number}: expected `word word score`, found {found}; correct the line")
        if score is None or not math.isfinite(score):
            raise TiedtoolsError(f"{path}:{number}: the score {quoted(fields[2])} is not a finite number; correct it")
        triples.append((*sorted(fields[:2]), score))
    if not triples:
        raise TiedtoolsError(f"{path}: holds no word pairs; give lines of `word word score`")
    triples.sort()
    scores = np.array([score for _, _, score in triples])
    return SimilaritySet(name or str(path), str(path), [(a, b) for a, b, _ in triples], scores)


def as_number(field):
    """A float, None where it is none; NaN for what Python alone takes for one, as 1_000."""
    try:
        return float(field) if field.isascii() and "_" not in field else float(field) * math.nan
    except ValueError:
        return None


def find_row(index, word, case):
    """Row of `word` in `index` (word -> row), or -1.

    `case`: "as-is" looks the word up exactly, "lower" its lower-cased form, "fallback" first one, then the other.
    """
    if case == "as-is":
        return index.get(word, -1)
    lower = index.get(word.lower(), -1)
    return lower if case == "lower" else index.get(word, lower)


def judge(vectors, similarity_set, oov="skip", case="fallback"):
    """Cosine of every pair of `similarity_set`, as Judged.

    `oov`, for a pair with an unknown word: "skip" leaves it out of rho, "zero" gives it cosine 0, "mean" puts the
    mean of all vectors in the word's place. A vector of zeros has cosine 0 with everything. `case`: see `find_row`.
    """
    if oov not in OOV or case not in CASES:
        raise ValueError(f"oov {oov!r} is none of {OOV}, or case {case!r} none of {CASES}")
    matrix = vectors.matrix
    rows = np.array([[find_row(vectors.index, word, case) for word in pair] for pair in similarity_set.pairs])
    words = {word for pair, row in zip(similarity_set.pairs, rows) for word, r in zip(pair, row) if r < 0}
    sides = matrix[rows].astype(np.float64)  # (P, 2, E); row -1 stands in for an unknown word until it is replaced
    unknown = rows < 0
    if unknown.any():
        sides[unknown] = matrix.mean(axis=0, dtype=np.float64) if oov == "mean" else 0
    norms = np.sqrt(np.einsum("pse,pse->ps", sides, sides)).prod(axis=1)
    dots = np.einsum("pe,pe->p", sides[:, 0], sides[:, 1])
    cosines = np.divide(dots, norms, out=np.zeros_like(dots), where=norms != 0)
    known = ~(unknown[:, 0] | unknown[:, 1])
    return Judged(cosines, known, known if oov == "skip" else np.ones_like(known), len(words))


def rank_deviations(values, counts):
    """Rank of each value less the mean rank, ties sharing their average rank, in samples of `values`.

    `values` (P,); `counts` (B, P) int64: how often each sample holds each value; -> (B, P) float64.
    Sorting once serves every sample: a tie group's ranks follow from how many sampled values lie below it.
    """
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    first = np.cumsum(size) - size
    total = np.add.reduceat(counts[:, np.argsort(group)], first, axis=1)
    rank = np.cumsum(total, axis=1) - (total - 1) / 2
    return (rank - (counts.sum(axis=1, keepdims=True) + 1) / 2)[:, group]


def spearman(x, y, counts=None):
    """Spearman's rho: the Pearson correlation of average ranks. `x`, `y` (P,).

    With `counts` (B, P) one rho for each sample, (B,), else a float. NaN where it is undefined: fewer than two
    pairs, all values equal, or a value that is not finite.
    """
    if counts is None:
        return float(spearman(x, y, np.ones((1, len(x)), np.int64))[0])
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return np.full(len(counts), np.nan)
    # Ranks are multiples of one half, so these sums are exact in float64: equal ranks give equal rho to the bit.
    dx, dy = rank_deviations(x, counts), rank_deviations(y, counts)
    xx, yy, xy = (np.einsum("bp,bp,bp->b", counts, a, b) for a, b in ((dx, dx), (dy, dy), (dx, dy)))
    with np.errstate(invalid="ignore"):
        return xy / np.sqrt(xx * yy)


def bootstrap(scores, cosines, resamples, seed):
    """Rho in `resamples` samples of P pairs drawn with replacement: scores (P,), each of K cosines (P,) -> (K, N).

    All K see the same draws, which depend on `seed` and P alone.
    """
    rng = np.random.default_rng(seed)
    P = len(scores)
    rhos = np.full((len(cosines), resamples), np.nan)
    block = max(1, BLOCK // max(P, 1))
    for start in range(0, resamples if P else 0, block):
        B = min(block, resamples - start)
        draws = rng.integers(P, size=(B, P)) + P * np.arange(B)[:, None]
        counts = np.bincount(draws.ravel(), minlength=B * P).reshape(B, P)
        rhos[:, start : start + B] = [spearman(scores, column, counts) for column in cosines]
    return rhos


def interval(samples, widest=1):
    """The central 95% of `samples` (N,): (low, high), NaN where all are undefined, None where there are none.

    widest  the largest absolute value; an undefined sample might be anything up to it, and counts as that on both sides
    """
    if not len(samples):
        return None, None
    undefined = np.isnan(samples)
    if undefined.all():
        return math.nan, math.nan
    low = np.quantile(np.where(undefined, -widest, samples), (1 - INTERVAL) / 2)
    high = np.quantile(np.where(undefined, widest, samples), (1 + INTERVAL) / 2)
    return float(low), float(high)


def disagreements(similarity_set, judged, top):
    """The `top` pairs that count whose ranks by people and by cosine are farthest apart, as rows of the set."""
    used = np.flatnonzero(judged.used)
    ones = np.ones((1, len(used)), np.int64)
    people, cosines = (rank_deviations(x[used], ones)[0] for x in (similarity_set.scores, judged.cosines))
    return used[np.argsort(-np.abs(people - cosines), kind="stable")[:top]]


def summarize(similarity_set, judged, resamples=1000, seed=1):
    """One set's line of results, a dict of set, pairs, covered, oov_words, rho, low, high; and the resamples' rho (N,).

    `covered` counts the pairs whose words both have vectors; low and high are None without resamples.
    """
    scores, cosines = similarity_set.scores[judged.used], judged.cosines[judged.used]
    (samples,) = bootstrap(scores, [cosines], resamples, similarity_set.stream(seed))
    low, high = interval(samples)
    line = {
        "set": similarity_set.name,
        "pairs": len(similarity_set.pairs),
        "covered": int(judged.known.sum()),
        "oov_words": judged.oov_words,
        "rho": spearman(scores, cosines),
        "low": low,
        "high": high,
    }
    return line, samples


def exchanges(scores, one, two, resamples, seed):
    """rho(two) - rho(one), as it is and `resamples` times with the two ranks of each pair exchanged or not, at random.

    `scores`, `one`, `two` (P,) -> (1 + resamples,), NaN where rho is undefined.
    """
    rng, P = np.random.default_rng(seed), len(scores)
    if math.isnan(spearman(scores, one) + spearman(scores, two)):
        return np.full(1 + resamples, np.nan)
    s, a, b = (rank_deviations(values, np.ones((1, P), np.int64))[0] for values in (scores, one, two))

    def differ(exchanged):
        """Of the correlations with s, for each row of `exchanged` (B, P); sums tell all, since s sums to 0."""
        changes = exchanged @ np.stack([s * (b - a), b - a, b * b - a * a], 1)
        with np.errstate(invalid="ignore", divide="ignore"):
            rhos = [
                (s @ x + sign * changes[:, 0]) / np.sqrt(x @ x + sign * changes[:, 2] - changes[:, 1] ** 2 / P)
                for x, sign in ((a, 1), (b, -1))
            ]
        return (rhos[1] - rhos[0]) / math.sqrt(s @ s)

    block = max(1, BLOCK // P)
    sizes = [min(block, resamples - start) for start in range(0, resamples, block)]
    drawn = [differ(rng.integers(2, size=(B, P)).astype(float)) for B in sizes]
    return np.concatenate([differ(np.zeros((1, P))), *drawn])


def permutation_test(differences):
    """Two-sided p of the first of `differences`, if it made no difference which file is which, by the others.

    They are those of `exchanges` (Efron and Tibshirani 1993, chapter 15); p is the share of all that are as large. NaN
    where they are undefined, None where there are no others.
    """
    if len(differences) == 1:
        return None
    if np.isnan(differences[0]):
        return math.nan
    smaller = np.abs(differences) < np.abs(differences[0]) - 1e-12  # rounding makes no difference
    return float(np.mean(~smaller))


def compare(similarity_set, judged, first, resamples=1000, seed=1):
    """rho(judged) - rho(first) on the pairs that count in both, as a dict; and that of each resample and `exchanges`.

    low and high are its paired-bootstrap interval and p is `permutation_test`'s, None without resamples.
    """
    used = judged.used & first.used
    scores, one, two = similarity_set.scores[used], first.cosines[used], judged.cosines[used]
    seed = similarity_set.stream(seed)
    samples = np.subtract(*bootstrap(scores, [two, one], resamples, seed))
    differences = exchanges(scores, one, two, resamples, seed)
    figures = difference(spearman(scores, two), spearman(scores, one), samples, differences)
    return {"set": similarity_set.name, "pairs": int(used.sum()), **figures}, samples, differences


def difference(rho, rho_first, samples, differences):
    """The figures of a difference: a dict of rho, rho_first, difference, low, high, p."""
    low, high = interval(samples, 2)
    p = permutation_test(differences)
    return {"rho": rho, "rho_first": rho_first, "difference": rho - rho_first, "low": low, "high": high, "p": p}


def evaluate(files, read, sets, oov="skip", case="fallback", resamples=1000, seed=1):
    """Score vector files on similarity sets.

    `files`: labels, each given to `read(file)` -> Vectors in turn, so that only one is held at a time;
    `sets`: {name: path}. Returns (results, differences): for each file a dict of file, sets (see `summarize`)
    and mean_rho, the plain mean over the sets, with mean_low and mean_high, of its means over resamples; and for each
    later file and each set its `compare` with the first, and of several sets one more, of their mean.
    """
    sets = [read_set(path, name) for name, path in sets.items()]
    results, differences, first = [], [], None
    for file in files:
        vectors = read(file)
        judged = [judge(vectors, s, oov, case) for s in sets]
        lines, samples = zip(*(summarize(s, j, resamples, seed) for s, j in zip(sets, judged)))
        low, high = interval(np.mean(samples, 0))
        means = {"mean_rho": mean(lines, "rho"), "mean_low": low, "mean_high": high}
        results.append({"file": file, "sets": list(lines), **means})
        if first:
            compared = [compare(s, j, f, resamples, seed) for s, j, f in zip(sets, judged, first)]
            lines, samples, exchanged = zip(*compared)
            if len(sets) > 1:
                rho, rho_first = mean(lines, "rho"), mean(lines, "rho_first")
                figures = difference(rho, rho_first, np.mean(samples, 0), np.mean(exchanged, 0))
                lines += ({"set": "mean", "pairs": None, **figures},)
            differences += [{**line, "file": file} for line in lines]
        first = first or judged
    return results, differences


def mean(lines, name):
    return float(np.mean([line[name] for line in lines]))
