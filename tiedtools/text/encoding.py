"""Tokenize a text in a single pass into its vocabulary and a temporary file of int32 IDs; rearrange its documents."""

import contextlib
import ctypes
import dataclasses
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np

from tiedtools.base.errors import unreadable
from tiedtools.text.counting import BLOCK, common_vocab, count, renumber, writing_ids
from tiedtools.text.lmtext import NO_UNK, ids_without_unk, with_unk
from tiedtools.text.vocab import END, Vocab, no_words


@dataclasses.dataclass
class EncodedText:
    """A text as int32 IDs in a file, read on demand, so that memory use does not grow with the text.

    vocab        the Vocab; ID 0 ends a line, and out-of-vocabulary words have no ID
    file         binary file of the IDs, completely written; closed with this object
    size         number of IDs
    tokens_read  number of tokens in the text, including out-of-vocabulary words and line ends
    counts       int64 [V], occurrences of each word in this text if the vocabulary counts others, too; otherwise None
    """

    vocab: Vocab
    file: BinaryIO
    size: int
    tokens_read: int
    counts: np.ndarray | None = None

    @property
    def occurrences(self) -> np.ndarray:
        """Occurrences of each word in this text, int64 [V]."""
        return self.vocab.counts if self.counts is None else self.counts

    def read(self, start: int, out: np.ndarray) -> np.ndarray:
        """Fill `out` (int32 [n]) with IDs starting at `start`; return the filled part, shorter at the end of the text.

        Thread-safe. Raises TiedtoolsError if the file can no longer be read.
        """
        out = out[: max(0, self.size - start)]
        view, done = out.view(np.uint8).data, 0
        try:
            while done < len(view):
                # One call may return less than requested: on Linux at most 2 GiB.
                n = os.preadv(self.file.fileno(), [view[done:]], 4 * start + done)
                if not n:
                    raise OSError("the temporary file of token IDs is truncated")
                done += n
        except OSError as error:
            raise unreadable(tempfile.gettempdir(), error) from None
        return out

    def parts(self) -> Iterator[np.ndarray]:
        """Yield all IDs in order, as arrays that are valid until the next iteration."""
        block = np.empty(BLOCK, np.int32)
        for start in range(0, self.size, BLOCK):
            yield self.read(start, block)

    def sentences(self) -> Iterator[list[str]]:
        """Yield the lines of the text as lists of words, without out-of-vocabulary words."""
        line, words = [], self.vocab.words
        for ids in self.parts():
            for k in ids.tolist():
                if k:
                    line.append(words[k])
                else:
                    yield line
                    line = []
        if line:
            yield line

    @property
    def ids(self) -> np.ndarray:
        """All IDs, int32 [size]; only for small texts."""
        return self.read(0, np.empty(self.size, np.int32))

    def __del__(self) -> None:
        with contextlib.suppress(OSError):  # a full disk, already reported
            self.file.close()


def encode(
    paths: Sequence[Any], min_count: int = 1, max_vocab: int | None = None, vocab: Vocab | None = None,
    errors: str = "strict", threads: int | None = None, ranks: Any = None, marks: Any = None,
    known: Vocab | None = None, grow: bool = False, end: str = END,
) -> EncodedText:  # fmt: skip
    """Tokenize the text at `paths` in one pass and return it as an EncodedText.

    `vocab` is used unchanged; without it, the vocabulary is the words that occur at least `min_count` times, at most
    `max_vocab` of them including `</s>`. Memory grows with the number of words; disk use is 4 bytes per token.

    threads  number of counting threads; None: see `count`
    ranks    the ranks that encode a text together, as for counting.merge_ranks: `paths` is the share of this rank, from
             parts.shares, and the vocabulary is built from the shares of all ranks; None: one process
    known    a Vocab whose words are all in the vocabulary, with the sum of both counts
    grow     whether the other words of the text are, too, selected as above
    marks    Marks that record where documents begin, or None
    end      word of the text that also ends a line, word 0 of the vocabulary; counting.NO_WORD: none

    Raises TiedtoolsError for an unreadable text, or if no word of the text is in the vocabulary.
    """
    file = tempfile.TemporaryFile(prefix="tiedtools-")
    text = EncodedText(vocab, file, 0, 0)  # type: ignore[arg-type]
    more = ranks is not None and ranks.rank < ranks.size - 1
    # For marks, unknown words have an ID while they are read, so that their lines are not empty.
    words, unk = (with_unk(vocab, NO_UNK), NO_UNK) if marks and vocab else (vocab, None)
    table, text.tokens_read = count(paths, errors, words, file, unk, threads, more, marks, end)
    with writing_ids():
        text.size = os.fstat(file.fileno()).st_size // 4
        found = table.counts[1:].any()
        if vocab is None:
            choice = min_count, max_vocab
            if known is not None:
                text.vocab, new_id, text.counts = table.extended(known, *choice if grow else (math.inf, None))
            else:
                text.vocab, new_id = table.vocab(*choice) if ranks is None else common_vocab(table, ranks, *choice)
            found = (new_id[1:] >= 0).any() if text.counts is None else text.counts[1:].any()
            text.size = renumber(file, new_id)
        elif marks:
            text.size = renumber(file, ids_without_unk(vocab))
    if not (found if ranks is None else any(ranks.exchange(bool(found)))):
        raise no_words(paths, text.tokens_read, None if grow else known, "; with `slices`, lower `min_count`")
    del table
    # glibc would keep the freed memory, which is too fragmented for the matrices allocated next.
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    return text


