"""Phrases: settings of learning, and lists of phrases and their files. It imports no NumPy."""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.settings import Checked, Range, setting
from tiedtools.text.sentences import WORD
from tiedtools.text.sources import numbered_lines, shown

# gensim's ENGLISH_CONNECTOR_WORDS
ENGLISH = tuple("a an the for of with without at from to in on by and or".split())
COLUMNS = "pass", "phrase", "words", "score", "count"
THRESHOLDS = {"word2phrase": 100.0, "default": 10.0, "npmi": 0.5}


@dataclasses.dataclass(frozen=True)
class PhraseSettings(Checked):
    """How phrases are learned."""

    scoring: str = setting(
        "word2phrase",
        "word2phrase: (n_ab - min_count) / n_a / n_b times the number of words, word2phrase's score; default: times"
        " the number of different words and pairs, gensim's default; npmi: normalized pointwise mutual information, -1"
        " to 1, as in gensim.",
        choices=tuple(THRESHOLDS),
    )
    threshold: float | tuple = setting(
        (),
        "Join pairs with a score above this; repeatable: one pass for each threshold, on the joined text of the pass"
        " before.  [default: 100; 10 and 0.5 with `scoring=default` and npmi]",
    )
    min_count: int = setting(5, "Discard pairs that occur less often than this, as the scores do.", Range(1))
    delimiter: str = setting("_", "Text between the words of a phrase.", metavar="TEXT")
    connectors: str | tuple | None = setting(
        None,
        "Words that may stand between the two words of a phrase, such as of in bank_of_america, separated by commas;"
        " english: gensim's list.",
        metavar="WORDS",
    )
    max_memory: int | None = setting(
        None,
        "Memory for counting pairs, in MB; beyond it, rare pairs are dropped while counting, as word2phrase and gensim"
        " do.  [default: half of the available memory]",
        Range(1),
        metavar="MB",
    )

    def mistakes(self) -> Iterator[tuple[str, bool]]:
        yield f"`delimiter={self.delimiter}` must be one word", WORD.fullmatch(self.delimiter) is None
        least, most = (-1, 1) if self.scoring == "npmi" else (0, float("inf"))
        for value in self.thresholds:
            yield f"`threshold={value}` must be from {least} to {most}", not least <= value <= most

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Threshold of each pass."""
        values = self.threshold if isinstance(self.threshold, tuple) else (self.threshold,)
        return tuple(map(float, values)) or (THRESHOLDS[self.scoring],)

    @property
    def connector_words(self) -> tuple[str, ...]:
        if self.connectors == "english":
            return ENGLISH
        return tuple(self.connectors.split(",")) if isinstance(self.connectors, str) else self.connectors or ()


class Phrase(NamedTuple):
    """Words that are joined; all but the first and the last are connector words."""

    words: tuple[str, ...]
    score: float
    occurrences: int


def write_list(file: BinaryIO, passes: Iterable[list[Phrase]], delimiter: str) -> None:
    """Write the phrases of each pass to a binary file: a header, then tab-separated columns, highest score first."""
    file.write("\t".join(COLUMNS).encode() + b"\n")
    for number, phrases in enumerate(passes, 1):
        for words, score, count in sorted(phrases, key=lambda phrase: -phrase.score):
            file.write(f"{number}\t{delimiter.join(words)}\t{' '.join(words)}\t{score!r}\t{count}\n".encode())


def read_list(path: str) -> tuple[list[list[Phrase]], str]:
    """Read a file of `write_list`; return the phrases of each pass, and the delimiter.

    Raises TiedtoolsError with file and line for anything else.
    """
    passes, delimiters = list[list[Phrase]](), set[str]()
    remedy = "give a list that `tiedtools phrases --save` wrote"
    for number, line in numbered_lines(path):
        if number == 1 and line == "\t".join(COLUMNS):
            continue
        try:
            place, phrase, joined, score, count = line.split("\t")
            words = tuple(joined.split(" "))
            gap = (len(phrase) - sum(map(len, words))) // (len(words) - 1)
            delimiter = phrase[len(words[0]) : len(words[0]) + gap]
            passes += [[] for _ in range(int(place) - len(passes))]
            passes[int(place) - 1].append(Phrase(words, float(score), int(count)))
            delimiters.add(delimiter)
            valid = number > 1 and WORD.fullmatch(delimiter) and len(delimiters) == 1
            valid = valid and phrase == delimiter.join(words)
        except (ValueError, IndexError, ZeroDivisionError):
            valid = None
        if not valid:
            raise TiedtoolsError(f"{shown(path)}:{number}: expected {', '.join(COLUMNS)}; {remedy}")
    return passes, delimiters.pop() if delimiters else "_"
