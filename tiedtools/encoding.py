"""A text read once: its vocabulary, and the text itself as int32 ids in a temporary file."""

import dataclasses
import os
import re
import tempfile

import numpy as np

from tiedtools.errors import TiedtoolsError
from tiedtools.kernels import tokenize
from tiedtools.text import blocks
from tiedtools.vocab import END, Vocab, select


@dataclasses.dataclass
class EncodedText:
    """vocab: a Vocab. ids: int32 [tokens], memory-mapped; 0 ends a line, words outside `vocab` are left out.

    tokens_read counts every token of the text, words outside the vocabulary and line ends included.
    """

    vocab: Vocab
    ids: np.ndarray
    tokens_read: int


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

    def encode(self, text, grow=True):
        """Yield the ids of `text` (bytes ending in white space) in pieces, each valid until the next.

        Words not in the table are added, or where `grow` is false passed over and counted as unknown.
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
                self.ids, self.counts, self.starts, self.arena, self.table, self.state, text, grow
            )
            if status == tokenize.NUL:
                raise ValueError("a zero byte; is this plain text?", int(self.state[tokenize.POSITION]))
            self.check_utf8(text, int(used))
            yield self.ids[:n]
            if status == tokenize.FULL:
                self.enlarge()

    def check_utf8(self, text, used):
        """Each new word is followed by a newline in the arena, so bytes that are no UTF-8 cannot hide across two."""
        new = self.arena[used : self.state[tokenize.USED]].tobytes()
        try:
            new.decode()
        except UnicodeDecodeError as error:
            start = new.rfind(b"\n", 0, error.start) + 1
            word = new[start : new.index(b"\n", error.start)]
            where = re.search(rb"(?:^|(?<=[\t-\r ]))" + re.escape(word) + rb"(?=[\t-\r ])", text.tobytes()).start()
            reason = f"byte 0x{new[error.start]:02x} is no UTF-8; is this plain text? --errors replace reads it"
            raise ValueError(reason, where) from None

    def enlarge(self):
        self.capacity *= 2
        table = np.zeros((2 * self.capacity, 2), np.uint64)
        tokenize.rehash(table, self.table)
        self.table = table
        self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])
        self.starts = np.concatenate([self.starts, np.zeros_like(self.starts)])
        self.arena = np.concatenate([self.arena, np.empty_like(self.arena)])


def shown(*paths):
    """Sources as messages name them."""
    return ", ".join("standard input" if path == "-" else path for path in paths or ["-"])


def count(paths, errors="strict", vocab=None, keep=None):
    """Read the text at `paths` (none: standard input) into a WordTable; ids go to the binary file `keep`, if any.

    With a `vocab` only its words are known. Returns (WordTable, tokens read).
    Raises TiedtoolsError naming file and line at bytes that are no text.
    """
    table = WordTable(vocab.words) if vocab else WordTable()
    path, first_line = None, 0
    for block_path, block in blocks(paths, errors):
        if block_path != path:
            path, first_line = block_path, int(table.state[tokenize.LINES])
        before = int(table.state[tokenize.LINES])
        try:
            for ids in table.encode(block, grow=vocab is None):
                if keep:
                    keep.write(ids)
        except ValueError as error:
            reason, offset = error.args
            line = before - first_line + block.count(b"\n", 0, offset) + 1
            raise TiedtoolsError(f"{shown(path)}:{line}: {reason}") from None
    tokens = int(table.counts.sum() + table.state[tokenize.UNKNOWN])
    if tokens == table.counts[0]:
        raise TiedtoolsError(f"{shown(*paths)}: no words; give a text")
    return table, tokens


def encode(paths, min_count=1, max_vocab=None, vocab=None, errors="strict"):
    """Tokenise the text at `paths` once and return it as an EncodedText.

    With a `vocab` its words and counts are taken as they are; otherwise the text's own words, counted at least
    `min_count` times, at most `max_vocab` of them with `</s>`. Memory: the words and 4 bytes a token, the latter
    in a temporary file that the system can page out.

    Raises TiedtoolsError for an unreadable text, and for one without a word of the vocabulary.
    """
    with tempfile.TemporaryFile(prefix="tiedtools-") as file:
        try:
            table, tokens_read = count(paths, errors, vocab, keep=file)
            file.flush()
        except OSError as error:
            problem = f"{tempfile.gettempdir()}: {error.strerror}, at 4 bytes for each word of the text"
            raise TiedtoolsError(f"{problem}; set TMPDIR to a folder with room") from None
        if vocab:
            new_id = np.arange(len(vocab), dtype=np.int32)
        else:
            vocab, new_id = select(table.words, table.counts[: len(table)], min_count, max_vocab)
        tokens = os.fstat(file.fileno()).st_size // 4
        ids = np.memmap(file, np.int32, "r+", shape=tokens).view(np.ndarray)
        ids = ids[: tokenize.renumber(ids, new_id)]
    if len(vocab) < 2 or table.counts[: len(table)][new_id >= 0][1:].sum() == 0:
        raise TiedtoolsError(
            f"{shown(*paths)}: no word of the vocabulary in {tokens_read:,} tokens;"
            " lower -min-count or use another vocabulary"
        )
    return EncodedText(vocab, ids, tokens_read)
