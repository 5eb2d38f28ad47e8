"""The texts of a language model: one vocabulary, and training, validation and test text as int32 ids in memory."""

import dataclasses
import io

import numpy as np

from tiedtools.encoding import count, shown
from tiedtools.errors import TiedtoolsError
from tiedtools.kernels import tokenize
from tiedtools.report import say
from tiedtools.vocab import UNK, Vocab, select


@dataclasses.dataclass
class LmText:
    """Texts as ids, `</s>` (0) for each line end.

    vocab  the Vocab. It has `<unk>` if the training text does, or where words had to be dropped: these are read as it
    train  int32 [tokens]
    valid  int32 [tokens], None where there is no validation
    test   int32 [tokens], None where there is no test
    """

    vocab: Vocab
    train: np.ndarray
    valid: np.ndarray | None = None
    test: np.ndarray | None = None

    @classmethod
    def read(
        cls,
        train,
        valid=None,
        test=None,
        valid_share=0.1,
        min_count=1,
        max_vocab=None,
        read_vocab=None,
        errors="strict",
        talk=say,
    ):
        """Read each text once.

        train        paths of the training text, `-` is standard input
        valid, test  a path each, or None. Without `valid`, the last `valid_share` of the training text, by whole
                     lines, is for validation instead, and its words do not count for the vocabulary
        min_count, max_vocab  what words of the training text the vocabulary has; `max_vocab` with `</s>` and `<unk>`
        read_vocab   path of a vocabulary to take words and counts from instead, cut in the same way
        talk         is told in a line what is not as the user might think

        Where the vocabulary has no `<unk>`, words of validation and test text outside it are left out.
        Raises TiedtoolsError for unreadable texts, and for those without a word of the vocabulary.
        """
        known = None if read_vocab is None else Vocab.read(read_vocab, 0)
        added = known is not None and UNK not in known.words
        if added:
            known = Vocab([*known.words, UNK], np.append(known.counts, 0))
        ids, table = read_ids(train, errors, known, UNK)
        cut = ids.size
        if valid is None and valid_share:
            cut = cut_at(ids, 1 - valid_share, shown(*train))
        seen = np.bincount(ids[:cut], minlength=len(table))
        unk = 1 if known is None else known.words.index(UNK)
        counts = seen
        if known is not None:
            counts = known.counts.copy()
            counts[unk] = seen[unk] if added else counts[unk]
        order, counts = select_with_unk(counts, seen, unk, min_count, max_vocab)
        if not seen[np.setdiff1d(order, [0, unk])].any():
            raise TiedtoolsError(
                f"{shown(*train)}: no word of the vocabulary in {cut:,} tokens;"
                " lower -min-count or use another vocabulary"
            )
        vocab, new_id = table.chosen(order, counts)
        new_id[new_id < 0] = new_id[unk]
        del table

        text = cls(vocab, renumbered(ids[:cut], new_id))
        if cut < ids.size:
            text.valid = renumbered(ids[cut:], new_id)
            talk(f"validation: the last {ids.size - cut:,} of the text's {ids.size:,} tokens (--valid-share)")
            text.check(text.valid, ids.size - cut - text.valid.size, "the validation text", talk)
        for name, path in ("valid", valid), ("test", test):
            if path is not None:
                found, table = read_ids([path], errors, vocab, UNK if UNK in vocab.words else None)
                setattr(text, name, found)
                text.check(found, int(table.state[tokenize.UNKNOWN]), shown(path), talk)
        return text

    def check(self, ids, unknown, name, talk):
        """Tell of `unknown` words outside the vocabulary that could not be read; refuse a text of nothing else."""
        if not ids.size:
            raise TiedtoolsError(f"{name}: no word of the vocabulary")
        if unknown and UNK not in self.vocab.words:
            talk(f"{name}: {unknown:,} words outside the vocabulary, which has no {UNK}, are left out")


def read_ids(paths, errors, vocab, unk):
    """Returns (int32 ids, WordTable) of a text; arguments as for encoding.count."""
    keep = io.BytesIO()
    table, _ = count(paths, errors, vocab, keep, unk)
    return np.frombuffer(keep.getbuffer(), np.int32), table


def renumbered(ids, new_id):
    """new_id[k] of each id k, in place, without the negative ones."""
    return ids[: tokenize.renumber(ids, new_id)]


def cut_at(ids, share, name):
    """The line end nearest to `share` of the text; a place between words in a text of one line."""
    if ids.size < 2:
        raise TiedtoolsError(f"{name}: too little text to hold some out for validation; use -valid or --valid-share 0")
    target = share * ids.size
    ends = np.flatnonzero(ids[:-1] == 0) + 1
    if ends.size:
        return int(ends[np.abs(ends - target).argmin()])
    return min(max(round(target), 1), ids.size - 1)


def select_with_unk(counts, seen, unk, min_count, max_vocab):
    """`vocab.select`, where word `unk` stands for the words that are dropped, and is there only if some are or it was.

    counts  int64 [words], by which words are selected
    seen    int64 [words], how often each is in the text
    Returns (numbers of the words that stay, counts with those of dropped words given to `unk`).
    """
    plain = counts.copy()
    plain[unk] = -1  # below every min_count
    dropped = lambda order: max(int(n.sum() - n[order].sum()) for n in (counts, seen))
    order = select(plain, min_count, max_vocab)
    if dropped(order):
        order = order[: max_vocab and max_vocab - 1]
        plain[unk] = dropped(order)
        place = 1 + np.searchsorted(-plain[order[1:]], -plain[unk])
        order = np.insert(order, place, unk)
    return order, plain
