"""Single-pass tokenization of a text into its vocabulary and a temporary file of int32 ids."""

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
    """A text as int32 ids in a file; they are read on demand, so memory use does not grow with the text.

    vocab        the Vocab; id 0 ends a line, and out-of-vocabulary words have no id
    file         binary file of the ids, completely written; closed with this object
    size         number of ids
    tokens_read  number of tokens in the text, including out-of-vocabulary words and line ends
    """

    vocab: Vocab
    file: BinaryIO
    size: int
    tokens_read: int

    def read(self, start, out):
        """Fill `out` (int32 [n]) with ids starting at `start`; return the filled part, shorter at the end of the text.

        Thread-safe. Raises TiedtoolsError if the file can no longer be read.
        """
        out = out[: max(0, self.size - start)]
        view, done = memoryview(out.view(np.uint8)), 0
        try:
            while done < len(view):
                # One call may return less than requested: on Linux at most 2 GiB.
                n = os.preadv(self.file.fileno(), [view[done:]], 4 * start + done)
                if not n:
                    raise OSError("the temporary file of token ids is truncated")
                done += n
        except OSError as error:
            raise unreadable(tempfile.gettempdir(), error) from None
        return out

    def parts(self):
        """Yield all ids in order, as arrays that are valid until the next iteration."""
        block = np.empty(BLOCK, np.int32)
        for start in range(0, self.size, BLOCK):
            yield self.read(start, block)

    def sentences(self):
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
    def ids(self):
        """All ids, int32 [size]; only for small texts."""
        return self.read(0, np.empty(self.size, np.int32))

    def __del__(self):
        with contextlib.suppress(OSError):  # a full disk, already reported
            self.file.close()


class WordTable:
    """Growing hash table of words and counts; words are numbered by first occurrence, `</s>` is 0."""

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
        """Build the Vocab of the words that `select` chooses.

        Returns (Vocab, int32 map from old to new ids, -1 for dropped words).
        """
        return self.chosen(select(self.counts[: len(self)], min_count, max_vocab))

    def chosen(self, order, counts=None):
        """Build the Vocab of the words numbered `order`, with their own or the given counts. Returns as `vocab`."""
        counts = self.counts if counts is None else counts
        arena, ends = self.arena.data, self.starts[order + 1] - 1
        # One by one: most words of a text are rare and dropped, and strings of all of them would waste memory.
        words = [str(arena[i:j], "utf-8") for i, j in zip(self.starts[order].tolist(), ends.tolist())]
        new_id = np.full(len(self), -1, np.int32)
        new_id[order] = np.arange(len(order))
        return Vocab(words, counts[order]), new_id

    def encode(self, text, grow=True, unknown=-1):
        """Yield the ids of `text` (bytes ending in whitespace) in arrays that are valid until the next iteration.

        Unknown words are added to the table. If `grow` is false, they are counted as unknown instead and get the id
        `unknown`, or none if that is negative.
        Raises ValueError(reason, byte offset) for invalid UTF-8 or a null byte.
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
        """Raise ValueError(reason, byte offset) if the words just read are not valid UTF-8.

        Only new words are checked; in the arena, each ends in a newline, so no sequence spans two words. If the table
        does not grow, unknown words are not in the arena, and the whole text is checked.
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
    """Read the text at `paths` (none: standard input) into a WordTable, writing its ids to the binary file `keep`.

    With a `vocab`, all other words have no id, or that of `unk`, one of its words. Without a `vocab`, `unk` is word 1
    of the table even if it does not occur. Returns (WordTable, tokens read).
    Raises TiedtoolsError with file and line for bytes that are not text.
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
            f"{shown(*paths)}: `{END}` occurs {typed:,} times and is read as a line end, as in word2vec.c and rnnlm"
        )
    if tokens == table.counts[0]:
        raise TiedtoolsError(f"{shown(*paths)}: no words; give a text")
    return table, tokens


def renumber(file, size, new_id):
    """Replace each id k of a file by new_id[k] in place, removing negative ones; return the number of ids left."""
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
    """Tokenize the text at `paths` in one pass and return it as an EncodedText.

    A given `vocab` is used unchanged; otherwise the vocabulary is the words that occur at least `min_count` times, at
    most `max_vocab` including `</s>`. Memory grows with the number of words; disk use is 4 bytes per token.

    Raises TiedtoolsError for an unreadable text, and for one without any word of the vocabulary.
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
        problem = f"{tempfile.gettempdir()}: {error.strerror}; token ids need 4 bytes of disk space per word"
        raise TiedtoolsError(f"{problem}; set TMPDIR to a folder with more free space") from None
    counts = text.vocab.counts if vocab is None else table.counts
    if not counts[1:].any():
        raise TiedtoolsError(
            f"{shown(*paths)}: no word of the vocabulary in {text.tokens_read:,} tokens;"
            " lower `min_count` or use another vocabulary"
        )
    del table, counts
    # glibc would keep the freed memory, which is too fragmented for the matrices allocated next.
    getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
    return text
