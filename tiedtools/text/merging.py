"""Merge the word counts of ranks, each of its share of a text, into the vocabulary of the whole text."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tiedtools.kernels.text import tokenize
from tiedtools.text.counting import WordTable, count
from tiedtools.text.vocab import Vocab

WORDS = 1 << 20  # words looked up at a time, which bounds the memory for their numbers
TOTALS = [tokenize.LINES, tokenize.UNKNOWN]


def merge(table: WordTable, ranks: Any) -> None:
    """Merge the WordTables of all ranks into rank 0's table, in a binary tree: rank r receives from r + 1, r + 2, ...

    Rank 0's table becomes the table that a single process would build from the shares in order. The words of a
    receiving table keep their numbers.

    ranks  transport with `rank`, `size`, send(value, to), receive(source), and broadcast(value), which returns rank 0's
           value on every rank
    """
    step = 1
    while step < ranks.size:
        if ranks.rank & step:
            n = len(table)
            spelled = [table.spelled(k, min(k + WORDS, n)) for k in range(1, n, WORDS)]
            ranks.send((spelled, table.counts[:n].copy(), table.state[TOTALS]), ranks.rank - step)
            return
        if ranks.rank + step < ranks.size:
            spelled, counts, totals = ranks.receive(ranks.rank + step)
            numbers = np.concatenate([[0], *(table.add(words.replace(b"\n", b" ")) for words in spelled)])
            table.counts[numbers] += counts
            table.state[TOTALS] += totals
        step *= 2


def common_vocab(table: WordTable, ranks: Any, min_count: int, max_vocab: int | None) -> tuple[Vocab, np.ndarray]:
    """Return the Vocab of all ranks, selected by rank 0, and the map from the word numbers of this rank's WordTable.

    The map is as in WordTable.vocab: int32, -1 for dropped words.
    """
    counted_here = len(table)  # before other ranks' words are added
    merge(table, ranks)
    vocab = ranks.broadcast(table.vocab(min_count, max_vocab)[0] if ranks.rank == 0 else None)
    new_id = np.full(len(table) + 1, -1, np.int32)  # the last element stands for words that are not in the table
    for k in range(0, len(vocab), WORDS):
        text = " ".join([*vocab.words[k : k + WORDS], ""]).encode()
        numbers = np.concatenate([ids.copy() for ids in table.encode(text, grow=False, unknown=len(table))])
        new_id[numbers] = np.arange(k, k + numbers.size)
    return vocab, new_id[:counted_here]


def count_shares(
    paths: Sequence[Any], ranks: Any, errors: str = "strict", threads: int | None = None
) -> tuple[WordTable, int] | None:
    """Count the words of a text of which `paths` is this rank's share; `ranks` as for `merge`.

    Returns (WordTable, tokens read) of the whole text on rank 0, as counting.count, and None on other ranks.
    """
    table, _ = count(paths, errors, threads=threads, more=ranks.rank < ranks.size - 1)
    merge(table, ranks)
    return (table, table.tokens) if ranks.rank == 0 else None
