"""Parallel text for translation, as int32 IDs of words or of symbols of byte-pair encoding.

Byte-pair encoding (BPE; Sennrich et al. 2016), with subword-nmt, writes words as sequences of frequent symbols.
"""

import contextlib
import dataclasses
import functools
import io
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError, library
from tiedtools.base.messages import log
from tiedtools.kernels.text import tokenize
from tiedtools.text.counting import BLOCK
from tiedtools.text.encoding import ranges
from tiedtools.text.lmtext import read_ids
from tiedtools.text.sources import counted, shown
from tiedtools.text.vocab import END, UNK, Vocab, select

MARK = "@@"  # at the end of each symbol that does not end its word
LONGEST = 1000  # maximum number of symbols of a line that is validated on or translated
VERSION = "#version: 0.2"  # first line of a codes file of subword-nmt


class Pair(NamedTuple):
    """Source and target of a text as int32 IDs, with 0 at the end of each line; both have the same number of lines."""

    source: np.ndarray
    target: np.ndarray

    @property
    def lines(self) -> int:
        """Number of lines."""
        return int(np.count_nonzero(self.source == 0))


@dataclasses.dataclass
class Bitext:
    """A parallel text as IDs of words or BPE symbols. In both vocabularies, `</s>` is 0 and `<unk>` is 1.

    source_vocab, target_vocab  the Vocabs; the same object if the vocabulary is joint
    codes  BPE merges as returned by `learn`; "" for a text of words
    train  the training Pair
    valid  the validation Pair, or None
    references  the target lines of the validation text, unchanged, a list of str; for BLEU
    """

    source_vocab: Vocab
    target_vocab: Vocab
    codes: str
    train: Pair
    valid: Pair | None = None
    references: list[str] | None = None

    @property
    def vocab(self) -> Vocab:
        """The target vocabulary."""
        return self.target_vocab

    @classmethod
    def read(
        cls, source: Sequence[Any], target: Sequence[Any], valid_source: Sequence[Any] | None = None,
        valid_target: Any = None, joint: bool = False, bpe: int | None = None, min_count: int = 1,
        max_vocab: int | None = None, errors: str = "strict",
    ) -> "Bitext":  # fmt: skip
        """Read a parallel text, each file once.

        source, target              lists of paths; `-` is standard input
        valid_source, valid_target  lists of paths of the validation text; None: no validation
        joint      build one vocabulary from both sides, with the sums of their counts
        bpe        number of merges, learned from both sides together; None: a symbol is a word
        min_count, max_vocab  limits of each vocabulary, in symbols; `max_vocab` includes `</s>` and `<unk>`

        Raises TiedtoolsError for unreadable texts, and if the sides have different numbers of lines.
        """
        if bpe is not None:
            subword_nmt("learn_bpe")  # before the texts are read
        sides, words = read_sides(source, target, errors), Counter()
        for side in sides:
            words.update(dict(zip(side.words[1:], side.counts[1:].tolist())))
        del words[UNK]
        segmenter = Segmenter("" if bpe is None else learn(words, bpe))
        symbol_counts = [side.symbol_counts(segmenter) for side in sides]
        symbol_counts = [symbol_counts[0] + symbol_counts[1]] if joint else symbol_counts
        lines = np.count_nonzero(sides[0].ids == 0) * (2 if joint else 1)
        vocabs = [vocabulary(counts, lines, min_count, max_vocab) for counts in symbol_counts]
        for vocab, paths in zip(vocabs, ([*source, *target],) if joint else (source, target)):
            if len(vocab) == 2:
                raise TiedtoolsError(f"{shown(*paths)}: no word of the vocabulary; lower `min_count`")
        bitext = cls(vocabs[0], vocabs[-1], segmenter.codes, encode_pair(sides, vocabs, segmenter))
        if valid_source is not None:
            sides = read_sides(valid_source, valid_target, errors)
            bitext.valid, bitext.references = short(encode_pair(sides, vocabs, segmenter), sides[1].lines())
        return bitext


