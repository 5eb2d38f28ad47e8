"""Word similarity: rank correlation between the cosines of word pairs and their human scores.

    similarity set -> sorted pairs -> cosines -> Spearman's rho -> bootstrap over pairs -> 95% interval

Pairs are sorted when read, as are the two words of each pair, so results do not depend on the order in the file.
Shapes: P pairs, N resamples.
"""

import itertools
import math
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.evaluation.pairfiles import read_pairs
from tiedtools.text.sources import is_path
from tiedtools.vectors.vectors import Vectors

INTERVAL = 0.95
Z = 1.959964  # half-width of INTERVAL in standard errors, for a normal distribution
OOV = ("skip", "zero", "mean", "compose")
CASES = ("as-is", "lower", "fallback")
BLOCK = 1 << 18  # numbers in a block of resamples, few enough for the cache


class SimilaritySet(NamedTuple):
    """Sorted word pairs with human scores; pairs that the file repeats are repeated."""

    name: str
    path: str
    pairs: list[Any]  # P tuples (word, word)
    scores: np.ndarray  # (P,) float64; only their order matters

    def own_seed(self, seed: int) -> list[int]:
        """Return a seed that depends on the set. The same draws for all sets would overstate their mean's variance."""
        return [seed, zlib.crc32(self.scores.tobytes())]


class Judged(NamedTuple):
    """The cosines of a SimilaritySet's pairs in one file of vectors."""

    cosines: np.ndarray  # (P,) float64
    known: np.ndarray  # (P,) bool: both words have a vector
    used: np.ndarray  # (P,) bool: the pair counts toward rho; equals `known` unless unknown words are scored
    oov_words: int  # distinct words of the set that have no vector


def read_set(path: Any, name: str | None = None) -> SimilaritySet:
    """Read a file of word pairs into a SimilaritySet; layouts and errors as in `read_pairs`."""
    triples = sorted((*sorted(words), score) for *words, score in read_pairs(path))
    if not triples:
        raise TiedtoolsError(f"{path}: holds no word pairs; give lines of `word word score`")
    scores = np.array([score for *_, score in triples])
    return SimilaritySet(name or str(path), str(path), [(a, b) for a, b, _ in triples], scores)


def find_row(index: Mapping[str, int], word: str, case: str) -> int:
    """Return the row of `word` in `index` (word -> row), or -1.

    `case`: "as-is" looks the word up as written, "lower" in lower case, "fallback" as written and then in lower case.
    The lower case of İ is i with a combining dot above, or i.
    """
    if case == "as-is":
        return index.get(word, -1)
    lower = word.lower()
    lower = index.get(lower, index.get(lower.replace("i\u0307", "i"), -1))
    return lower if case == "lower" else index.get(word, lower)


def judge(
    vectors: Vectors, similarity_set: SimilaritySet, oov: str = "skip", case: str = "fallback", compose: Any = None
) -> Judged:
    """Compute the cosine of each pair of a SimilaritySet, 0 for zero vectors; return Judged.

    oov      treatment of pairs with an unknown word: "skip" excludes the pair from rho; "zero" sets its cosine to 0;
             "mean" replaces the word's vector by the mean of all vectors; "compose", by a composed vector
    case     as in `find_row`; "lower" also lower-cases the words to compose
    compose  function that maps a list of words to Vectors; pairs with a word that it cannot compose are excluded
    """
    row_of = {word: find_row(vectors.index, word, case) for pair in similarity_set.pairs for word in pair}
    words, V = [word for word, row in row_of.items() if row < 0], len(vectors)
    if oov == "compose":
        composed = compose(sorted({word.lower() for word in words} if case == "lower" else words))
        row_of |= {word: V + row for word in words if (row := find_row(composed.index, word, case)) >= 0}
    rows = np.array([[row_of[word] for word in pair] for pair in similarity_set.pairs])
    sides = vectors.matrix[np.minimum(rows, V - 1)].astype(np.float64)  # (P, 2, E); unknown words: any row
    if (rows >= V).any():
        sides[rows >= V] = composed.matrix[rows[rows >= V] - V]
    unknown = rows < 0
    if unknown.any():
        sides[unknown] = np.asarray(vectors.matrix).mean(axis=0, dtype=np.float64) if oov == "mean" else 0
    norms = np.sqrt(np.einsum("pse,pse->ps", sides, sides)).prod(axis=1)
    dots = np.einsum("pe,pe->p", sides[:, 0], sides[:, 1])
    # Cosines that are equal but for rounding are ties.
    cosines = np.divide(dots, norms, out=np.zeros_like(dots), where=norms != 0).round(12)
    known = ~(unknown[:, 0] | unknown[:, 1])
    return Judged(cosines, known, known if oov in ("skip", "compose") else np.ones_like(known), len(words))


