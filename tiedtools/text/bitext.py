"""Bitext: the two sides of a training and a validation text, line by line translations, as int32 ids in memory."""

import dataclasses
from collections import Counter
from typing import NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.kernels.text import tokenize
from tiedtools.text.bpe import Segmenter, learn, library
from tiedtools.text.lmtext import read_ids
from tiedtools.text.sources import counted, shown
from tiedtools.text.vocab import END, UNK, Vocab, select


class Pair(NamedTuple):
    """Both sides of a text, int32 ids, with 0 at the end of each line; the sides have equally many lines."""

    source: np.ndarray
    target: np.ndarray

    @property
    def lines(self):
        """Number of lines."""
        return int(np.count_nonzero(self.source == 0))


@dataclasses.dataclass
class Bitext:
    """A bitext as ids of words, or of BPE's symbols. In both vocabularies, `</s>` is 0 and `<unk>` is 1.

    source_vocab, target_vocab  the Vocabs; one and the same object if they are joint
    codes  BPE's merges, as from bpe.learn; "" for a text of words
    train  the training Pair
    valid  the validation Pair, or None
    references  the lines of the validation text's target as they are, a list of str; for BLEU
    """

    source_vocab: Vocab
    target_vocab: Vocab
    codes: str
    train: Pair
    valid: Pair | None = None
    references: list | None = None

    @property
    def vocab(self):
        """The target vocabulary."""
        return self.target_vocab

    @classmethod
    def read(
        cls,
        source,
        target,
        valid_source=None,
        valid_target=None,
        joint=False,
        bpe=None,
        min_count=1,
        max_vocab=None,
        errors="strict",
    ):
        """Read a bitext, each side once.

        source, target              lists of paths; `-` is standard input
        valid_source, valid_target  likewise, of the validation text; None: without
        joint      make one vocabulary of both sides, with the sums of their counts
        bpe        number of merges, learned from both sides together; None: a symbol is a word
        min_count, max_vocab  limits of each vocabulary, in symbols; `max_vocab` includes `</s>` and `<unk>`

        Raises TiedtoolsError for unreadable texts, and if the sides have different numbers of lines.
        """
        if bpe is not None:
            library()  # before the texts are read
        sides = read_sides(source, target, errors)
        segmenter, lines = segmenter_of(sides, bpe), np.count_nonzero(sides[0].ids == 0)
        found = [side.symbol_counts(segmenter) for side in sides]
        if joint:
            found, lines = [found[0] + found[1]], 2 * lines
        vocabs = [vocabulary(counts, lines, min_count, max_vocab) for counts in found]
        for vocab, paths in zip(vocabs, ([*source, *target],) if joint else (source, target)):
            if len(vocab) == 2:
                raise TiedtoolsError(f"{shown(*paths)}: no word of the vocabulary; lower `min_count`")
        made = cls(vocabs[0], vocabs[-1], segmenter.codes, encoded(sides, vocabs, segmenter))
        if valid_source is not None:
            sides = read_sides(valid_source, valid_target, errors)
            made.valid, made.references = encoded(sides, vocabs, segmenter), sides[1].lines()
        return made


class Side(NamedTuple):
    """One side of a text as numbers of its words: int32 [tokens], 0 at the end of each line; the words, and counts."""

    ids: np.ndarray
    words: list
    counts: np.ndarray

    def symbol_counts(self, segmenter):
        """Return the count of each symbol, a Counter in order of first occurrence."""
        found = Counter()
        for word, count in zip(self.words[1:], self.counts[1:].tolist()):
            for symbol in segmenter.segment(word):
                found[symbol] += count
        return found

    def lines(self):
        """Return the lines, a list of str with a blank between words."""
        words = ["\n", *self.words[1:]]
        text = " ".join([words[k] for k in self.ids])
        return text.replace(" \n", "\n").replace("\n ", "\n").removesuffix("\n").split("\n")

    def encode(self, vocab, segmenter):
        """Return the text as ids of symbols, int32, `<unk>` for those outside the vocabulary."""
        index = {symbol: k for k, symbol in enumerate(vocab.words)}
        rows = [[0], *([index.get(symbol, 1) for symbol in segmenter.segment(word)] for word in self.words[1:])]
        sizes = np.array([len(row) for row in rows])
        symbols = np.concatenate(rows).astype(np.int32)
        n = sizes[self.ids]
        # Symbol k of the text is symbol k - (number before its word) of its word.
        first = (sizes.cumsum() - sizes)[self.ids] - (n.cumsum() - n)
        return symbols[np.repeat(first, n) + np.arange(n.sum())]


def encoded(sides, vocabs, segmenter):
    """Return two Sides as a Pair of ids of symbols; `vocabs`: two Vocabs, or a joint one."""
    return Pair(sides[0].encode(vocabs[0], segmenter), sides[1].encode(vocabs[-1], segmenter))


def read_sides(source, target, errors):
    """Return both Sides of a text.

    Raises TiedtoolsError if their numbers of lines differ, and for `</s>` within a line, which would end it.
    """
    sides = []
    for paths in source, target:
        ids, table = read_ids(paths, errors, None, UNK)
        if table.counts[0] > table.state[tokenize.LINES]:
            raise TiedtoolsError(f"{shown(*paths)}: `{END}` within a line; remove it")
        if ids[-1]:  # the last line has no newline
            ids = np.append(ids, np.int32(0))
        sides.append(Side(ids, table.words, table.counts[: len(table)].copy()))
    a, b = (np.count_nonzero(side.ids == 0) for side in sides)
    if a != b:
        raise TiedtoolsError(
            f"{shown(*target)}: has {counted(b, 'line')}, but {shown(*source)} has {a:,}; line N of one must translate"
            " line N of the other"
        )
    return sides


def segmenter_of(sides, merges):
    """Return the Segmenter of a text; BPE is learned from the words of all Sides together."""
    if merges is None:
        return Segmenter()
    counts = Counter()
    for side in sides:
        counts.update(dict(zip(side.words[1:], side.counts[1:].tolist())))
    del counts[UNK]
    return Segmenter(learn(counts, merges))


def vocabulary(found, lines, min_count, max_vocab):
    """Return the Vocab of symbols with counts, a dict, most frequent first after `</s>` and `<unk>`."""
    found = dict(found)
    unknown = found.pop(UNK, 0)
    words, counts = [END, *found], np.array([lines, *found.values()], np.int64)
    order = select(counts, min_count, max_vocab and max_vocab - 1)
    unknown += int(counts.sum() - counts[order].sum())
    chosen = [words[k] for k in order]
    return Vocab([END, UNK, *chosen[1:]], np.insert(counts[order], 1, unknown))