class Marks:
    """Marks where documents begin while a text is encoded; an argument of `encode`.

    kind     "line"; "paragraph" or "record": an empty line ends a document, and that of a record is not kept; or "file"
    unit     the same for the text as it is read: "lines", as of a Raw, if its lines are divided into sentences
    files    number of line ends before each file but the first
    starts   number of line ends before each document but the first; for lines, none
    omitted  number of line ends that are not kept
    """

    def __init__(self, kind: str, unit: str | None = None) -> None:
        self.kind, self.unit = kind, unit or kind
        self.path, self.ends, self.omitted, self.line_ended = None, 0, 0, False
        self.files: list[int] = []
        self.starts: list[int] = self.files if kind == "file" else []

    def see(self, path: Any, ids: np.ndarray) -> np.ndarray:
        """Record the marks of the next block of IDs of the text at `path`, and return those to keep."""
        ends = ids == 0
        if path != self.path and self.path is not None:
            self.files.append(self.ends)
            if self.unit in ("paragraph", "record", "lines"):  # none continues in the next file
                self.starts.append(self.ends)
        if self.unit in ("paragraph", "record", "lines"):
            empty = ends & np.append(self.line_ended, ends[:-1])
            self.line_ended = bool(ends[-1]) if ends.size else self.line_ended
            if self.unit in ("record", "lines"):
                self.omitted, ends = self.omitted + int(np.count_nonzero(empty)), ends & ~empty
                ids = ids[~empty]
            self.starts += (self.ends + np.cumsum(ends)[empty]).tolist()
        self.path, self.ends = path, self.ends + int(np.count_nonzero(ends))
        return ids

    def bounds(self, ids: np.ndarray) -> np.ndarray:
        """Return the bounds of the documents among the IDs of the text, int64 [documents + 1].

        A document has at least one word; lines without words belong to the document before them, or to the first.
        """
        after = np.flatnonzero(ids == 0) + 1
        starts = after if self.unit == "line" else after[np.array(self.starts, np.int64) - 1]
        bounds = np.unique(np.concatenate([[0], starts, [ids.size]]))
        words = bounds - np.searchsorted(after, bounds, "right")
        return np.concatenate([[0], bounds[:-1][np.diff(words) > 0][1:], [ids.size]]).astype(np.int64)


def ranges(starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the numbers starts[k], ..., starts[k] + sizes[k] - 1 for each k, one range after another, int64."""
    numbers = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    numbers += np.arange(numbers.size)
    return numbers


def rearranged(words: list[str], ids: np.ndarray, bounds: np.ndarray, order: np.ndarray) -> EncodedText:
    """Return the text of the documents `order` as an EncodedText, whose vocabulary has the counts of this text.

    words  the vocabulary; ids, bounds: of the documents, as returned by Marks.bounds
    """
    file, counts, lengths = tempfile.TemporaryFile(prefix="tiedtools-"), np.zeros(len(words), np.int64), np.diff(bounds)
    for part in np.array_split(order, 1 + ids.size // BLOCK):
        new = ids[ranges(bounds[part], lengths[part])]
        counts += np.bincount(new, minlength=len(words))
        with writing_ids():
            file.write(new.data)
            file.flush()
    return EncodedText(Vocab(words, counts), file, int(counts.sum()), 0)
