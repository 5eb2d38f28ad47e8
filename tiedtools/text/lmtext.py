"""Texts of a language model: one vocabulary, and training, validation, and test text as int32 IDs in memory."""

import dataclasses
import io
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.kernels.text import tokenize
from tiedtools.text.counting import WordTable, count
from tiedtools.text.sources import counted, shown
from tiedtools.text.vocab import UNK, Vocab, log_dropped, no_words, select

NO_UNK = " "  # in place of UNK; cannot occur in a text


@dataclasses.dataclass
class LmText:
    """Texts as IDs, with `</s>` (0) for each line end.

    vocab  the Vocab. It contains `<unk>` if the training text does, or if words were dropped, which map to `<unk>`
    train  int32 [tokens]
    valid  int32 [tokens]; None without validation
    test   int32 [tokens]; None without a test text
    """

    vocab: Vocab
    train: np.ndarray
    valid: np.ndarray | None = None
    test: np.ndarray | None = None

    @classmethod
    def read(
        cls, train: Any, valid: Any = None, test: Any = None, valid_share: float = 0.1, min_count: int = 1,
        max_vocab: int | None = None, read_vocab: str | None = None, errors: str = "strict", vocab: Vocab | None = None,
        keep_oovs: bool = False, predict_oovs: bool = True, known: Vocab | None = None, grow: bool = False,
    ) -> "LmText":  # fmt: skip
        """Read training, validation, and test text, each file once.

        train        paths of the training text; `-` is standard input
        valid, test  a path, a list of paths, or None. Without `valid`, the last `valid_share` of the training text, in
                     whole lines, is held out for validation, and its words do not count for the vocabulary
        min_count, max_vocab  limits of the vocabulary; `max_vocab` includes `</s>` and `<unk>`
        read_vocab   path of a vocabulary file that replaces the training text's words and counts; same limits
        vocab        a Vocab to use unchanged
        keep_oovs    without `<unk>`, give out-of-vocabulary words the ID -1 instead of dropping them
        predict_oovs False: do not map out-of-vocabulary words of `valid` and `test` to `<unk>`
        known        a Vocab whose words are all in the vocabulary, with the sum of both counts
        grow         whether the other words of the training text are, too, selected by the same limits

        Raises TiedtoolsError for an unreadable text, or if no word of a text is in the vocabulary.
        """
        fixed = vocab if read_vocab is None else Vocab.read(read_vocab, 0)
        reading_vocab = fixed and with_unk(fixed)
        ids, table = read_ids(train, errors, reading_vocab, UNK)
        cut = cut_at(ids, 1 - valid_share, shown(*train)) if valid is None and valid_share else ids.size
        seen = np.bincount(ids[:cut], minlength=len(table))
        unk, counts = 1, seen
        if reading_vocab is not None:
            unk, counts = reading_vocab.words.index(UNK), reading_vocab.counts.copy()
            if reading_vocab is not fixed:
                counts[unk] = seen[unk]
        if known is not None:
            table.counts[: len(seen)] = seen  # without words held out for validation
            least, most = (min_count, max_vocab) if grow else (math.inf, None)
            vocab, new_id, _ = table.extended(known, least, most, unk if grow or UNK in known.words else None)
        elif vocab is None:
            order, counts = select_with_unk(counts, seen, unk, min_count, max_vocab)
            if read_vocab is not None:
                log_dropped(shown(read_vocab), np.delete(counts, unk), min_count, max_vocab, (order != unk).sum())
            vocab, new_id = table.vocab_of(order, counts)
        else:
            new_id = ids_without_unk(vocab)
        new_id[new_id < 0] = new_id[unk]
        kept = new_id[: len(seen)]
        if not seen[(kept > 0) & (kept != new_id[unk])].any():
            raise no_words(train, cut, None if grow else known)
        del table
        text = cls(vocab, ids[:0])
        text.set("train", ids[:cut], new_id, shown(*train), keep_oovs)
        if cut < ids.size:
            log.info(f"validation: the last {ids.size - cut:,} of the text's {ids.size:,} tokens (`valid_share`)")
            text.set("valid", ids[cut:], new_id, f"{shown(*train)}, last part", keep_oovs, least=0)
        for name, paths in ("valid", valid), ("test", test):
            if paths is not None:
                paths, oov = paths if isinstance(paths, list) else [paths], UNK if predict_oovs else NO_UNK
                ids, _ = read_ids(paths, errors, with_unk(vocab, oov), oov)
                text.set(name, ids, ids_without_unk(vocab), shown(*paths), keep_oovs)
        return text

    def set(self, field: str, ids: np.ndarray, new_id: np.ndarray, name: str, keep_oovs: bool, least: int = 1) -> None:
        """Renumber a text by int32 new_id (-1: OOV) and store it; log its OOVs, reject it if all IDs are < least.

        least  0 for held-out text, which may consist of line ends only
        """
        new_ids = new_id[ids] if keep_oovs else ids[: tokenize.renumber(ids, new_id)]
        if new_ids.max(initial=-1) < least:
            ways = "give a text that has some, or another vocabulary" if least else "use `valid` or `valid_share=0`"
            raise TiedtoolsError(f"{name}: no word of the vocabulary; {ways}")
        if oovs := ids.size - np.count_nonzero(new_ids >= 0):
            which = "" if UNK in self.vocab.words else f", which has no {UNK},"
            fate = "not predicted" if keep_oovs else "left out"
            verb = "is" if oovs == 1 else "are"
            log.info(f"{name}: {counted(oovs, 'word')} outside the vocabulary{which} {verb} {fate}")
        setattr(self, field, new_ids)


