"""The words of a text, and what a language model reads for each of them.

A few commands print the words again, so they are read here as Python strings; training text goes through `encoding`.
"""

import re

import numpy as np

from tiedtools.errors import TiedtoolsError
from tiedtools.messages import log
from tiedtools.text.sources import WORD, Decoder, blocks, byte_lines, counted, open_source, shown
from tiedtools.text.vocab import END, UNK

OOV = -1
START = "<s>"
NEWLINE = "\n"
PIECE = 1 << 14  # words of a text in memory at a time

TOKEN = re.compile(rf"\n|{WORD.pattern}")


class Lexicon:
    """Words to codes: the id in the Vocab, 0 for a line's end, OOV for every word that the vocabulary lacks.

    Nothing but a line's end is `</s>`: typed inside a line it is one more word outside the vocabulary, so that it
    shows among the OOVs instead of passing for the end of a sentence.

    unk   id of `<unk>`, which stands for the words outside the vocabulary; None: they cannot be read or scored
    oovs  how many there were so far
    """

    def __init__(self, vocab):
        self.words = vocab.words
        self.index = {word: k for k, word in enumerate(vocab.words) if k}
        self.index[NEWLINE] = 0
        self.unk = self.index.get(UNK)
        self.oovs = 0
        self.marked = False

    def codes(self, words):
        """Codes int32 [n] of n words, a line's end being NEWLINE."""
        get = self.index.get
        codes = np.fromiter((get(word, OOV) for word in words), np.int32, len(words))
        self.oovs += int((codes == OOV).sum())
        if not self.marked and any(mark in words and mark not in self.index for mark in (START, END)):
            self.marked = True
            log.warning(
                f"`{START}` or `{END}` is typed in the text and counts as a word outside the vocabulary: remove it"
            )
        return codes

    def readable(self, codes):
        """Which codes the model can read: bool [n]."""
        return (codes != OOV) | (self.unk is not None)

    def ids(self, codes):
        """What the model reads, int32 [<= n]: `<unk>` for OOV or, without `<unk>`, nothing."""
        ids = codes[self.readable(codes)]
        ids[ids == OOV] = self.unk or 0
        return ids

    def tell_oovs(self):
        """Tell on stderr what became of the words outside the vocabulary, if there were any."""
        if self.oovs:
            fate = f"read as `{UNK}`" if self.unk is not None else f"left out, since the vocabulary has no `{UNK}`"
            log.warning(
                f"{counted(self.oovs, 'word')} outside the vocabulary {'was' if self.oovs == 1 else 'were'} {fate}"
            )


def lines(path, errors="strict"):
    """Yield (line number from 1, list of words) for each line of `path` as soon as it can be read; - is stdin.

    errors  as of Decoder. Raises TiedtoolsError naming file and line at bytes that are no text.
    """
    with open_source(path) as file, Decoder(path, errors) as decode:
        for number, line in enumerate(byte_lines(file, shown(path)), 1):
            yield number, WORD.findall(decode(line))


def pieces(path, errors="strict"):
    """Yield the text at `path` as lists of at most PIECE words, NEWLINE for a line's end.

    The last line has an end even where its newline is missing. Errors as in `lines`; a text of 0 bytes is one, too.
    """
    block = b""
    with Decoder(path, errors) as decode:
        for _, block in blocks([path]):
            tokens = TOKEN.findall(decode(block))
            for start in range(0, len(tokens), PIECE):
                yield tokens[start : start + PIECE]
    if not block:
        raise TiedtoolsError(f"{shown(path)}: is empty; give a text")
    if not block.endswith(b"\n"):
        yield [NEWLINE]
