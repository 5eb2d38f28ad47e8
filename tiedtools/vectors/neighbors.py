"""Find the nearest neighbors of words by cosine similarity, and solve word analogies by vector arithmetic.

Shapes: V words, C candidates, E dimensions, Q questions.
"""

import collections
import copy
import difflib
import itertools
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tiedtools.vectors import norms
from tiedtools.vectors.norms import blocks, inverse_norms, unit

FEW = 8  # vectors whose products with a block take less time than BLAS takes to synchronize its threads
METHODS, EPSILON = ("add", "mul"), 0.001  # of analogies
SCORES, NUMBERS = 1 << 24, 1 << 22  # maximum scores in a block, and numbers of vectors that are not converted


class Candidates:
    """The words that can be answers: the first `restrict` words of `vectors`; None: all words.

    counts  counts of the words of `vectors`, int [V], at least `least` for an answer; None: unknown

    Of a repeated word, only the first vector counts. A zero vector has cosine 0 with every vector. A word whose vector
    is not finite is never an answer.

    index  mapping: word -> row of all words that may be in questions
    watch  function (iterator, its length) -> the same iterator, which may show progress; may be replaced
    """

    watch = staticmethod(lambda blocks, length: blocks)

    def __init__(self, vectors: Any, restrict: int | None = None, counts: Any = None, least: int = 0) -> None:
        index = vectors.index
        if len(index) < len(vectors):  # otherwise a repeated word would be its own neighbor
            rows = list(index.values())
            vectors = type(vectors)(list(index), vectors.matrix[rows])
            counts = None if counts is None else counts[rows]
        self.vectors, self.counts, self.index = vectors, counts, vectors.index
        self.others: Any = None
        # Scaling the cosines avoids a normalized copy of the matrix. Scales are computed with the first cosines.
        self.scale = np.full(len(vectors), -1.0)[:restrict]
        if counts is not None:
            self.scale[counts[: len(self.scale)] < least] = np.nan

    def __len__(self) -> int:
        return len(self.scale)

    def knowing(self, vectors: Any) -> "Candidates":
        """Return the same candidates with more `vectors`, whose words may be in questions but are never answers."""
        if not len(vectors):
            return self
        extended = copy.copy(self)
        rows = {word: len(self.vectors) + row for word, row in vectors.index.items()}
        extended.others, extended.index = vectors, collections.ChainMap(self.index, rows)
        return extended

    def units(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return n rows of the vectors, normalized to length 1: (n, E)."""
        rows, V = np.asarray(rows), len(self.vectors)
        if self.others is None:
            return unit(self.vectors.matrix[rows])
        vectors = np.empty((len(rows), self.vectors.dim), np.float32)
        vectors[rows < V] = self.vectors.matrix[rows[rows < V]]
        vectors[rows >= V] = self.others.matrix[rows[rows >= V] - V]
        return unit(vectors)

    def blocks(self, units: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (start, cosines with n unit vectors, float32 [n, C]) for each block of candidates."""
        matrix, n = self.vectors.matrix, len(units)
        plain = isinstance(matrix, np.ndarray) and matrix.dtype == np.float32
        size = max(1, min(NUMBERS if plain else norms.BLOCK, SCORES // max(n, 1) * matrix.shape[1]))
        number = -(-len(self) // max(1, size // matrix.shape[1]))
        for start, rows in self.watch(blocks(matrix, size, len(self)), number):
            yield start, cosines(units, rows, self.scale[start : start + len(rows)], plain or n > FEW)

    def best(
        self, units: np.ndarray, banned: list[list[int]], top: int,
        score: Callable[[np.ndarray], np.ndarray] = lambda cosines: cosines,
    ) -> list[list[tuple[str, float]]]:  # fmt: skip
        """List the `top` best candidates of Q questions as (word, score), best first, ties by row.

        banned  for each question, rows excluded from the answers; they may lie beyond the candidates
        score   function of the cosines [n, C] of the unit vectors, which returns the scores [Q, C]
        """
        Q, kept = len(banned), min(max(top, 1), len(self))
        values, rows = np.full((Q, kept), -np.inf, np.float32), np.zeros((Q, kept), np.int64)
        question = np.repeat(np.arange(Q), [len(some) for some in banned])
        excluded = np.array([row for some in banned for row in some], np.int64)
        for start, products in self.blocks(units):
            scores = score(products)
            inside = (start <= excluded) & (excluded < start + scores.shape[1])
            scores[question[inside], excluded[inside] - start] = -np.inf
            for q in np.flatnonzero(np.fmax.reduce(scores, axis=1) > values[:, -1]).tolist():
                better = largest(scores[q], kept)
                both = np.append(values[q], scores[q, better]), np.append(rows[q], better + start)
                order = np.lexsort((both[1], -both[0]))[:kept]
                values[q], rows[q] = both[0][order], both[1][order]
        words = self.vectors.words
        return [
            [(words[row], float(value)) for row, value in zip(*pair) if value > -np.inf]
            for pair in zip(rows[:, :top].tolist(), values[:, :top].tolist())
        ]

    def count(self, word: str) -> int | None:
        """Return the count of a word; None: unknown."""
        row = self.vectors.index.get(word)  # None: bytes that were replaced in decoding
        return None if self.counts is None or row is None else int(self.counts[row])


def cosines(units: np.ndarray, matrix: np.ndarray, scale: np.ndarray, blas: bool = True) -> np.ndarray:
    """Return the cosines of n unit vectors with the rows of a matrix (C, E), float32 [n, C].

    scale  1 / norm of each row, (C,); computed if negative
    """
    if (new := scale < 0).any():
        np.copyto(scale, inverse_norms(matrix), where=new)
    if ((scale > 1e30) | (scale > 0) & (scale < 1e-38)).any():  # scales or products exceed float32's range
        matrix, scale = unit(matrix), np.sign(scale)
    with np.errstate(invalid="ignore"):
        products = units @ matrix.T if blas else np.einsum("ne,ve->nv", units, matrix)
        products *= scale.astype(np.float32)
    return np.clip(products, -1, 1, out=products)  # rounding can exceed 1


def neighbors(candidates: Candidates, questions: Sequence[Any], top: int = 10) -> list[Any]:
    """Find the `top` candidates nearest to each of `questions`, which are words or sums of words (see `summands`).

    A question may contain any word of the vectors; its own words are not among its answers. Returns for each question a
    list of (word, cosine), nearest first, ties by row, or None if a word is unknown.
    """
    index = candidates.index
    sums = {question: summands(question, index) for question in dict.fromkeys(questions)}
    known = [question for question, parts in sums.items() if all(word in index for word, _ in parts)]
    if not known:
        return [None] * len(questions)
    rows = [[index[word] for word, _ in sums[question]] for question in known]
    signs = [np.array([sign for _, sign in sums[question]], np.float32) for question in known]
    totals = np.stack([sign @ candidates.units(row) for sign, row in zip(signs, rows)])
    return [*map(dict(zip(known, candidates.best(unit(totals), rows, top))).get, questions)]


def analogies(candidates: Candidates, questions: Sequence[Any], top: int = 10, method: str = "add") -> list[Any]:
    """Find the `top` best answers to each of `questions` (a, b, c), "a is to b as c is to which word d?".

    add   3CosAdd: cos(d, b) - cos(d, a) + cos(d, c)
    mul   3CosMul: cos(d, b) cos(d, c) / (cos(d, a) + EPSILON), with cosines rescaled to 0..1

    The words of a question, a tuple, are excluded from its answers (Levy & Goldberg 2014).

    Returns for each question a list of (word, score), best first, ties by row, or None if a word is unknown.
    """
    index = candidates.index
    known = [words for words in dict.fromkeys(questions) if all(word in index for word in words)]
    if not known:
        return [None] * len(questions)
    rows = np.array([[index[word] for word in words] for words in known])

    def score(cosines: np.ndarray) -> np.ndarray:
        plus, minus = terms(cosines, method)
        scores = plus[1::3] + plus[2::3] - minus[::3]
        return np.exp(scores) if method == "mul" else scores

    best = candidates.best(candidates.units(rows.ravel()), rows.tolist(), top, score)
    return [*map(dict(zip(known, best)).get, questions)]


def solve(candidates: Candidates, rows: np.ndarray, method: str = "add") -> np.ndarray:
    """Find the row of the best answer to each question, int64 [Q]; a fast `analogies` with top=1 for many questions.

    rows  rows of a, b, and c, int [Q, 3]

    The cosines of all question words are computed once per block of candidates. A question then costs two additions and
    a comparison per candidate, at any dimension of the vectors.
    """
    words, inverse = np.unique(rows, return_inverse=True)
    positions: Any = inverse.reshape(rows.shape).tolist()
    units = candidates.units(words)
    best = np.full(len(rows), -np.inf, np.float32)
    answers = np.full(len(rows), -1)
    for start, cosines in candidates.blocks(units):
        invalid = np.flatnonzero(np.isnan(cosines).all(0))
        plus, minus = terms(cosines, method)
        C = plus.shape[1]
        scores = np.empty(C + 1, np.float32)  # the last element stands for words outside this block
        inside = scores[:C]
        tops = np.empty(len(rows), np.int64)
        values = np.empty(len(rows), np.float32)
        banned = np.where((rows >= start) & (rows < start + C), rows - start, C).tolist()
        for k, (a, b, c) in enumerate(positions):
            np.add(plus[b], plus[c], out=inside)
            np.subtract(inside, minus[a], out=inside)
            inside[invalid] = -np.inf
            for position in banned[k]:
                scores[position] = -np.inf
            tops[k] = top = inside.argmax()
            values[k] = inside[top]
        better = values > best
        best[better], answers[better] = values[better], tops[better] + start
    return answers


def terms(cosines: np.ndarray, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Return (plus, minus), from `cosines` or in place; a score, or its log, is plus b + plus c - minus a."""
    if method == "add":
        return cosines, cosines
    shifted = np.divide(1 + cosines, 2, out=cosines)
    minus = shifted + np.float32(EPSILON)
    with np.errstate(divide="ignore"):
        return np.log(shifted, out=shifted), np.log(minus, out=minus)


def summands(question: Any, index: Mapping[Any, int]) -> list[tuple[Any, int]]:
    """Return the terms (word, sign) of a sum: the question itself if it is a word, otherwise its words between spaces.

    A separate `-` before a word subtracts it; a separate `+`, or neither, adds it. As in word2vec's `distance` and
    gensim's `most_similar`, the vectors of the sum have unit length. Other questions than strings, such as the numbers
    of documents, are words.
    """
    if question in index or not isinstance(question, str):
        return [(question, 1)]
    terms, sign = [], 1
    for field in filter(None, question.split(" ")):
        if field in ("+", "-"):
            sign = -1 if field == "-" else 1
        else:
            terms.append((field, sign))
            sign = 1
    return terms or [(question, 1)]


def spellings(unknown: Collection[str], words: Iterable[str]) -> dict[str, str]:
    """Return {unknown word: the first of `words` that differs from it only in case, or else one spelled similarly}.

    Of at most ten unknown words, similar ones are looked for among the first 20,000. Words without any are absent.
    """
    first: dict[str, Any] = dict.fromkeys(map(folded, unknown))
    for word in words if unknown else ():
        if (key := folded(word)) in first and first[key] is None:
            first[key] = word
    frequent = list(itertools.islice(words, 20_000 if len(unknown) <= 10 else 0))
    similar = lambda word: difflib.get_close_matches(folded(word), frequent, 1, 0.84)
    found = {word: [first[folded(word)]] if first[folded(word)] else similar(word) for word in unknown}
    return {word: near[0] for word, near in found.items() if near}


def folded(word: str) -> str:
    """Fold the case of a word, for comparisons; an i with a combining dot above, the lower case of İ, is i."""
    return word.lower() if word.isascii() else unicodedata.normalize("NFKD", word.casefold()).replace("i\u0307", "i")


def largest(values: np.ndarray, top: int) -> np.ndarray:
    """Return the indices of the `top` largest finite elements of `values` (V,), largest first, ties by index."""
    indices = np.arange(len(values))
    if top < len(values):
        # Not argpartition, which chooses arbitrarily among values equal to the smallest one selected.
        indices = np.flatnonzero(~(-values > np.partition(-values, top - 1)[top - 1]))
    indices = indices[np.lexsort((indices, -values[indices]))][:top]
    return indices[np.isfinite(values[indices])]