def rank_deviations(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the rank of each value minus the mean rank in each of B samples of `values`; ties have average ranks.

    `values` (P,); `counts` (B, P) int64: how often each sample contains each value; -> (B, P) float64.
    The values are sorted only once: the ranks of a group of ties follow from the number of sampled values below it.
    """
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    first = np.cumsum(size) - size
    total = np.add.reduceat(counts[:, np.argsort(group)], first, axis=1)
    rank = np.cumsum(total, axis=1) - (total - 1) / 2
    return (rank - (counts.sum(axis=1, keepdims=True) + 1) / 2)[:, group]


def spearman(x: np.ndarray, y: np.ndarray, counts: np.ndarray | None = None) -> Any:
    """Return Spearman's rho, the Pearson correlation of average ranks. `x`, `y` (P,).

    With `counts` (B, P), as in `rank_deviations`, returns a rho for each sample, (B,); otherwise a float. NaN if
    undefined: fewer than two pairs, all values equal, or a value that is not finite.
    """
    if counts is None:
        return float(spearman(x, y, np.ones((1, len(x)), np.int64))[0])
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return np.full(len(counts), np.nan)
    # Ranks are multiples of one half, so these sums are exact in float64, and equal ranks give bit-identical rho.
    dx, dy = rank_deviations(x, counts), rank_deviations(y, counts)
    xx, yy, xy = (np.einsum("bp,bp,bp->b", counts, a, b) for a, b in ((dx, dx), (dy, dy), (dx, dy)))
    with np.errstate(invalid="ignore"):
        return xy / np.sqrt(xx * yy)


def bootstrap(scores: np.ndarray, cosines: Any, resamples: int, seed: Any) -> np.ndarray:
    """Compute rho in N = `resamples` bootstrap samples of P pairs: scores (P,), K arrays of cosines (P,) -> (K, N).

    All K use the same samples, which depend only on `seed` and P.
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


def interval(samples: np.ndarray, widest: float = 1) -> tuple[float | None, float | None]:
    """Return the central 95% interval (low, high) of `samples` (N,): NaN if all are NaN, None if there are none.

    widest  largest possible magnitude of a sample; NaN counts as -widest in `low` and as widest in `high`
    """
    if not len(samples):
        return None, None
    undefined = np.isnan(samples)
    if undefined.all():
        return math.nan, math.nan
    low = np.quantile(np.where(undefined, -widest, samples), (1 - INTERVAL) / 2)
    high = np.quantile(np.where(undefined, widest, samples), (1 + INTERVAL) / 2)
    return float(low), float(high)


def disagreements(similarity_set: SimilaritySet, judged: Judged, top: int) -> np.ndarray:
    """Return the rows of the `top` used pairs whose ranks by human score and by cosine differ most."""
    used, columns = np.flatnonzero(judged.used), (similarity_set.scores, judged.cosines)
    scores, cosines = (rank_deviations(x[used], np.ones((1, len(used)), np.int64))[0] for x in columns)
    return used[np.argsort(-np.abs(scores - cosines), kind="stable")[:top]]


def undefined(scores: np.ndarray, *cosines: Any) -> str | None:
    """Return why Spearman's rho between `scores` (P,) and one of `cosines` (P,) is undefined, or None."""
    if len(scores) < 2:
        return "fewer than two covered pairs"
    if np.ptp(scores) == 0:
        return "all scores equal"
    if not all(np.isfinite(column).all() for column in cosines):
        return "a vector that is not finite"
    return "all cosines equal" if any(np.ptp(column) == 0 for column in cosines) else None


def summarize(
    similarity_set: SimilaritySet, judged: Judged, resamples: int = 1000, seed: int = 1
) -> tuple[dict[str, Any], np.ndarray]:
    """Return results on one set, a dict of set, pairs, covered, oov_words, rho, low, high, and the resampled rho (N,).

    `covered` is the number of pairs in which both words have vectors; low and high are None without resamples.
    """
    scores, cosines = similarity_set.scores[judged.used], judged.cosines[judged.used]
    (samples,) = bootstrap(scores, [cosines], resamples, similarity_set.own_seed(seed))
    low, high = interval(samples)
    counts = dict(set=similarity_set.name, pairs=len(similarity_set.pairs), covered=int(judged.known.sum()))
    figures = dict(oov_words=judged.oov_words, rho=spearman(scores, cosines), low=low, high=high)
    return counts | figures, samples


def exchanges(scores: np.ndarray, one: np.ndarray, two: np.ndarray, resamples: int, seed: Any) -> np.ndarray:
    """Return rho(two) - rho(one), first as observed, then with the ranks of each pair exchanged at random, N times.

    `scores`, `one`, `two` (P,) -> (1 + N,), N = `resamples`; NaN if rho is undefined.
    """
    rng, P = np.random.default_rng(seed), len(scores)
    if math.isnan(spearman(scores, one) + spearman(scores, two)):
        return np.full(1 + resamples, np.nan)
    s, a, b = (rank_deviations(values, np.ones((1, P), np.int64))[0] for values in (scores, one, two))

    def differ(exchanged: np.ndarray) -> np.ndarray:
        """Return the difference of the correlations with s, whose sum is 0, for each row of `exchanged` (B, P)."""
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


def permutation_test(differences: np.ndarray) -> float | None:
    """Return the two-sided p-value of a permutation test on the output of `exchanges`.

    This is the proportion of differences at least as large in magnitude as the observed difference, which is included
    (Efron and Tibshirani 1993, chapter 15). NaN if the observed difference is undefined, None without resamples.
    """
    if len(differences) == 1:
        return None
    if np.isnan(differences[0]):
        return math.nan
    return float(np.mean(~(np.abs(differences) < np.abs(differences[0]) - 1e-12)))  # tolerance for rounding


def compare(
    similarity_set: SimilaritySet, judged: Judged, first: Judged, resamples: int = 1000, seed: int = 1
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Return rho(judged) - rho(first) on the pairs used in both, as a dict, its resamples, and its `exchanges`.

    low and high are from the paired bootstrap and p is from `permutation_test`; None without resamples.
    """
    used = judged.used & first.used
    scores, one, two = similarity_set.scores[used], first.cosines[used], judged.cosines[used]
    seed = similarity_set.own_seed(seed)
    samples = np.subtract(*bootstrap(scores, [two, one], resamples, seed))
    differences = exchanges(scores, one, two, resamples, seed)
    figures = difference(spearman(scores, two), spearman(scores, one), samples, differences)
    return {"set": similarity_set.name, "pairs": int(used.sum()), **figures}, samples, differences


def difference(rho: float, rho_first: float, samples: np.ndarray, differences: np.ndarray) -> dict[str, float | None]:
    """Summarize a difference as a dict of rho, rho_first, difference, low, high, p."""
    low, high = interval(samples, 2)
    p = permutation_test(differences)
    return {"rho": rho, "rho_first": rho_first, "difference": rho - rho_first, "low": low, "high": high, "p": p}


def evaluate(
    files: Sequence[Any], read: Callable[..., Any], sets: Mapping[str, Any], oov: str = "skip", case: str = "fallback",
    resamples: int = 1000, seed: int = 1, composer: Any = None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:  # fmt: skip
    """Score vector files on similarity sets.

    files     labels, passed in turn to `read(file)`, which returns Vectors; only one file is in memory at a time
    sets      dict of name -> path
    composer  with `oov` "compose", a function: `composer(file)` is the `compose` of `judge`

    Returns (results, differences). results has a dict for each file: file, sets (see `summarize`), and, for the mean
    over sets, mean_rho, mean_low, and mean_high. differences has a dict for each later file and set, its `compare` with
    the first file, and, with several sets, a dict for their mean.
    """
    sets = [read_set(path, name) for name, path in sets.items()]
    composers = [composer(file) if oov == "compose" else None for file in files]
    results, differences, first = [], [], None
    for file, compose in zip(files, composers):
        vectors = read(file)
        judged = [judge(vectors, s, oov, case, compose) for s in sets]
        lines, samples = zip(*(summarize(s, j, resamples, seed) for s, j in zip(sets, judged)))
        low, high = interval(np.mean(samples, 0))
        means = {"mean_rho": mean(lines, "rho"), "mean_low": low, "mean_high": high}
        results.append({"file": file, "sets": list(lines), **means})
        log_undefined([file], sets, judged)
        if first:
            rhos = zip(lines, results[0]["sets"])
            defined = [not math.isnan(one["rho"] + two["rho"]) for one, two in rhos]
            log_undefined([file, files[0]], *(list(itertools.compress(x, defined)) for x in (sets, judged, first)))
            compared = [compare(s, j, f, resamples, seed) for s, j, f in zip(sets, judged, first)]
            lines, samples, exchanged = zip(*compared)
            if len(sets) > 1:
                rho, rho_first = mean(lines, "rho"), mean(lines, "rho_first")
                figures = difference(rho, rho_first, np.mean(samples, 0), np.mean(exchanged, 0))
                lines += ({"set": "mean", "pairs": None, **figures},)
            differences += [{**line, "file": file} for line in lines]
        first = first or judged
    return results, differences


def log_undefined(files: Sequence[Any], sets: Iterable[Any], *judged: Iterable[Any]) -> None:
    """Log the sets on which rho is undefined for the pairs used by all files, and why; `judged`: a list per file."""
    reasons = dict[str, list[str]]()
    for similarity_set, *each in zip(sets, *judged):
        used = np.logical_and.reduce([one.used for one in each])
        if reason := undefined(similarity_set.scores[used], *(one.cosines[used] for one in each)):
            reasons.setdefault(reason, []).append(similarity_set.name)
    if reasons:
        where = " and ".join(str(file) for file in files if is_path(file))
        why = "; ".join(f"{reason} on {', '.join(names)}" for reason, names in reasons.items())
        log.warning(f"{where or 'vectors'}: rho is undefined: {why}")


def mean(lines: Iterable[dict[str, Any]], name: str) -> float:
    return float(np.mean([line[name] for line in lines]))