class Side(NamedTuple):
    """The source or target of a text: word numbers, int32 [tokens], 0 at each line end; the words, and their counts."""

    ids: np.ndarray
    words: list[str]
    counts: np.ndarray

    def symbol_counts(self, segmenter: "Segmenter") -> Counter[str]:
        """Return the count of each symbol, a Counter in order of first occurrence."""
        counts = Counter()
        for word, count in zip(self.words[1:], self.counts[1:].tolist()):
            for symbol in segmenter.segment(word):
                counts[symbol] += count
        return counts

    def lines(self) -> list[str]:
        """Return the lines, a list of str with a space between words."""
        text = " ".join([self.words[k] if k else "\n" for k in self.ids])
        return text.replace(" \n", "\n").replace("\n ", "\n").removesuffix("\n").split("\n")

    def encode(self, vocab: Vocab, segmenter: "Segmenter") -> np.ndarray:
        """Return the text as IDs of symbols, int32; out-of-vocabulary symbols are `<unk>`."""
        index = {symbol: k for k, symbol in enumerate(vocab.words)}
        rows = [[0], *([index.get(symbol, 1) for symbol in segmenter.segment(word)] for word in self.words[1:])]
        sizes = np.array([len(row) for row in rows])
        starts, symbols = sizes.cumsum() - sizes, np.concatenate(rows).astype(np.int32)
        parts = np.array_split(self.ids, 1 + self.ids.size // BLOCK)
        return np.concatenate([symbols[ranges(starts[part], sizes[part])] for part in parts])


def encode_pair(sides: Sequence[Side], vocabs: Sequence[Vocab], segmenter: "Segmenter") -> Pair:
    """Encode two Sides as a Pair of symbol IDs; `vocabs`: two Vocabs, or one joint Vocab."""
    return Pair(sides[0].encode(vocabs[0], segmenter), sides[1].encode(vocabs[-1], segmenter))


def short(pair: Pair, references: list[str]) -> tuple[Pair, list[str]]:
    """Leave out pairs with a side of more than LONGEST symbols, whose attention would need too much memory."""
    sides = [np.split(ids, np.flatnonzero(ids == 0)[:-1] + 1) for ids in pair]
    keep = [max(map(len, lines)) <= LONGEST + 1 for lines in zip(*sides)]
    if long := keep.count(False):
        what = f"{counted(long, 'sentence pair')} of more than {LONGEST:,} words or symbols"
        if long == len(keep):
            raise TiedtoolsError(f"validation text: has only {what}; shorten its sentences")
        log.warning(f"validation text: {what} left out")
        sides = [[*itertools.compress(side, keep)] for side in sides]
        pair, references = Pair(*map(np.concatenate, sides)), [*itertools.compress(references, keep)]
    return pair, references


def read_sides(source: Sequence[Any], target: Sequence[Any], errors: str) -> list[Side]:
    """Read the source Side and the target Side of a text.

    Raises TiedtoolsError if their numbers of lines differ, or if a line contains `</s>`, which would end it.
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
        what = f"has {counted(b, 'line')}, but the source, {shown(*source)}, has {a:,}"
        raise TiedtoolsError(f"{shown(*target)}: {what}; line N of one must translate line N of the other")
    return sides


def vocabulary(symbol_counts: Mapping[str, int], lines: Any, min_count: int, max_vocab: int | None) -> Vocab:
    """Build the Vocab of counted symbols (dict: symbol -> count), most frequent first after `</s>` and `<unk>`."""
    symbol_counts = dict(symbol_counts)
    unknown = symbol_counts.pop(UNK, 0)
    symbols, counts = [END, *symbol_counts], np.array([lines, *symbol_counts.values()], np.int64)
    order = select(counts, min_count, max_vocab and max_vocab - 1)
    unknown += int(counts.sum() - counts[order].sum())
    return Vocab([END, UNK, *(symbols[k] for k in order[1:])], np.insert(counts[order], 1, unknown))


def subword_nmt(module: str) -> Any:
    """Import a module of subword-nmt. Raises TiedtoolsError if it is not installed."""
    return library(f"subword_nmt.{module}", "byte-pair encoding needs subword-nmt", "nmt")


def learn(counts: Mapping[str, int], merges: int) -> str:
    """Learn at most `merges` merges of symbol pairs that occur at least twice; return them as subword-nmt's codes.

    counts  dict: word -> count
    """
    learner, codes = subword_nmt("learn_bpe"), io.StringIO()
    words = io.StringIO("".join(f"{word} {count}\n" for word, count in counts.items()))
    log.info(f"learning {counted(merges, 'merge')} of BPE from {counted(len(counts), 'word')}")
    # subword-nmt reports its progress on stderr; it raises ValueError when no pair is left.
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(ValueError):
        learner.learn_bpe(words, codes, merges, is_dict=True)
    return codes.getvalue()


def check_codes(codes: str) -> str:
    """Return `codes` unchanged. Raises ValueError unless they are "" or codes of subword-nmt."""
    version, *merges = codes.rstrip("\n").split("\n")
    if codes and (version != VERSION or any(len(merge.split(" ")) != 2 for merge in merges)):
        raise ValueError("its codes are not those of subword-nmt")
    return codes


class Segmenter:
    """Splits words into symbols, and restores them.

    codes  merges as `learn` returns them; "": each word is one symbol

    Raises TiedtoolsError if there are codes, but subword-nmt is not installed. `check_codes` validates them.
    """

    def __init__(self, codes: str = "") -> None:
        self.codes = codes
        if codes:
            merges = codes.rstrip("\n").count("\n")  # without their number, BPE exits the program if there are none
            self.encoder = subword_nmt("apply_bpe").BPE(io.StringIO(codes), merges, separator=MARK)
        self.segment = functools.cache(self.split)

    def split(self, word: str) -> tuple[str, ...]:
        """Split a word into symbols, a tuple of str; all but the last end in MARK. `<unk>` is one symbol."""
        if not self.codes or word == UNK:
            return (word,)
        *symbols, last = self.encoder.segment_tokens([word])
        # The end of a word such as `it.</s>` is split, since it is not the end of a line.
        parts = [last] if last not in (END, UNK) else [*(f"{character}{MARK}" for character in last[:-1]), last[-1]]
        return (*symbols, *parts)

    def symbols(self, words: Iterable[str]) -> list[str]:
        """Split words into symbols, a list of str."""
        return [symbol for word in words for symbol in self.segment(word)]

    def restore(self, symbols: Iterable[str]) -> str:
        """Join symbols into text, with a space between words. A word that is cut off loses its MARK."""
        text = " ".join(symbols)
        return f"{text} ".replace(f"{MARK} ", "").rstrip(" ") if self.codes else text
