"""Read texts as words, and map the words to the IDs that a language model reads.

Words are Python strings here, since some commands print them; `text.encoding` reads training text without strings.
"""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.text.sentences import WORD
from tiedtools.text.sources import Decoder, blocks, counted, decoded_lines, shown
from tiedtools.text.vocab import END, UNK, Vocab

OOV = -1
START = "<s>"
NEWLINE = "\n"
PIECE = 1 << 14  # words in memory at a time

TOKEN = re.compile(rf"\n|{WORD.pattern}")


class Lexicon:
    """Maps words to codes: the ID in a Vocab, 0 for a line end, or OOV for a word that is not in the vocabulary.

    `</s>` typed within a line is an OOV, so that it is counted instead of mistaken for a line end.

    unk     ID of `<unk>`, which replaces OOVs; None: without `<unk>`, OOVs can be neither read nor scored
    oovs    number of OOVs so far
    marked  whether the warning about `<s>` and `</s>` in the text has been logged
    """

    def __init__(self, vocab: Vocab) -> None:
        self.words = vocab.words
        self.index = {word: k for k, word in enumerate(vocab.words) if k}
        self.index[NEWLINE] = 0
        self.unk = self.index.get(UNK)
        self.oovs = 0
        self.marked = False

    def codes(self, words: list[str]) -> np.ndarray:
        """Return the codes of n words, int32 [n], and count OOVs; NEWLINE stands for a line end."""
        codes = np.fromiter(map(self.index.get, words, itertools.repeat(OOV)), np.int32, len(words))
        self.oovs += int((codes == OOV).sum())
        if not self.marked and any(mark in words and mark not in self.index for mark in (START, END)):
            self.marked = True
            problem = f"contains `{START}` or `{END}`, which counts as a word outside the vocabulary"
            log.warning(f"the text {problem}; remove it")
        return codes

    def readable(self, codes: np.ndarray) -> np.ndarray:
        """Return whether the model can read each code, bool [n]."""
        return (codes != OOV) | (self.unk is not None)

    def ids(self, codes: np.ndarray) -> np.ndarray:
        """Return the IDs that the model reads, int32 [<= n]; OOVs become `<unk>` or, without `<unk>`, are dropped."""
        ids = codes[self.readable(codes)]
        ids[ids == OOV] = self.unk or 0
        return ids

    def log_oovs(self, otherwise: str = "skipped", noun: str = "word") -> None:
        """Log the number of OOVs, if any, and their treatment: read as `<unk>` or, without it, `otherwise`."""
        if self.oovs:
            fate = f"read as `{UNK}`" if self.unk is not None else f"{otherwise}, since the vocabulary has no `{UNK}`"
            verb = "was" if self.oovs == 1 else "were"
            log.warning(f"{counted(self.oovs, noun)} outside the vocabulary {verb} {fate}")


def lines(path: Any, errors: str = "strict") -> Iterator[tuple[int, list[str]]]:
    """Yield (line number from 1, list of words) for each line of `path` as soon as it is read; `-` is standard input.

    `errors` as in Decoder. Raises TiedtoolsError with file and line for bytes that are not text.
    """
    return enumerate(map(WORD.findall, decoded_lines(path, errors)), 1)


def refuse_empty(path: Any, content: object) -> None:
    """Raise TiedtoolsError for a text without content."""
    if not content:
        raise TiedtoolsError(f"{shown(path)}: is empty; give a text")


def pieces(path: Any, errors: str = "strict") -> Iterator[list[str]]:
    """Yield the text at `path` as lists of at most PIECE words, with NEWLINE for each line end.

    A missing newline at the end of the text is added. Errors as in `lines`; an empty file is an error, too.
    """
    block = b""
    with Decoder(path, errors) as decode:
        for _, block in blocks([path]):
            tokens = TOKEN.findall(decode(block))
            for start in range(0, len(tokens), PIECE):
                yield tokens[start : start + PIECE]
    refuse_empty(path, block)
    if not block.endswith(b"\n"):
        yield [NEWLINE]
