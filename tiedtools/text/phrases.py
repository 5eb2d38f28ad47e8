"""Phrases: words that occur together more often than by chance, joined into one word. It imports no NumPy."""

from __future__ import annotations

import dataclasses
import math
import os
import typing
from collections.abc import Iterator
from typing import Any, BinaryIO

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.settings import Checked, Range, checked, documented, setting
from tiedtools.files.output import open_packed
from tiedtools.text.sentences import WORD, sources
from tiedtools.text.sources import numbered_lines, shown

ENGLISH = tuple("a an the for of with without at from to in on by and or".split())  # as in gensim
COLUMNS = "pass", "phrase", "words", "score", "count"
THRESHOLDS = {"word2phrase": 100.0, "default": 10.0, "npmi": 0.5}


class Phrase(typing.NamedTuple):
    """Words that are joined; all but the first and the last are connector words."""

    words: tuple[str, ...]
    score: float
    occurrences: int


@documented()
@dataclasses.dataclass
class Phrases(Checked):
    """Phrases of a text, learned by `fit` or read by `load`.

    passes  a list for each pass: Phrase(words, score, occurrences) of all pairs above the threshold

    >>> phrases = Phrases(threshold=(200, 100)).fit("train.txt")
    >>> sentences = list(phrases.apply("train.txt"))
    """

    scoring: str = setting("word2phrase", choices=tuple(THRESHOLDS))(
        "word2phrase: (n_ab - min_count) / n_a / n_b times the number of words, word2phrase's score; default: times"
        " the number of different words and pairs, gensim's default; npmi: normalized pointwise mutual information, -1"
        " to 1, as in gensim."
    )
    threshold: float | tuple = setting(())(  # type: ignore[type-arg]
        "Join pairs with a score above this; repeatable: one pass for each threshold, on the joined text of the pass"
        " before.  [default: 100; 10 and 0.5 with `scoring=default` and npmi]"
    )
    min_count: int = setting(5, Range(1))("Discard pairs that occur less often than this, as the scores do.")
    delimiter: str = setting("_", metavar="TEXT")("Text between the words of a phrase.")
    connectors: str | tuple | None = setting(None, metavar="WORDS")(  # type: ignore[type-arg]
        "Words that may stand between the two words of a phrase, such as of in bank_of_america, separated by commas;"
        " english: gensim's list."
    )
    max_memory: int | None = setting(None, Range(1), metavar="MB")(
        "Memory for counting pairs, in MB; beyond it, rare pairs are dropped while counting, as word2phrase and gensim"
        " do.  [default: half of the available memory]"
    )
    passes: list[list[Phrase]] = dataclasses.field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        for name, kind in typing.get_type_hints(type(self)).items():
            value = getattr(self, name)
            value = tuple(value) if isinstance(value, list | set | frozenset) and name != "passes" else value
            setattr(self, name, value if name == "passes" else checked(name, value, kind))
        super().__post_init__()

    def mistakes(self) -> Iterator[tuple[str, bool]]:
        yield f"`delimiter={self.delimiter}` must be one word", WORD.fullmatch(self.delimiter) is None
        least, most = (-1, 1) if self.scoring == "npmi" else (0, math.inf)
        for value in self.thresholds:
            yield f"`threshold={value}` must be from {least} to {most}", not least <= value <= most

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Threshold of each pass."""
        values = self.threshold if isinstance(self.threshold, tuple) else (self.threshold,)
        return tuple(map(float, values)) or (THRESHOLDS[self.scoring],)

    @property
    def connector_words(self) -> tuple[str, ...]:
        if isinstance(self.connectors, str):
            return ENGLISH if self.connectors == "english" else tuple(self.connectors.split(","))
        return self.connectors or ()

    def fit(self, source: Any) -> Phrases:
        """Learn phrases from a text and return this object.

        source  a path, a list of paths, an open file, or an iterable of sentences (lists of words), read once

        Raises TiedtoolsError for a text that cannot be read.
        """
        self.join(sources(source), learn=True)
        return self

    def apply(self, source: Any) -> Iterator[list[str]]:
        """Yield the sentences of a text, a source as for `fit`, with phrases joined; it is read completely first."""
        rest = b""
        for block in self.join(sources(source)):
            *lines, rest = (rest + block).split(b"\n")
            yield from (line.decode().split() for line in lines)
        if rest:
            yield rest.decode().split()

    def join(self, paths: list[Any], errors: str = "strict", learn: bool = False) -> Iterator[bytes]:
        """Return an iterator over blocks of the text at `paths` with phrases joined, pass by pass.

        learn   first find the phrases of each pass
        errors  as for counting.count
        """
        from tiedtools.text.phrasetext import PhraseText

        text = PhraseText(paths, errors)
        if learn:
            self.passes = []
        for k in range(len(self.thresholds) if learn else len(self.passes)):
            if learn:
                self.passes.append([Phrase(*found) for found in text.find(self, self.thresholds[k])])
            text.join(self.passes[k], self.delimiter)
        return text.spelled()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the phrases as tab-separated lines: pass, phrase, words, score, count."""
        with open_packed(os.fspath(path)) as file:
            self.write(file)

    def write(self, file: BinaryIO) -> None:
        file.write("\t".join(COLUMNS).encode() + b"\n")
        for number, phrases in enumerate(self.passes, 1):
            for words, score, n in sorted(phrases, key=lambda phrase: -phrase.score):
                row = number, self.delimiter.join(words), " ".join(words), repr(score), n
                file.write("\t".join(map(str, row)).encode() + b"\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Phrases:
        """Read phrases that `save` wrote. Raises TiedtoolsError with file and line for anything else."""
        passes, delimiter = list[list[Phrase]](), ""
        for number, line in numbered_lines(os.fspath(path)):
            fields = line.split("\t")
            if number == 1 and fields == [*COLUMNS]:
                continue
            try:
                words = tuple(fields[2].split(" "))
                gap = (len(fields[1]) - len("".join(words))) // (len(words) - 1)
                delimiter = delimiter or fields[1][len(words[0]) :][:gap]
                passes += [[] for _ in range(int(fields[0]) - len(passes))]
                passes[int(fields[0]) - 1].append(Phrase(words, float(fields[3]), int(fields[4])))
                valid = number > 1 and WORD.fullmatch(delimiter) and fields[1] == delimiter.join(words)
            except (ValueError, IndexError, ZeroDivisionError):
                valid = None
            if not valid:
                remedy = "give a list that `tiedtools phrases --save` wrote"
                raise TiedtoolsError(f"{shown(path)}:{number}: expected {', '.join(COLUMNS)}; {remedy}")
        phrases = cls(delimiter=delimiter or "_")
        phrases.passes = passes
        return phrases
