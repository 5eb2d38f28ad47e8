"""Word vectors of several training runs from Python: results with intervals."""

from __future__ import annotations

import os
from typing import Any

from tiedtools.base.errors import TiedtoolsError, UnknownWord
from tiedtools.base.settings import Range, checked
from tiedtools.evaluation import shift, uncertainty
from tiedtools.text.sources import Path
from tiedtools.vectors import runs
from tiedtools.vectors.gensimnames import listed
from tiedtools.vectors.neighbors import summands
from tiedtools.vectors.vectors import limits


class Runs(runs.Runs):
    """Word vectors of R training runs, written by `tiedtools w2v --runs R` or `Word2Vec.fit(..., runs=R)`.

    words, matrix [R, V, E], present [R, V], counts [V], and training are as in vectors.runs.Runs. Except in
    `stability`, a word may be a sum, such as "king - man + woman", of the unit-length vectors of its words.

    >>> runs = tiedtools.Word2Vec(size=100).fit("letters.txt", runs=25).runs
    >>> runs.similarity("nurse", "woman - man")
    Estimate(mean=0.31, low=0.22, high=0.39, n=25)
    """

    @classmethod
    def load(cls, path: Path) -> Runs:
        """Read a file of runs; its vectors are mapped. Raises TiedtoolsError if it is not one, or is corrupt."""
        return cls.read(os.fspath(path))

    @classmethod
    def of(cls, other: runs.Runs) -> Runs:
        """Return other runs as an object of this class."""
        return cls(other.words, other.matrix, other.present, other.counts, other.training, other.whole)

    def sum_of(self, words: str) -> list[tuple[int, int]]:
        """Return the (row, sign) of the words of a sum. Raises KeyError for an unknown word, TypeError for a list."""
        index = self.index
        terms = summands(checked("words", words, str), index)
        if unknown := [word for word, _ in terms if word not in index]:
            raise UnknownWord(f"no vector for {unknown[0]!r}; check its spelling")
        return [(index[word], sign) for word, sign in terms]

    def most_similar(self, words: str, topn: int = 10, restrict: int | None = None) -> list[dict[str, Any]]:
        """List the words with the highest mean cosine, as dicts.

        Keys: neighbor; cosine, low, high: the mean and its 95% interval; rank, rank_low, rank_high: the median of its
        ranks and their central 95%; in_top: number of runs in which it is among the first `topn`; runs: number of runs
        that have all words. Only the first `restrict` words are answers; None: all.
        """
        return uncertainty.neighbors(self, [self.sum_of(words)], *limits(topn, restrict))[0]

    def similarity(self, a: str, b: str) -> uncertainty.Estimate:
        """Return the Estimate of the cosine of two words: its mean and its 95% interval.

        The mean is over the runs on the whole text or, if there are none, over all runs; see uncertainty.estimate.
        """
        return uncertainty.estimate(*self.cosines(a, b))

    def cosines(self, a: str, b: str) -> list[Any]:
        """Return [the cosine of two words in each run, float64 [R], and in each run on the whole text]."""
        terms = self.sum_of(a), self.sum_of(b)
        return [uncertainty.cosine_of(each, *terms) for each in (self, self.on_whole_text)]

    def stability(self, words: list[str], top: int = 10) -> list[float]:
        """Return for each word the share of its `top` nearest neighbors common to two runs."""
        words = listed(words)
        if unknown := [word for word in words if word not in self.index]:
            raise UnknownWord(f"no vector for {unknown[0]!r}; check its spelling")
        n = int((self.counts > 0).sum())  # a slice lacks words of the others
        if checked("top", top, int, Range(1)) >= n:
            raise TiedtoolsError(f"{n} words are too few for {top} neighbors; lower `top`")
        shares: list[float] = uncertainty.stability(self, [self.index[word] for word in words], top).tolist()
        return shares

    def shift(self, other: runs.Runs) -> list[dict[str, Any]]:
        """Return the change of each common word from these runs to `other`, as dicts.

        Keys: word; count, count_other; change, low, high: 1 - cosine after alignment and its 95% interval; expected:
        the change to expect from a word whose use did not change.
        """
        if not isinstance(other, runs.Runs):
            raise TiedtoolsError(f"expected Runs, found {type(other).__name__}")
        return shift.changes(self, other)[0]
