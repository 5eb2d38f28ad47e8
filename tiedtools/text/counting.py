"""Count the words of a text with several threads or ranks; each has a hash table for its blocks of the text."""

import contextlib
import errno
import mmap
import re
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.base.processor import ahead, available_cores
from tiedtools.kernels.text import tokenize
from tiedtools.text.parts import Part, lines_before
from tiedtools.text.sources import NO_UTF8, ZERO_BYTE, blocks, counted, shown
from tiedtools.text.vocab import END, Vocab, select

BLOCK = 1 << 18  # IDs renumbered at a time
AHEAD = 64  # words whose slots are prefetched
WORDS = 1 << 20  # words looked up at a time, which bounds the memory for their numbers
TOTALS = [tokenize.LINES, tokenize.UNKNOWN]
NO_WORD = "\x7f</s>\x7f"  # as first word of a WordTable, makes `</s>` in a text an ordinary word
MOST_TABLES = 4  # maximum number of counting threads: each needs a table, and one thread reads the file for all


def map_zeros(n: int, dtype: Any) -> np.ndarray:
    """Allocate n zeros in a separate memory mapping, which returns to the system as soon as the array is garbage."""
    return np.frombuffer(mmap.mmap(-1, n * np.dtype(dtype).itemsize), dtype)


class WordTable:
    """Growing hash table of words and counts; words are numbered by first occurrence, `</s>` is 0."""

    def __init__(self, words: Iterable[str] = (END,)) -> None:
        self.capacity = 1 << 15
        self.table = map_zeros(4 * self.capacity, np.uint64).reshape(-1, 2)
        self.counts = map_zeros(self.capacity, np.int64)
        self.starts = map_zeros(self.capacity + 1, np.int64)
        self.arena = map_zeros(16 * self.capacity, np.uint8)
        self.state, self.ahead = np.zeros(5, np.int64), np.zeros((AHEAD, 3), np.uint64)
        self.ids = map_zeros(1, np.int32)
        self.numbers(words)

    def __len__(self) -> int:
        return int(self.state[tokenize.WORDS])

    @property
    def tokens(self) -> int:
        """Number of tokens read, including unknown words and line ends."""
        return int(self.counts.sum() + self.state[tokenize.UNKNOWN])

    @property
    def words(self) -> list[str]:
        return self.arena[: self.state[tokenize.USED]].tobytes().decode().split("\n")[:-1]

    def vocab(self, min_count: int, max_vocab: int | None) -> tuple[Vocab, np.ndarray]:
        """Build the Vocab of the words that `vocab.select` selects.

        Returns (Vocab, int32 map from word numbers to IDs, -1 for dropped words).
        """
        return self.vocab_of(select(self.counts[: len(self)], min_count, max_vocab))

    def vocab_of(self, order: np.ndarray, counts: np.ndarray | None = None) -> tuple[Vocab, np.ndarray]:
        """Build the Vocab of the words numbered `order`; returns as `vocab`. `counts` replaces the table's counts."""
        counts = self.counts if counts is None else counts
        arena, ends = self.arena.data, self.starts[order + 1] - 1
        # Decode word by word: most words are rare and dropped, and a string for each of them would waste memory.
        words = [str(arena[i:j], "utf-8") for i, j in zip(self.starts[order].tolist(), ends.tolist())]
        new_id = np.full(len(self), -1, np.int32)
        new_id[order] = np.arange(len(order))
        return Vocab(words, counts[order]), new_id

    def extended(
        self, known: Vocab, min_count: float, max_vocab: int | None, unk: int | None = None
    ) -> tuple[Vocab, np.ndarray, np.ndarray]:
        """Build the Vocab of all words of another Vocab, and of those of the table that `vocab.select` selects.

        The counts of all others are added to that of word number `unk`, if it is not None.
        Returns (Vocab, whose counts are the sums of both; map as in `vocab`; int64 [V], the counts of the table).
        """
        numbers = self.numbers(known.words)
        counts, chosen = self.counts[: len(self)].copy(), np.zeros(len(self), bool)
        chosen[numbers] = chosen[select(counts, min_count, max_vocab)] = True
        if unk is not None:
            chosen[unk] = False
            counts[unk] = counts[~chosen].sum()
            chosen[unk] = counts[unk] > 0 or unk in numbers
        totals = counts.copy()
        totals[numbers] += known.counts
        order = 1 + np.argsort(-totals[1:], kind="stable")
        order = np.concatenate([[0], order[chosen[order]]])
        return *self.vocab_of(order, totals), counts[order]

    def encode(self, text: bytes, grow: bool = True, unknown: int = -1) -> Iterator[np.ndarray]:
        """Yield the IDs of `text` (bytes ending in whitespace) in arrays that are valid until the next iteration.

        New words are added to the table. If `grow` is false, they count as unknown words instead; their ID is `unknown`
        or, if `unknown` is negative, they have no ID.
        Raises ValueError(reason, byte offset) for invalid UTF-8 or a null byte.
        """
        text = np.frombuffer(text, np.uint8)
        if self.ids.size < text.size:
            self.ids = map_zeros(text.size, np.int32)
        self.state[tokenize.POSITION] = 0
        status = tokenize.FULL
        while status == tokenize.FULL:
            used = self.state[tokenize.USED]
            arrays = self.ids, self.counts, self.starts, self.arena, self.table
            status, n = tokenize.encode(*arrays, self.state, self.ahead, text, grow, unknown)
            if status == tokenize.NUL:
                raise ValueError(ZERO_BYTE, int(self.state[tokenize.POSITION]))
            self.check_utf8(text, int(used), grow)
            yield self.ids[:n]
            if status == tokenize.FULL:
                self.enlarge()

    def check_utf8(self, text: np.ndarray, used: int, grow: bool) -> None:
        """Raise ValueError(reason, byte offset) if the words of `text` are not valid UTF-8.

        Only new words are checked: from `used` in the arena, where each ends in a newline, so that no UTF-8 sequence
        spans two words. If the table does not grow, the arena lacks unknown words, and the whole text is checked.
        """
        new = (self.arena[used : self.state[tokenize.USED]] if grow else text).tobytes()
        try:
            new.decode()
        except UnicodeDecodeError as error:
            where = error.start
            if grow:
                start = new.rfind(b"\n", 0, where) + 1
                word = new[start : new.index(b"\n", where)]
                alone = rb"(?:^|(?<=[\t-\r ]))" + re.escape(word) + rb"(?=[\t-\r ])"
                where = next(re.finditer(alone, text.tobytes())).start()
            raise ValueError(NO_UTF8.format(new[error.start]), where) from None

    def spelled(self, first: int, last: int) -> bytes:
        """Return words first .. last - 1 as bytes, each followed by a newline."""
        return self.arena[self.starts[first] : self.starts[last]].tobytes()

    def numbers(self, words: Iterable[str]) -> np.ndarray:
        """Return the numbers of words, int32 [n]; new words are added."""
        return self.add(" ".join([*words, ""]).encode())

    def add(self, words: bytes) -> np.ndarray:
        """Add the new ones of `words`, bytes with a space after each; return the numbers of all words, int32."""
        counts = self.counts.copy()  # adding words must not count them
        numbers = np.frombuffer(self.encoded(words), np.int32)
        self.counts[: len(counts)], self.counts[len(counts) :] = counts, 0
        return numbers

    def encoded(self, text: bytes, grow: bool = True, unknown: int = -1) -> bytes:
        """Return the IDs of `text`, int32, as bytes; see `encode`."""
        return b"".join([ids.tobytes() for ids in self.encode(text, grow, unknown)])

    def enlarge(self) -> None:
        self.capacity *= 2
        table = map_zeros(4 * self.capacity, np.uint64).reshape(-1, 2)
        tokenize.rehash(table, self.table)
        self.table = table
        for name in "counts", "starts", "arena":
            old = getattr(self, name)
            setattr(self, name, new := map_zeros(2 * old.size, old.dtype))
            new[: old.size] = old


