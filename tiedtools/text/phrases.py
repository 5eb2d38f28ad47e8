"""Phrases: words that occur together more often than by chance, joined into one word. It imports no NumPy."""

from __future__ import annotations

import base64
import copy
import dataclasses
import functools
import itertools
import json
import math
import os
import re
import typing
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from tiedtools.base.errors import Mistyped, Renamed, TiedtoolsError, quoted
from tiedtools.base.settings import NONE, Checked, Range, checked, documented, setting
from tiedtools.files.output import open_packed
from tiedtools.text.sentences import WORD, sources
from tiedtools.text.sources import LONGEST_LINE, SURROGATE, decoded_lines, numbered_lines, shown

ENGLISH = tuple("a an the for of with without at from to in on by and or".split())  # as in gensim
COLUMNS = "pass", "phrase", "words", "score", "count"
PACKED = "zlib:"  # beginning of a list in a string
LINES = 1 << 12  # of a text that are joined at a time
REMEDY = "give a list that `tiedtools phrases --save` wrote"
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
        "Join pairs with a score above this; repeatable: one pass for each threshold, on the text joined so"
        " far.  [default: 100; 10 and 0.5 with `scoring=default` and npmi]"
    )
    min_count: int = setting(5, Range(1))("Minimum count of a pair, which the scores subtract or require.")
    delimiter: str = setting("_", metavar="TEXT")("Text between the words of a phrase.")
    connectors: str | tuple | None = setting(None, metavar="WORDS")(  # type: ignore[type-arg]
        "Words that may stand between the two words of a phrase, such as of in bank_of_america, separated by commas;"
        " english: gensim's list."
    )
    max_memory: int | None = setting(None, Range(1), metavar="MB")(
        "Memory for counting pairs, in MB; beyond it, rare pairs are dropped while counting, as word2phrase and gensim"
        " do.  [default: half of the available memory]"
    )
    passes: list[list[Phrase]] = dataclasses.field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.scoring, str):
            raise Mistyped(f"`scoring` is one of {', '.join(THRESHOLDS)}; give a text to `fit`: Phrases().fit(text)")
        for name, kind in typing.get_type_hints(type(self)).items():
            value = getattr(self, name)
            value = tuple(value) if isinstance(value, list | set | frozenset) and name != "passes" else value
            setattr(self, name, value if name == "passes" else checked(name, value, kind))
        super().__post_init__()

    def mistakes(self) -> Iterator[tuple[str, bool]]:
        yield f"`delimiter={self.delimiter}` must be one word", WORD.fullmatch(self.delimiter) is None
        spelled = self.delimiter + "".join(self.connector_words)
        yield "`delimiter` and `connectors` must be valid Unicode", re.search(SURROGATE, spelled) is not None
        least, most, limits = (-1, 1, "from -1 to 1") if self.scoring == "npmi" else (0, math.inf, "at least 0")
        for value in self.thresholds:
            yield f"`threshold={value}` must be {limits}", not least <= value <= most

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
        self.learn(sources(source))
        return self

    def apply(self, source: Any) -> Iterator[list[str]]:
        """Yield the sentences of a text, a source as for `fit`, with phrases joined, while it is read."""
        join = self.joiner()
        for text in sources(source):
            lines = decoded_lines(text)
            while block := "".join(itertools.islice(lines, LINES)):
                yield from (WORD.findall(line) for line in join(block).removesuffix("\n").split("\n"))

    __iter__ = None

    def __getitem__(self, sentences: Any) -> Any:  # gensim's
        raise Renamed("Phrases cannot be indexed; use `apply(text)`, an iterator over its sentences")

    def joiner(self) -> Callable[[str], str]:
        """Return a function that joins the phrases in whole lines of a text, with a space between words."""
        from tiedtools.text.phrasetext import joiner

        self.require_passes()
        return joiner(self)

    def require_passes(self) -> None:
        if not self.passes:
            raise TiedtoolsError("no phrases are learned; call `fit` with a text, or `load`")

    def learn(self, paths: list[Any], errors: str = "strict") -> Iterator[bytes]:
        """Find the phrases of each pass; return an iterator over blocks of the text with phrases joined.

        paths, errors  as for counting.count
        """
        from tiedtools.text.phrasetext import PhraseText

        text, self.passes = PhraseText(paths, errors), []
        for threshold in self.thresholds:
            found = [Phrase(*found) for found in text.find(self, threshold)]
            self.passes.append(sorted(found, key=lambda phrase: -phrase.score))
            text.join(found, self.delimiter)
        return text.spelled()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the phrases as tab-separated lines: pass, phrase, words, score, count."""
        self.require_passes()
        with open_packed(os.fspath(path)) as file:
            self.write(file)

    def write(self, file: BinaryIO) -> None:
        rows: list[Any] = [COLUMNS]
        for number, phrases in enumerate(self.passes, 1):
            rows += [(number, self.delimiter.join(words), " ".join(words), score, n) for words, score, n in phrases]
        file.writelines(("\t".join(map(str, row)) + "\n").encode() for row in rows)

    def packed(self) -> str:
        """Return the list in a string, as model files and manifests store it; `of` reads it."""
        text = json.dumps([self.delimiter, self.passes], ensure_ascii=False)
        return PACKED + base64.b64encode(zlib.compress(text.encode(), 9)).decode()

    @staticmethod
    def of(source: Any) -> Phrases | None:
        """Return the Phrases of a setting: Phrases, a path, a string from `packed`, or None or "none".

        Raises TiedtoolsError for anything else.
        """
        if source is None or source == NONE or isinstance(source, Phrases):
            return None if source == NONE else source
        if not isinstance(source, str | os.PathLike):
            raise Mistyped(f"`phrases={quoted(source)}` is not a path or Phrases; correct it")
        return copy.copy(unpacked(str(source))) if str(source).startswith(PACKED) else Phrases.load(source)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Phrases:
        """Read phrases that `save` wrote. Raises TiedtoolsError with file and line for anything else."""
        path, passes, delimiter, number = os.fspath(path), list[list[Phrase]](), "", 0
        for number, line in numbered_lines(path, math.inf):
            fields = line.removesuffix("\r").split("\t")
            if number == 1 and fields == [*COLUMNS]:
                continue
            try:
                words = tuple(fields[2].split(" "))
                gap = (len(fields[1]) - len("".join(words))) // (len(words) - 1)
                delimiter = delimiter or fields[1][len(words[0]) :][:gap]
                at = range(1, 1000).index(int(fields[0]))  # ValueError for an impossible pass
                passes += [[] for _ in range(at + 1 - len(passes))]
                passes[at].append(Phrase(words, float(fields[3]), int(fields[4])))
                valid = number > 1 and all(map(WORD.fullmatch, (delimiter, *words)))
                valid = valid and fields[1] == delimiter.join(words) and math.isfinite(passes[at][-1].score)
            except (ValueError, IndexError, ZeroDivisionError):
                valid = None
            if not valid:
                raise TiedtoolsError(f"{shown(path)}:{number}: expected {', '.join(COLUMNS)}; {REMEDY}")
        if not number:
            raise TiedtoolsError(f"{shown(path)}: is empty; {REMEDY}")
        phrases = cls(delimiter=delimiter or "_")
        phrases.passes = passes or [[]]  # of a text without phrases
        return phrases


@functools.lru_cache(4)
def unpacked(text: str) -> Phrases:
    """Return the Phrases of a string from `Phrases.packed`. Raises TiedtoolsError if it is corrupt."""
    try:
        data = base64.b64decode(text.removeprefix(PACKED))
        most = max(LONGEST_LINE, 20 * len(data))  # lists are packed to about a third, not to a twentieth
        delimiter, passes = json.loads(zlib.decompressobj().decompress(data, most))
        phrases = Phrases(delimiter=delimiter)
        phrases.passes = [[Phrase(tuple(words), *figures) for words, *figures in some] for some in passes]
        if not all(len(words) > 1 and all(map(WORD.fullmatch, words)) for some in passes for words, *_ in some):
            raise ValueError("a phrase is not of two or more words")
    except (ValueError, TypeError, RecursionError, zlib.error):
        raise TiedtoolsError("the phrase list of the model is corrupt; get an undamaged copy") from None
    return phrases
