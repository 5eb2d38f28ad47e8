"""Test batches of sentence pairs."""

import numpy as np
import pytest

from tiedtools.base.errors import TiedtoolsError
from tiedtools.training.batches import Pairs, by_length, ordered

RNG = np.random.default_rng(1)
N = 230
LENGTHS = RNG.integers(1, 12, (2, N))
# Pair k has the words k + 1 on both sides.
SOURCE, TARGET = (
    np.concatenate([np.append(np.full(n, k + 1), 0) for k, n in enumerate(lengths)]).astype(np.int32)
    for lengths in LENGTHS
)


def columns(batch):
    """Return the pairs of a batch, and check their ends and padding."""
    found = batch.ids[0]
    assert batch.ids.dtype == batch.targets.dtype == np.int32
    for side, lengths in zip(batch, LENGTHS):
        for b, k in enumerate(found - 1):
            n = lengths[k]
            assert (side[:n, b] == k + 1).all() and side[n, b] == 0 and (side[n + 1 :, b] == -1).all()
        assert (side >= 0).any(1).all()
    return (found - 1).tolist()


def epoch(pairs, number):
    pairs.begin(number)
    return [columns(pairs[k]) for k in range(pairs.steps)]


def test_an_epoch_has_each_pair_once_in_an_order_of_its_own():
    pairs = Pairs(SOURCE, TARGET, 8, 5)
    first, second = epoch(pairs, 0), epoch(pairs, 1)
    for batches in first, second:
        assert sorted(k for rows in batches for k in rows) == list(range(N))
        assert sorted(map(len, batches)) == [N % 8] + [8] * (N // 8)
    assert first != second and epoch(pairs, 0) == first == epoch(Pairs(SOURCE, TARGET, 8, 5), 0)
    assert epoch(Pairs(SOURCE, TARGET, 8, 6), 0) != first
    assert pairs.words == LENGTHS[1].sum() + N and pairs.most == pairs.steps == len(first)


def test_batches_have_little_padding():
    pairs = Pairs(SOURCE, TARGET, 8, 5)
    spread = [np.ptp(LENGTHS[1][rows]) for rows in epoch(pairs, 3)]
    assert np.mean(spread) < 1.5 and np.ptp([LENGTHS[1][rows].mean() for rows in epoch(pairs, 3)[:5]]) > 1


def test_pairs_left_out(messages):
    source = np.array([1, 0, 0, 2, 2, 2, 0, 3, 0], np.int32)
    target = np.array([1, 0, 2, 0, 2, 0, 0], np.int32)
    pairs = Pairs(source, target, 2, 1, longest=3)
    assert pairs.steps == 1 and pairs[0].ids.tolist() == [[1], [0]]
    assert messages().splitlines() == [
        "not trained on: 2 sentence pairs empty on one side",
        "not trained on: 1 sentence pair longer than 3 words",
    ]
    with pytest.raises(TiedtoolsError, match="no sentence pair to train on"):
        Pairs(source, target, 2, 1, longest=1)


def test_by_length():
    lengths = [3, 9, 1, 9, 2, 30]
    assert [rows.tolist() for rows in by_length(lengths, 2, 18)] == [[5], [1, 3], [0, 4], [2]]
    assert [rows.tolist() for rows in by_length(lengths, 9, 20)] == [[5], [1, 3], [0, 4, 2]]
    assert list(by_length([], 2, 9)) == []


def test_all_pairs_in_order_of_length():
    found = []
    for rows, batch in ordered(SOURCE, TARGET, 16, 64):
        assert columns(batch) == rows.tolist()
        assert max(batch.ids.size, batch.targets.size) <= 64
        found += rows.tolist()
    assert sorted(found) == list(range(N))