@contextlib.contextmanager
def writing_ids() -> Iterator[None]:
    """Raise TiedtoolsError for an OSError in the block, which writes token IDs to a temporary file."""
    try:
        yield
    except OSError as error:
        problem = f"{tempfile.gettempdir()}: {error.strerror}; token IDs need 4 bytes of disk space per word"
        limited = error.errno == errno.EFBIG
        remedy = "raise the limit, `ulimit -f`" if limited else "set TMPDIR to a folder with more free space"
        raise TiedtoolsError(f"{problem}; {remedy}") from None


class Counter:
    """Counts the words of every T-th block of a text in its own WordTable."""

    table: Any = None

    def __init__(self, words: Iterable[str], grow: bool, unknown: int) -> None:
        self.words, self.grow, self.unknown = words, grow, unknown

    def __call__(self, source: tuple[Any, bytes]) -> tuple[Any, bytes, bytes, int, ValueError | None]:
        """Count the block `source`, (path, bytes).

        Returns (path, IDs as bytes, new words with a space after each, number of lines, ValueError or None).
        """
        self.table = table = self.table or WordTable(self.words)
        path, block = source
        words, lines = len(table), int(table.state[tokenize.LINES])
        ids, error = b"", None
        try:
            ids = table.encoded(block, self.grow, self.unknown)
        except ValueError as invalid:
            reason, offset = invalid.args
            error = ValueError(reason, block.count(b"\n", 0, offset))
        new = table.spelled(words, len(table)).replace(b"\n", b" ")
        return path, ids, new, int(table.state[tokenize.LINES]) - lines, error


