"""Phrases: words that occur together more often than by chance, joined into one word (Mikolov et al. 2013)."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

import numpy as np

from tiedtools.base import memory
from tiedtools.base.messages import log
from tiedtools.base.processor import ahead, available_cores
from tiedtools.base.settings import documented, sort_out
from tiedtools.files.output import open_packed
from tiedtools.kernels.text import phrases as kernels
from tiedtools.text.counting import count, map_zeros
from tiedtools.text.phraselist import THRESHOLDS, Phrase, PhraseSettings, read_list, write_list
from tiedtools.text.sentences import sources
from tiedtools.text.sources import counted

BLOCK = 1 << 18  # IDs written at a time
SAMPLE = 64  # the number of different pairs is estimated from this fraction of them
FULL = 0.75  # largest proportion of a table's rows that are in use
ROW = 16  # bytes


@documented(PhraseSettings)
class Phrases:
    """Phrases of a text, learned by `fit` or read by `load`.

    passes  a list for each pass: Phrase(words, score, occurrences) of all pairs above the threshold

    >>> phrases = Phrases(threshold=(200, 100)).fit("train.txt")
    >>> sentences = list(phrases.apply("train.txt"))
    """

    def __init__(self, **settings: Any) -> None:
        for name in ("threshold", "connectors"):
            if isinstance(settings.get(name), list | set | frozenset):
                settings[name] = tuple(settings[name])
        (self.settings,) = sort_out(settings, PhraseSettings)
        self.passes: list[list[Phrase]] = []

    def fit(self, source: Any) -> Phrases:
        """Learn phrases from a text and return this object.

        source  a path, a list of paths, an open file, or an iterable of sentences (lists of words), read once

        Raises TiedtoolsError for a text that cannot be read.
        """
        self.learn(Text(sources(source)))
        return self

    def apply(self, source: Any) -> Iterator[list[str]]:
        """Yield the sentences of a text, a source as for `fit`, with phrases joined; it is read completely first."""
        text, rest = self.join(Text(sources(source))), b""
        for block in text.spelled():
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                yield line.decode().split()
        if rest:
            yield rest.decode().split()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the phrases as tab-separated lines: pass, phrase, words, score, count."""
        with open_packed(os.fspath(path)) as file:
            self.write(file)

    def write(self, file: BinaryIO) -> None:
        write_list(file, self.passes, self.settings.delimiter)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Phrases:
        """Read phrases that `save` wrote. Raises TiedtoolsError for another file."""
        passes, delimiter = read_list(os.fspath(path))
        phrases = cls(delimiter=delimiter)
        phrases.passes = passes
        return phrases

    def learn(self, text: Text) -> Text:
        """Learn phrases from a Text, pass by pass, and join them in it; return the Text."""
        self.passes = []
        for threshold in self.settings.thresholds:
            self.passes.append(text.find(self.settings, threshold))
            text.join(self.passes[-1], self.settings.delimiter)
        return text

    def join(self, text: Text) -> Text:
        """Join the phrases of each pass in a Text and return it."""
        for phrases in self.passes:
            text.join(phrases, self.settings.delimiter)
        return text


