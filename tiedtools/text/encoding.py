"""A text read once: its vocabulary, and the text itself as int32 ids in a temporary file."""

import contextlib
import ctypes
import dataclasses
import os
import re
import tempfile
from typing import BinaryIO

import numpy as np

from tiedtools.errors import TiedtoolsError, unreadable
from tiedtools.kernels import tokenize
from tiedtools.messages import log
from tiedtools.text.sources import NO_UTF8, ZERO_BYTE, blocks, shown
from tiedtools.text.vocab import END, Vocab, select

BLOCK = 1 << 18  # ids renumbered at a time


@dataclasses.dataclass
class EncodedText:
    """A text as int32 ids, which lie in a file and are read where they are wanted, so that memory holds none of them.

    vocab        the Vocab; id 0 ends a line, and words outside the vocabulary have no id
    file         binary file of the ids, all of it written out; it is closed with this object
    size         number of ids
    tokens_read  every token of the text, words outside the vocabulary and line ends included
    """

    vocab: Vocab
    file: BinaryIO
    size: int
    tokens_read: int

    def read(self, start, out):
        """Fill `out` (int32 [n]), or as much of it as there is, with the ids from `start` on; returns the filled part.

        Any number of threads may read at once. Raises TiedtoolsError if the file cannot be read any more.
        """
        out = out[: max(0, self.size - start)]
        view, done = memoryview(out.view(np.uint8)), 0
        try:
            while done < len(view):
                # One call may give less: on Linux at most 2 GiB.
                n = os.preadv(self.file.fileno(), [view[done:]], 4 * start + done)
                if not n:
                    raise OSError("the ids of the text end too early")
                done += n
        except OSError as error:
            raise unreadable(tempfile.gettempdir(), error) from None
        return out

    def parts(self):
        """Yield all ids in order, in arrays of which each is valid until the next."""
        block = np.empty(BLOCK, np.int32)
        for start in range(0, self.size, BLOCK):
            yield self.read(start, block)

    @property
    def ids(self):
        """All ids at once, int32 [size]: for small texts."""
        return self.read(0, np.empty(self.size, np.int32))

    def __del__(self):
        with contextlib.suppress(OSError):  # what did not fit the disk, which has been told
            self.file.close()