def count(
    paths: Sequence[Any], errors: str = "strict", vocab: Vocab | None = None, keep: Any = None, unk: str | None = None,
    threads: int | None = None, more: bool = False, marks: Any = None, end: str = END,
) -> tuple[WordTable, int]:  # fmt: skip
    """Count the text at `paths` (none: standard input) in a WordTable, and write its IDs to the binary file `keep`.

    vocab    a Vocab: out-of-vocabulary words have the ID of `unk`, one of its words, or none; None: count all words
    unk      without a `vocab`, word 1 of the table, even if it does not occur
    threads  None: one per core, at most MOST_TABLES; the result does not depend on the number
    more     whether more text follows, as for `blocks`
    marks    encoding.Marks that record where documents begin, or None
    end      word of the text that also ends a line; NO_WORD: none

    Returns (WordTable, tokens read). Raises TiedtoolsError with file and line for bytes that are not text.
    """
    words = vocab.words if vocab else [end, unk] if unk else [end]
    unknown = words.index(unk) if unk else -1
    counters = [Counter(words, vocab is None, unknown) for _ in range(min(threads or available_cores(), MOST_TABLES))]
    # Tables of several counters are merged in text order while they count, so that words are numbered by first
    # occurrence: the table has the numbers of one counter, and `numbers` those of each counter's words in it.
    table, several = WordTable(words), len(counters) > 1
    numbers = [array("i", range(len(table))) for _ in counters]
    path, line = None, 0
    for k, (block_path, ids, new, lines, error) in enumerate(ahead(counters, blocks(paths, errors, more))):
        if block_path != path:
            path, line = block_path, 0
        if error:
            line += lines_before(path) + error.args[1] + 1
            raise TiedtoolsError(f"{shown(path)}:{line}: {error.args[0]}") from None
        line += lines
        known = numbers[k % len(numbers)]
        if several and new:
            known.frombytes(table.encoded(new))
        kept = np.frombuffer(ids, np.int32)
        if marks:
            kept = marks.see(path, kept)
        if keep:
            with writing_ids():
                keep.write(np.frombuffer(known, np.int32).take(kept) if several and vocab is None else kept)
                keep.flush()
    tables = [counter.table for counter in counters if counter.table]
    table.counts[:] = 0  # merging counted the words once
    for part, known in zip(tables if several else [], numbers):
        table.counts[np.frombuffer(known, np.int32)] += part.counts[: len(known)]
        table.state[TOTALS] += part.state[TOTALS]
    table = table if several else (*tables, table)[0]
    if typed := int(table.counts[0] - table.state[tokenize.LINES]):
        what = f"`{END}` occurs {counted(typed, 'time')} and is read as a line end"
        log.warning(f"{shown(*paths)}: {what}, as in word2vec.c and rnnlm")
    if marks:
        table.counts[0] -= marks.omitted
    if table.tokens == table.counts[0]:
        remedy = "use fewer ranks" if any(isinstance(path, Part) for path in paths) else "give a text"
        raise TiedtoolsError(f"{shown(*paths)}: no words; {remedy}")
    return table, table.tokens