class Text:
    """A text as word IDs in a temporary file, mapped into memory, in which phrases can be joined.

    paths, errors  as for counting.count, which see for errors
    """

    def __init__(self, paths: list[Any], errors: str = "strict") -> None:
        self.file = tempfile.TemporaryFile(prefix="tiedtools-")
        self.table, _ = count(paths, errors, keep=self.file)
        self.file.flush()
        self.ids = np.asarray(np.memmap(self.file, np.int32, "r+"))
        self.threads = available_cores()

    def find(self, settings: PhraseSettings, threshold: float) -> list[Phrase]:
        """Count words and pairs; return the pairs whose score exceeds the threshold, in order of first occurrence."""
        table, words = self.table, Words(self, settings)
        counts, frequent, entries = self.tally(words, settings)
        totals = np.array([table.counts[1 : len(table)].sum(), entries])
        scoring = [*THRESHOLDS].index(settings.scoring)
        if scoring == kernels.WORD2PHRASE:
            threshold = float(np.float32(threshold))
        limits = scoring, threshold, settings.min_count
        n, capacity, waiting = 1, 0, np.empty((kernels.AHEAD, 4), np.uint64)
        while n > capacity:  # at most twice, if a string is a phrase in several ways, such as a_b + c and a + b_c
            capacity = max(n, len(frequent) // 2)
            spans, scores = np.empty((capacity, 2), np.int64), np.empty((capacity, 2))
            out = spans, scores, rows(2 * capacity + 1), waiting
            n = kernels.find(*out, frequent, self.ids, *words.arrays, counts, *limits, totals)
        spelled = table.words
        return [
            Phrase(tuple(spelled[k] for k in self.ids[i : j + 1]), score, int(n_ab))
            for (i, j), (score, n_ab) in zip(spans[:n].tolist(), scores[:n].tolist())
        ]

    def tally(self, words: Words, settings: PhraseSettings) -> tuple[np.ndarray, np.ndarray, int]:
        """Count words and pairs as strings; log the memory it takes, and whether rare pairs are dropped to save memory.

        Returns (counts of the words, int64 [V]; table of the strings that occur min_count times; number of strings).
        """
        budget = int(1e6 * settings.max_memory if settings.max_memory else memory.available() / 2)
        estimate = SAMPLE * Partition(0, SAMPLE, 0, budget).count(self.ids, words).used
        need = ROW * (estimate / FULL * 1.1 + (self.threads << 15))
        about = f"phrases: about {estimate:,} different words and pairs, {need / 1e6:,.0f} MB"
        log.info(about if need <= budget else f"{about}, more than `max_memory={budget / 1e6:.0f}`")
        with ThreadPoolExecutor(self.threads) as pool:
            slots, most = (int(size / ROW / self.threads) for size in (min(need, budget), budget))
            parts = [Partition(part, self.threads, slots, most) for part in range(self.threads)]
            list(pool.map(lambda part: part.count(self.ids, words), parts))
        if dropped := max(part.dropped for part in parts):
            log.warning(
                f"phrases: pairs counted at most {counted(dropped, 'time')} were dropped when memory was full; counts"
                " are approximate; raise `max_memory`"
            )
        counts = np.zeros(len(self.table), np.int64)
        frequent = rows(2 * sum(int((part.table[:, 1] >= settings.min_count).sum()) for part in parts) + 1)
        for part in parts:
            kernels.look_up(counts, part.table, words.H, part.part, self.threads)
            kernels.copy(frequent, part.table, settings.min_count)
        return counts, frequent, sum(part.used for part in parts)

    def join(self, phrases: list[Phrase], delimiter: str) -> None:
        """Join phrases, from left to right, each word in at most one."""
        sizes = np.array([len(words) for words, *_ in phrases], np.int64)
        new = self.numbers(delimiter.join(words) for words, *_ in phrases)
        ids = self.numbers(itertools.chain.from_iterable(words for words, *_ in phrases))
        bounds = np.append(0, np.cumsum(sizes))
        roles, known, before = np.zeros(len(self.table), np.uint8), rows(2 * len(phrases) + 1), len(self.ids)
        roles[ids] |= kernels.CONNECTS
        roles[ids[bounds[:-1]]] = roles[ids[bounds[1:] - 1]] = 0
        roles[ids[bounds[:-1]]] |= kernels.STARTS
        roles[ids[bounds[1:] - 1]] |= kernels.ENDS
        kernels.enter(known, ids, bounds)
        self.ids = self.ids[: kernels.join(self.ids, roles, known, new, self.table.counts)]
        log.info(f"phrases: {counted(len(phrases), 'phrase')}; words joined {before - len(self.ids):,} times")

    def numbers(self, words: Iterable[str]) -> np.ndarray:
        """Return the IDs of words, int32 [n], which are new words of the text if necessary."""
        ids: np.ndarray = self.table.add(" ".join([*words, ""]).encode())
        return ids

    def spelled(self) -> Iterator[bytes]:
        """Yield the text in blocks of UTF-8, with a blank between words."""
        table, ids = self.table, self.ids
        lengths = np.diff(table.starts[: len(table) + 1])

        def spell(start: int) -> bytes:
            block = ids[start : start + BLOCK]
            out = np.empty(lengths[block].sum(), np.uint8)
            begins = start == 0 or ids[start - 1] == 0
            return out[: kernels.spell(out, block, table.arena, table.starts, begins)].tobytes()

        yield from ahead([spell] * self.threads, range(0, len(ids), BLOCK))


class Words:
    """What the kernels know about the words of a Text; see kernels/text/phrases.py for the arrays."""

    def __init__(self, text: Text, settings: PhraseSettings) -> None:
        connectors, table = text.numbers(settings.connector_words), text.table
        self.across = settings.scoring == "word2phrase"  # word2phrase counts pairs across line ends, too
        self.counts, self.connects = table.counts[: len(table)], np.zeros(len(table), np.uint8)
        self.connects[connectors] = 1
        self.H, self.P = np.empty((2, len(table)), np.uint64)
        kernels.hash_words(self.H, self.P, table.arena, table.starts)
        self.delimiter = np.empty((2, 1), np.uint64)
        spelled = np.frombuffer(f"{settings.delimiter}\n".encode(), np.uint8)
        kernels.hash_words(*self.delimiter, spelled, np.array([0, len(spelled)]))

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.H, self.P, self.connects, self.delimiter[:, 0]


class Partition:
    """Counts the words and pairs of a hash partition in a table of its own, which grows up to `most` rows.

    used     number of different strings in the table
    dropped  strings counted this often or less when the table was full were dropped
    """

    def __init__(self, part: int, parts: int, slots: int, most: int) -> None:
        self.part, self.parts, self.slots, self.most, self.used, self.dropped = part, parts, slots, most, 0, 0

    def count(self, ids: np.ndarray, words: Words) -> Partition:
        which, V = (self.part, self.parts), len(words.H)
        table = rows(max(self.slots, 2 * V // self.parts + 1024))
        ring, state = np.empty(kernels.AHEAD, np.uint64), np.zeros(4, np.int64)
        state[kernels.USED] = kernels.add_words(table, words.H, words.counts, words.connects, *which)
        while True:
            limit = int(FULL * len(table)) - kernels.AHEAD
            kernels.count(table, state, ring, ids, *words.arrays, words.across, *which, limit)
            if state[kernels.POSITION] == len(ids):
                break
            if 3 * len(table) <= self.most:
                smaller, table = table, rows(2 * len(table))
            else:
                self.dropped += 1
                smaller = table[table[:, 1] > self.dropped]
                table[:] = 0
            state[kernels.USED] = kernels.copy(table, smaller, 0)
        self.table, self.used = table, int(state[kernels.USED])
        return self


def rows(n: int) -> np.ndarray:
    """Return an empty hash table of n rows."""
    table: np.ndarray = map_zeros(2 * n, np.uint64).reshape(-1, 2)
    return table
