"""Vocabulary: words and their counts, in word2vec.c's order and file format."""

import dataclasses
import math
import re
from typing import Any, BinaryIO

import numpy as np

from tiedtools.base.errors import TiedtoolsError, quoted
from tiedtools.base.messages import log
from tiedtools.text.sentences import WORD
from tiedtools.text.sources import counted, numbered_lines, shown

COUNT = re.compile("[0-9]{1,18}")
END, UNK = "</s>", "<unk>"


@dataclasses.dataclass
class Vocab:
    """Words by ID, most frequent first; ID 0 is always `</s>`, the end of a line.

    words     list of V strings
    counts    int64 [V]
    subwords  how a model composes the vectors of words: subwords.Subwords, or the Ngrams of word2vec; None: it does not
    """

    words: list[str]
    counts: np.ndarray
    subwords: Any = None

    def __len__(self) -> int:
        return len(self.words)

    @classmethod
    def made_up(cls, V: int = 1000) -> "Vocab":
        """Make a placeholder vocabulary of V words, each with count 1."""
        return cls([END, UNK, *map(str, range(V - 2))], np.ones(V, np.int64))

    @property
    def total(self) -> int:
        """Total token count including `</s>`: word2vec.c's train_words."""
        return int(self.counts.sum())

    def check(self) -> "Vocab":
        """Raise ValueError unless words and counts are valid for a model; return self."""
        counts = self.counts
        if counts.shape != (len(self.words),) or counts.dtype.kind not in "iu":
            raise ValueError(f"{len(self.words)} words and counts of shape {counts.shape} and type {counts.dtype}")
        if counts.min() < 0 or counts.sum(dtype=float) >= 1 << 62:
            raise ValueError("its counts are negative or too large")
        if self.words[0] != END or len(set(self.words)) < len(self.words):
            raise ValueError(f"its words do not begin with {END}, or one comes twice")
        if WORD.findall(" ".join(self.words)) != self.words:
            raise ValueError("one of its words is empty or has a space")
        return self

    def write(self, file: BinaryIO) -> None:
        """Write word2vec.c's vocabulary format, one `word count` per line, to a binary file."""
        file.write("".join(f"{w} {c}\n" for w, c in zip(self.words, self.counts.tolist())).encode())

    @classmethod
    def read(cls, path: str, min_count: int = 1, max_vocab: int | None = None) -> "Vocab":
        """Read word2vec.c's vocabulary format; sort and drop words as `select` does, and log how many are dropped."""
        name, counts = shown(path), read_counts(path, "vocabulary file", most=math.inf)
        if not 0 < sum(counts.values()) < 1 << 62:
            raise TiedtoolsError(f"{name}: the counts add up to {sum(counts.values())}; is this a vocabulary file?")
        counts = {END: counts.pop(END, 0), **counts}
        words, counts = list(counts), np.array(list(counts.values()), np.int64)
        order = select(counts, min_count, max_vocab)
        log_dropped(name, counts, min_count, max_vocab, len(order))
        return cls([words[k] for k in order], counts[order])


def read_words(path: str) -> list[str]:
    """Read distinct words, one `word` or `word count` per line; return a list that begins with `</s>`."""
    return list({END: 0, **read_counts(path, "list of words", alone=True)})


def read_counts(path: str, kind: str, alone: bool = False, most: float | None = None) -> dict[str, int]:
    """Read words and their counts, one `word count` per line, a dict; empty lines are skipped.

    kind   what the file is, for messages
    alone  whether a line may be a word without a count, which is then 0
    most   maximum size in bytes; None: that of lists

    Raises TiedtoolsError, with the number of the line, for another line and for a repeated word.
    """
    name, counts = shown(path), {}
    for number, line in numbered_lines(path, most):
        if fields := WORD.findall(line):
            word, *count = fields
            if len(count) != 1 - (alone and not count) or not all(COUNT.fullmatch(digits) for digits in count):
                expected = "a word, or `word count`" if alone else "`word count`"
                raise TiedtoolsError(f"{name}:{number}: expected {expected}; is this a {kind}?")
            if word in counts:
                raise TiedtoolsError(f"{name}:{number}: duplicate word {quoted(word)}; remove one line")
            counts[word] = int(*count)
    if not counts:
        raise TiedtoolsError(f"{name}: is empty; give a {kind}")
    return counts


def select(counts: np.ndarray, min_count: float, max_vocab: int | None) -> np.ndarray:
    """Return the numbers of at most `max_vocab` words with counts >= `min_count`, most frequent first: int64 [V].

    Word 0, `</s>`, is always selected and comes first. Equal counts keep their order.
    """
    order = 1 + np.argsort(-counts[1:], kind="stable")
    order = order[: np.count_nonzero(counts[1:] >= min_count)]
    return np.concatenate([[0], order])[:max_vocab]


def log_dropped(name: str, counts: np.ndarray, min_count: int, max_vocab: int | None, left: Any) -> None:
    """Log how many words of the vocabulary file `name` each option dropped; `left` words are left."""
    rare = np.count_nonzero(counts[1:] < min_count)
    for option, dropped in (f"`min_count={min_count}`", rare), (f"`max_vocab={max_vocab}`", len(counts) - rare - left):
        if dropped:
            log.info(f"{name}: {option} dropped {dropped:,} of {len(counts):,} words")


def no_words(paths: Any, tokens: int, known: Vocab | None = None, more: str = "") -> TiedtoolsError:
    """Return the TiedtoolsError for a text of so many tokens without a word of the vocabulary.

    known  the vocabulary that training continues from, or None
    more   another remedy if there is one
    """
    why = "all are rarer than `min_count`, or not in `read_vocab`"
    remedy = "lower `min_count`, give more text, or use another vocabulary"
    if known:
        why = "none is in the model that training continues from"
        remedy = f"check language and case, or add new words: `grow`{more}"
    return TiedtoolsError(f"{shown(*paths)}: no word of the vocabulary in {counted(tokens, 'token')}: {why}; {remedy}")
