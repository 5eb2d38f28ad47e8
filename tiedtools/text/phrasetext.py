"""A text in which phrases are found and joined, as word IDs in a temporary file."""

import itertools
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from tiedtools.base import memory
from tiedtools.base.messages import log
from tiedtools.base.processor import ahead, available_cores
from tiedtools.kernels.text import phrases as kernels
from tiedtools.text.counting import NO_WORD, WordTable, count, map_zeros
from tiedtools.text.sources import counted

BLOCK = 1 << 18  # IDs written at a time
SAMPLE = 64  # the number of different pairs is estimated from this fraction of them
FULL, ROW = 0.75, 16  # largest proportion of a table's rows that are in use; bytes of a row


class PhraseText:
    """A text, read once; paths and errors as for counting.count, which see for its exceptions."""

    def __init__(self, paths: Sequence[Any], errors: str = "strict") -> None:
        with tempfile.TemporaryFile(prefix="tiedtools-") as file:
            self.table, _ = count(paths, errors, keep=file, end=NO_WORD)
            self.ids = np.asarray(np.memmap(file, np.int32, "r+"))
        self.threads = available_cores()

    def find(self, settings: Any, threshold: float) -> list[tuple[tuple[str, ...], float, int]]:
        """Count words and pairs; return those above the threshold in the form of phrases.Phrase, by first occurrence.

        settings  phrases.Phrases
        """
        connectors, table = self.table.numbers(settings.connector_words), self.table
        V, delimiter = len(table), np.empty((2, 1), np.uint64)
        connects, (H, P), counts = np.zeros(V, np.uint8), np.empty((2, V), np.uint64), np.zeros(V, np.int64)
        connects[connectors] = 1
        spelled = np.frombuffer(f"{settings.delimiter}\n".encode(), np.uint8)
        kernels.hash_words(H, P, table.arena, table.starts)
        kernels.hash_words(*delimiter, spelled, np.array([0, len(spelled)]))
        words = self.ids, H, P, connects, delimiter[:, 0]
        across = settings.scoring == "word2phrase"  # word2phrase counts pairs across line ends, too

        def tally(part: int, parts: int, slots: float, most: float) -> tuple[np.ndarray, int, int]:
            """Count a hash partition: (table, its entries, counts up to which entries were dropped)."""
            found = rows(max(int(slots), 2 * V // parts + 1024))
            state, dropped = np.zeros(3, np.int64), 0
            state[kernels.USED] = kernels.add_words(found, H, table.counts, connects, part, parts)
            while True:
                kernels.count(found, state, *words, across, part, parts, int(FULL * len(found)))
                if state[kernels.POSITION] == len(self.ids):
                    return found, int(state[kernels.USED]), dropped
                if 3 * len(found) <= most:
                    smaller, found = found, rows(2 * len(found))
                else:
                    dropped += 1
                    smaller = found[found[:, 1] > dropped]
                    found[:] = 0
                state[kernels.USED] = kernels.copy(found, smaller, 0)

        budget = int(1e6 * settings.max_memory if settings.max_memory else memory.available() / 2)
        estimate = SAMPLE * tally(0, SAMPLE, 0, budget / ROW)[1]
        need = ROW * (estimate / FULL * 1.1 + (self.threads << 15))
        about = f"phrases: about {max(estimate, len(self.table)):,} different words and pairs, {need / 1e6:,.0f} MB"
        log.info(about if need <= budget else f"{about}, more than `max_memory={budget / 1e6:.0f}`")
        sizes = [size / ROW / self.threads for size in (min(need, budget), budget)]
        with ThreadPoolExecutor(self.threads) as pool:
            tables, entries, dropped = zip(*pool.map(lambda k: tally(k, self.threads, *sizes), range(self.threads)))
        if max(dropped):
            what = f"pairs counted at most {counted(max(dropped), 'time')} were dropped when memory was full"
            log.warning(f"phrases: {what}; counts are approximate; raise `max_memory`")
        least = settings.min_count
        frequent = rows(2 * sum(int((found[:, 1] >= least).sum()) for found in tables) + 1)
        for part, found in enumerate(tables):
            kernels.look_up(counts, found, H, part, self.threads)
            kernels.copy(frequent, found, least)

        limit = float(np.float32(threshold)) if across else threshold
        limits = getattr(kernels, settings.scoring.upper()), limit, least
        n, capacity, totals = 1, 0, np.array([table.counts[1:V].sum(), sum(entries)])
        while n > capacity:  # at most twice, if a string is a phrase in several ways, such as a_b + c and a + b_c
            capacity = max(n, len(frequent) // 2)
            spans, scores = np.empty((capacity, 2), np.int64), np.empty((capacity, 2))
            n = kernels.find(spans, scores, rows(2 * capacity + 1), frequent, *words, counts, *limits, totals)
        spelled = table.words
        return [
            (tuple(spelled[k] for k in self.ids[i : j + 1]), score, int(occurrences))
            for (i, j), (score, occurrences) in zip(spans[:n].tolist(), scores[:n].tolist())
        ]

    def join(self, phrases: Collection[Any], delimiter: str) -> None:
        """Join phrases, as from `find`, from left to right, each word in at most one."""
        before, self.ids = len(self.ids), Pass(self.table, phrases, delimiter).join(self.ids)
        log.info(f"phrases: {counted(len(phrases), 'phrase')}; words joined {counted(before - len(self.ids), 'time')}")

    def spelled(self) -> Iterator[bytes]:
        """Yield the text in blocks of UTF-8, with a space between words."""
        block = lambda k: spell(self.table, self.ids[k : k + BLOCK], k == 0 or self.ids[k - 1] == 0)
        return ahead([block] * self.threads, range(0, len(self.ids), BLOCK))


class Pass:
    """Joins the phrases of a pass, as from PhraseText.find, in the IDs of a WordTable, to which it adds their words."""

    def __init__(self, table: WordTable, phrases: Collection[Any], delimiter: str) -> None:
        self.table, self.new = table, table.numbers(delimiter.join(words) for words, *_ in phrases)
        ids = table.numbers(itertools.chain.from_iterable(words for words, *_ in phrases))
        bounds = np.cumsum([0, *(len(words) for words, *_ in phrases)])
        self.known, self.roles = rows(2 * len(phrases) + 1), np.zeros(table.capacity, np.uint8)
        kernels.enter(self.known, self.roles, ids, bounds)

    def join(self, ids: np.ndarray) -> np.ndarray:
        """Join phrases in IDs, int32 [n], in place, from left to right, each word in at most one; return those left."""
        if len(self.roles) < self.table.capacity:
            self.roles = np.append(self.roles, np.zeros(self.table.capacity - len(self.roles), np.uint8))
        return ids[: kernels.join(ids, self.roles, self.known, self.new, self.table.counts)]


def joiner(phrases: Any) -> Callable[[str], str]:
    """Return a function that joins Phrases in whole lines of text, with a space between words; `</s>` is a word."""
    table = WordTable([NO_WORD])
    passes = [Pass(table, phrases_of_pass, phrases.delimiter) for phrases_of_pass in phrases.passes]

    def join(text: str) -> str:
        ids = np.concatenate([part.copy() for part in table.encode(f"{text} ".encode())])
        for one in passes:
            ids = one.join(ids)
        return spell(table, ids, True).decode()

    return join


def spell(table: WordTable, ids: np.ndarray, at_line_start: bool) -> bytes:
    """Return the text of IDs, with a space between words."""
    out = np.empty((table.starts[ids + 1] - table.starts[ids]).sum(), np.uint8)
    return out[: kernels.spell(out, ids, table.arena, table.starts, at_line_start)].tobytes()


def rows(n: int) -> np.ndarray:
    """Return an empty hash table of n rows."""
    return map_zeros(2 * n, np.uint64).reshape(-1, 2)