def read_ids(paths: Sequence[Any], errors: str, vocab: Vocab | None, unk: str | None) -> tuple[np.ndarray, WordTable]:
    """Read a text into memory; return (int32 IDs, WordTable). Arguments as for counting.count."""
    keep = io.BytesIO()
    table, _ = count(paths, errors, vocab, keep, unk)
    return np.frombuffer(keep.getbuffer(), np.int32), table


def with_unk(vocab: Vocab, unk: str = UNK) -> Vocab:
    """Return the Vocab, with `unk` appended if it is missing."""
    return vocab if unk in vocab.words else Vocab([*vocab.words, unk], np.append(vocab.counts, 0))


def ids_without_unk(vocab: Vocab) -> np.ndarray:
    """Return the map from IDs in with_unk(vocab) to IDs in `vocab`, int32; -1 for the appended word."""
    return np.append(np.arange(len(vocab), dtype=np.int32), np.int32(-1))


def cut_at(ids: np.ndarray, share: float, name: str) -> int:
    """Return the position of the line end nearest to `share` of the text, or of a word boundary in a single line."""
    if ids.size < 2:
        raise TiedtoolsError(f"{name}: too little text to hold some out for validation; use `valid` or `valid_share=0`")
    target = share * ids.size
    ends = np.flatnonzero(ids[:-1] == 0) + 1
    if ends.size:
        return int(ends[np.abs(ends - target).argmin()])
    return min(max(round(target), 1), ids.size - 1)


def select_with_unk(
    counts: np.ndarray, seen: np.ndarray, unk: int, min_count: int, max_vocab: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """Select words as `vocab.select` does, with the word `unk` replacing all dropped words, if there are any.

    counts  int64 [words], the counts for selection
    seen    int64 [words], the counts in the text
    Returns (numbers of the selected words, counts in which `unk` has the sum of the dropped words).
    """
    counts_with_unk = counts.copy()
    counts_with_unk[unk] = -1  # below every min_count
    order = select(counts_with_unk, min_count, max_vocab)
    both = np.stack([counts, seen])
    if np.delete(both, order, 1).any():
        order = order[: max_vocab and max_vocab - 1]
        counts_with_unk[unk] = np.delete(both, order, 1).sum(1).max()
        order = np.insert(order, 1 + np.searchsorted(-counts_with_unk[order[1:]], -counts_with_unk[unk]), unk)
    return order, counts_with_unk