def merge_ranks(table: WordTable, ranks: Any) -> None:
    """Merge the WordTables of all ranks into rank 0's table, in a binary tree: r receives from r + 1, r + 2, r + 4, ...

    Rank 0's table becomes the table that a single process would build from the shares in order. The words of a
    receiving table keep their numbers.

    ranks  transport with `rank`, `size`, send(value, to), receive(source), and broadcast(value), which returns rank 0's
           value on every rank
    """
    step = 1
    while step < ranks.size:
        if ranks.rank & step:
            n = len(table)
            spelled = [table.spelled(k, min(k + WORDS, n)) for k in range(1, n, WORDS)]
            ranks.send((spelled, table.counts[:n].copy(), table.state[TOTALS]), ranks.rank - step)
            return
        if ranks.rank + step < ranks.size:
            spelled, counts, totals = ranks.receive(ranks.rank + step)
            numbers = np.concatenate([[0], *(table.add(words.replace(b"\n", b" ")) for words in spelled)])
            table.counts[numbers] += counts
            table.state[TOTALS] += totals
        step *= 2


def common_vocab(table: WordTable, ranks: Any, min_count: int, max_vocab: int | None) -> tuple[Vocab, np.ndarray]:
    """Return the Vocab of all ranks, selected by rank 0, and the map from the word numbers of this rank's WordTable.

    The map is as in WordTable.vocab: int32, -1 for dropped words.
    """
    counted_here = len(table)  # before other ranks' words are added
    merge_ranks(table, ranks)
    vocab = ranks.broadcast(table.vocab(min_count, max_vocab)[0] if ranks.rank == 0 else None)
    new_id = np.full(len(table) + 1, -1, np.int32)  # the last element stands for words that are not in the table
    for k in range(0, len(vocab), WORDS):
        text = " ".join([*vocab.words[k : k + WORDS], ""]).encode()
        numbers = np.frombuffer(table.encoded(text, grow=False, unknown=len(table)), np.int32)
        new_id[numbers] = np.arange(k, k + numbers.size)
    return vocab, new_id[:counted_here]


def count_shares(paths: Sequence[Any], ranks: Any, errors: str = "strict") -> tuple[WordTable, int] | None:
    """Count the words of a text of which `paths` is this rank's share; `ranks` as for `merge_ranks`.

    Returns (WordTable, tokens read) of the whole text on rank 0, as counting.count, and None on other ranks.
    """
    table, _ = count(paths, errors, more=ranks.rank < ranks.size - 1)
    merge_ranks(table, ranks)
    return (table, table.tokens) if ranks.rank == 0 else None


def renumber(file: Any, new_id: np.ndarray) -> int:
    """Replace each ID k of a file with new_id[k] (int32), in place, without negative IDs; return how many remain."""
    file.seek(0)
    block = np.empty(BLOCK, np.int32)
    read = written = 0
    while n := file.readinto(block) // 4:
        read, ids = read + n, block[:n]
        ids = ids[: tokenize.renumber(ids, new_id)]
        file.seek(4 * written)
        file.write(ids)
        file.seek(4 * read)
        written += ids.size
    file.seek(4 * written)
    file.truncate()
    return written