class WordTable:
    """The words met so far, numbered in order of first appearance from `</s>`, number 0, with their counts."""

    def __init__(self, words=(END,)):
        self.capacity = 1 << 15
        self.table = np.zeros((2 * self.capacity, 2), np.uint64)
        self.counts = np.zeros(self.capacity, np.int64)
        self.starts = np.zeros(self.capacity + 1, np.int64)
        self.arena = np.empty(16 * self.capacity, np.uint8)
        self.state = np.zeros(5, np.int64)
        self.ids = np.empty(0, np.int32)
        for _ in self.encode(" ".join([*words, ""]).encode()):
            pass
        self.counts[:] = 0

    def __len__(self):
        return int(self.state[tokenize.WORDS])

    @property
    def words(self):
        return self.arena[: self.state[tokenize.USED]].tobytes().decode().split("\n")[:-1]

    def vocab(self, min_count, max_vocab):
        """The Vocab of the words that `select` chooses. Returns (Vocab, int32 new id by old id, -1: gone)."""
        return self.chosen(select(self.counts[: len(self)], min_count, max_vocab))

    def chosen(self, order, counts=None):
        """The Vocab of the words numbered `order`, with their own or these counts. Returns as `vocab` does."""
        counts = self.counts if counts is None else counts
        arena, ends = self.arena.data, self.starts[order + 1] - 1
        # One by one, since most words of a text are rare, and strings of all of them would fill memory for nothing.
        words = [str(arena[i:j], "utf-8") for i, j in zip(self.starts[order].tolist(), ends.tolist())]
        new_id = np.full(len(self), -1, np.int32)
        new_id[order] = np.arange(len(order))
        return Vocab(words, counts[order]), new_id

    def encode(self, text, grow=True, unknown=-1):
        """Yield the ids of `text` (bytes ending in white space) in pieces, each valid until the next.

        Words not in the table are added, or where `grow` is false counted as unknown and given the id `unknown`, or
        none where that is negative.
        Raises ValueError, with the offset of the bad byte as its second argument, at text that is no UTF-8.
        """
        text = np.frombuffer(text, np.uint8)
        if self.ids.size < text.size:
            self.ids = np.empty(text.size, np.int32)
        self.state[tokenize.POSITION] = 0
        status = tokenize.FULL
        while status == tokenize.FULL:
            used = self.state[tokenize.USED]
            status, n = tokenize.encode(
                self.ids, self.counts, self.starts, self.arena, self.table, self.state, text, grow, unknown
            )
            if status == tokenize.NUL:
                raise ValueError(ZERO_BYTE, int(self.state[tokenize.POSITION]))
            self.check_utf8(text, int(used), grow)
            yield self.ids[:n]
            if status == tokenize.FULL:
                self.enlarge()

    def check_utf8(self, text, used, grow):
        """Each new word is followed by a newline in the arena, so bytes that are no UTF-8 cannot hide across two.

        Where the table does not grow, all of the text is looked at: words that it lacks are in no arena.
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

    def enlarge(self):
        self.capacity *= 2
        table = np.zeros((2 * self.capacity, 2), np.uint64)
        tokenize.rehash(table, self.table)
        self.table = table
        self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])
        self.starts = np.concatenate([self.starts, np.zeros_like(self.starts)])
        self.arena = np.concatenate([self.arena, np.empty_like(self.arena)])


def count(paths, errors="strict", vocab=None, keep=None, unk=None):
    """Read the text at `paths` (none: standard input) into a WordTable; ids go to the binary file `keep`, if any.

    With a `vocab` only its words are known; others have no id, or that of `unk`, one of its words. Without a `vocab`
    an `unk` is word 1 of the table, met or not. Returns (WordTable, tokens read).
    Raises TiedtoolsError naming file and line at bytes that are no text.
    """
    words = vocab.words if vocab else [END, unk] if unk else [END]
    table, unknown = WordTable(words), words.index(unk) if unk else -1
    path, first_line = None, 0
    for block_path, block in blocks(paths, errors):
        if block_path != path:
            path, first_line = block_path, int(table.state[tokenize.LINES])
        before = int(table.state[tokenize.LINES])
        try:
            for ids in table.encode(block, vocab is None, unknown):
                if keep:
                    keep.write(ids)
        except ValueError as error:
            reason, offset = error.args
            line = before - first_line + block.count(b"\n", 0, offset) + 1
            raise TiedtoolsError(f"{shown(path)}:{line}: {reason}") from None
    tokens = int(table.counts.sum() + table.state[tokenize.UNKNOWN])
    if typed := int(table.counts[0] - table.state[tokenize.LINES]):
        log.warning(
            f"{shown(*paths)}: `{END}` is typed {typed:,} times and taken for a line's end, as in word2vec.c and rnnlm"
        )
    if tokens == table.counts[0]:
        raise TiedtoolsError(f"{shown(*paths)}: no words; give a text")
    return table, tokens


def renumber(file, size, new_id):
    """Replace each of the `size` ids k in a file by new_id[k], closing up over negative ones; returns how many stay."""
    block = np.empty(BLOCK, np.int32)
    left = 0
    for start in range(0, size, BLOCK):
        ids = block[: size - start]
        file.seek(4 * start)
        file.readinto(ids)
        ids = ids[: tokenize.renumber(ids, new_id)]
        file.seek(4 * left)
        file.write(ids)
        left += ids.size
    file.truncate()
    return left


def encode(paths, min_count=1, max_vocab=None, vocab=None, errors="strict"):
    """Tokenise the text at `paths` once and return it as an EncodedText.

    With a `vocab` its words and counts are taken as they are; otherwise the text's own words, counted at least
    `min_count` times, at most `max_vocab` of them with `</s>`. Memory: the words; disk: 4 bytes a token.

    Raises TiedtoolsError for an unreadable text, and for one without a word of the vocabulary.
    """
    file = tempfile.TemporaryFile(prefix="tiedtools-")
    text = EncodedText(vocab, file, 0, 0)
    try:
        table, text.tokens_read = count(paths, errors, vocab, keep=file)
        file.flush()
        text.size = os.fstat(file.fileno()).st_size // 4
        if vocab is None:
            text.vocab, new_id = table.vocab(min_count, max_vocab)
            text.size = renumber(file, text.size, new_id)
    except OSError as error:
        problem = f"{tempfile.gettempdir()}: {error.strerror}, at 4 bytes for each word of the text"
        raise TiedtoolsError(f"{problem}; set TMPDIR to a folder with room") from None
    counts = text.vocab.counts if vocab is None else table.counts
    if not counts[1:].any():
        raise TiedtoolsError(
            f"{shown(*paths)}: no word of the vocabulary in {text.tokens_read:,} tokens;"
            " lower `min_count` or use another vocabulary"
        )
    del table, counts
    # glibc keeps what is freed here for itself, and the matrices that come next do not fit into it.
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    return text
