"""Byte-pair encoding (BPE; Sennrich et al. 2016) with subword-nmt: words as sequences of frequent symbols."""

import contextlib
import functools
import io

from tiedtools.base.errors import library
from tiedtools.base.messages import log
from tiedtools.text.sources import counted
from tiedtools.text.vocab import UNK

MARK = "@@"  # at the end of each symbol that does not end its word
VERSION = "#version: 0.2"  # first line of a codes file of subword-nmt


def subword_nmt(module):
    """Import a module of subword-nmt. Raises TiedtoolsError if it is not installed."""
    return library(f"subword_nmt.{module}", "byte-pair encoding needs subword-nmt", "nmt")


def learn(counts, merges):
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


def check(codes):
    """Return `codes` unchanged. Raises ValueError unless they are "" or codes of subword-nmt."""
    version, *merges = codes.rstrip("\n").split("\n")
    if codes and (version != VERSION or any(len(merge.split(" ")) != 2 for merge in merges)):
        raise ValueError("its codes are not those of subword-nmt")
    return codes


class Segmenter:
    """Splits words into symbols, and restores them.

    codes  merges as `learn` returns them; "": each word is one symbol

    Raises TiedtoolsError if there are codes, but subword-nmt is not installed. `check` validates codes.
    """

    def __init__(self, codes=""):
        self.codes = codes
        if codes:
            self.encoder = subword_nmt("apply_bpe").BPE(io.StringIO(codes), separator=MARK)
        self.segment = functools.cache(self.split)

    def split(self, word):
        """Split a word into symbols, a tuple of str; all but the last end in MARK. `<unk>` is one symbol."""
        return tuple(self.encoder.segment_tokens([word])) if self.codes and word != UNK else (word,)

    def symbols(self, words):
        """Split words into symbols, a list of str."""
        return [symbol for word in words for symbol in self.segment(word)]

    def restore(self, symbols):
        """Join symbols into text, with a space between words. A word that is cut off loses its MARK."""
        text = " ".join(symbols)
        return f"{text} ".replace(f"{MARK} ", "").rstrip(" ") if self.codes else text
