"""Test that ranks, each with a share of a text, find the vocabulary and the ids of a single process."""

import queue
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tiedtools.base.errors import TiedtoolsError
from tiedtools.text import counting
from tiedtools.text.counting import count, count_shares
from tiedtools.text.encoding import encode
from tiedtools.text.parts import shares
from tiedtools.text.vocab import Vocab


class Threads:
    """A transport between threads; `queues[a][b]` holds what a sent to b."""

    def __init__(self, rank, queues):
        self.rank, self.size, self.queues = rank, len(queues), queues

    def send(self, value, to):
        self.queues[self.rank][to].put(value)

    def receive(self, source):
        return self.queues[source][self.rank].get(timeout=60)

    def broadcast(self, value):
        for to in range(1, self.size) if self.rank == 0 else ():
            self.send(value, to)
        return self.receive(0) if self.rank else value


def on_ranks(size, work):
    """Return the results of work(ranks) on each of `size` ranks."""
    queues = [[queue.Queue() for _ in range(size)] for _ in range(size)]
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(work, [Threads(rank, queues) for rank in range(size)]))


@pytest.fixture
def paths(tmp_path):
    """A text of three files, the first two without a final newline, in which many words are equally frequent."""
    rng = np.random.default_rng(0)
    found = []
    for k in range(3):
        lines = [" ".join(f"w{n}" for n in rng.zipf(1.3, 8) % 5000) for _ in range(300)]
        found.append(str(tmp_path / f"text{k}"))
        with open(found[-1], "w") as file:
            file.write("\n".join(lines) + (" </s> x\n" if k == 2 else ""))
    return found


def same(vocab, expected):
    return vocab.words == expected.words and vocab.counts.tolist() == expected.counts.tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("choice", [(1, None), (2, None), (1, 100)], ids=str)
def test_vocabulary_and_ids_are_those_of_a_single_process(paths, monkeypatch, size, choice):
    monkeypatch.setattr(counting, "WORDS", 100)
    one, divided = encode(paths, *choice), shares(paths, size)
    texts = on_ranks(size, lambda ranks: encode(divided[ranks.rank], *choice, threads=1, ranks=ranks))
    assert all(same(text.vocab, one.vocab) for text in texts)
    assert np.array_equal(np.concatenate([text.ids for text in texts]), one.ids)
    assert sum(text.tokens_read for text in texts) == one.tokens_read
    assert [text.size for text in texts] == [text.ids.size for text in texts]


@pytest.mark.parametrize("files", [(b"a b", b"c a\n"), (b"a b\n", b"c a"), (b"a b", b"", b"c"), (b"a b", b"c", b"")])
def test_a_missing_final_newline_is_added_at_the_end_of_a_share(tmp_path, files):
    paths = [str(tmp_path / str(k)) for k in range(len(files))]
    for path, data in zip(paths, files):
        with open(path, "wb") as file:
            file.write(data)
    divided, one = [paths[:1], paths[1:]], encode(paths)
    texts = on_ranks(2, lambda ranks: encode(divided[ranks.rank], ranks=ranks))
    assert all(same(text.vocab, one.vocab) for text in texts)
    assert np.concatenate([text.ids for text in texts]).tolist() == one.ids.tolist()


@pytest.mark.parametrize("size", [2, 3])
def test_a_given_vocabulary(paths, size):
    vocab = Vocab(["</s>", "w7", "w1", "zebra"], np.array([3, 2, 1, 1]))
    one, divided = encode(paths, vocab=vocab), shares(paths, size)
    texts = on_ranks(size, lambda ranks: encode(divided[ranks.rank], vocab=vocab, ranks=ranks))
    assert all(text.vocab is vocab for text in texts)
    assert np.concatenate([text.ids for text in texts]).tolist() == one.ids.tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_counts(paths, size):
    (table, tokens), divided = count(paths), shares(paths, size)
    found, *others = on_ranks(size, lambda ranks: count_shares(divided[ranks.rank], ranks, threads=1))
    assert others == [None] * (size - 1)
    assert found[1] == tokens and found[0].words == table.words
    assert found[0].counts[: len(table)].tolist() == table.counts[: len(table)].tolist()
    assert found[0].state[counting.TOTALS].tolist() == table.state[counting.TOTALS].tolist()


def test_many_words_grow_the_table(tmp_path):
    paths = [str(tmp_path / name) for name in "ab"]
    for k, path in enumerate(paths):
        with open(path, "w") as file:
            file.writelines(f"word{n}\n" for n in range(50_000 * k, 50_000 * (k + 2)))
    one = encode(paths)
    texts = on_ranks(2, lambda ranks: encode([paths[ranks.rank]], threads=1, ranks=ranks))
    assert all(same(text.vocab, one.vocab) for text in texts) and len(one.vocab) == 150_001
    assert np.array_equal(np.concatenate([text.ids for text in texts]), one.ids)


def test_a_share_without_a_word_of_the_vocabulary(tmp_path):
    paths = [str(tmp_path / name) for name in "ab"]
    for path, words in zip(paths, ("a b a b\n", "only rare words\n")):
        with open(path, "w") as file:
            file.write(words)

    def work(ranks):
        try:
            return encode([paths[ranks.rank]], min_count=2, threads=1, ranks=ranks).vocab.words
        except TiedtoolsError as error:
            return str(error)

    first, second = on_ranks(2, work)
    assert first == ["</s>", "a", "b"]
    assert second.startswith(f"{paths[1]}: no word of the vocabulary in 4 tokens; lower `min_count`")
