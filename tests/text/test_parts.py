"""Test that several threads or ranks read a text as one does."""

import gzip
import io
import itertools
import os
import queue
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from common import content, refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tiedtools.base.errors import TiedtoolsError
from tiedtools.text import counting, parts, sources
from tiedtools.text.counting import count, count_shares
from tiedtools.text.encoding import encode
from tiedtools.text.parts import Part, shares
from tiedtools.text.sentences import Sentences
from tiedtools.text.sources import blocks, name_of, shown
from tiedtools.text.vocab import Vocab

quickly = settings(
    max_examples=200, derandomize=True, deadline=None, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
VOCAB = Vocab(["</s>", "w7", "w1", "zebra"], np.array([3, 2, 1, 1]))


def write(folder, files):
    """Write the files, bytes, and return their paths."""
    paths = [str(folder / f"text{k}") for k in range(len(files))]
    for path, data in zip(paths, files):
        with open(path, "wb") as file:
            file.write(data)
    return paths


line = st.sampled_from([b"", b"a", b"BZh", b"\xef\xbb\xbfx", b"long " * 20]) | st.binary(max_size=6)
text = st.lists(st.tuples(line, st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\r"]))).map(
    lambda lines: b"".join(sum(lines, ()))
)
ended = st.tuples(text, line).map(b"".join)  # perhaps without a final newline
plain = ended.filter(lambda data: not data.startswith(parts.PACKED))
compressed = ended.map(lambda data: gzip.compress(data, 1))


@given(st.lists(plain | compressed, min_size=1, max_size=4), st.integers(1, 7), st.sampled_from([1, 5, 1 << 20]))
@quickly
def test_shares_are_the_text_in_order(tmp_path, files, size, block):
    paths = write(tmp_path, files)
    packed = [data.startswith(parts.PACKED) for data in files]
    try:
        divided = shares(paths, size)
    except TiedtoolsError as error:
        problem = f"{size} ranks, but the text has parts for only" if any(files) else "no words; give a text"
        assert problem in str(error)
        assert sum(map(len, files)) < size or any(packed)
        assert ("decompress" in str(error)) == any(packed)
        return
    assert len(divided) == size and all(divided)
    before, parts.BLOCK = parts.BLOCK, block
    try:
        contents = [(name_of(source), content(source)) for share in divided for source in share]
    finally:
        parts.BLOCK = before
    for path, data, whole in zip(paths, files, packed):
        assert b"".join(found for name, found in contents if name == path) == (content(path) if whole else data)
    assert [name for name, _ in contents] == sorted(name for name, _ in contents)  # files keep their order
    for share in divided:
        for source in share:
            assert isinstance(source, str) or 0 <= source.start < source.end
    if not any(packed):
        at = [sum(os.stat(path).st_size if isinstance(path, str) else path.end - path.start for path in share)
              for share in divided]  # fmt: skip
        assert max(at) - min(at) <= 1


def test_files_and_parts_of_them(tmp_path):
    paths = write(tmp_path, [b"a b\n" * 10, b"c d\n" * 10, b"e f\n" * 20])
    assert shares(paths, 2) == [paths[:2], paths[2:]]
    assert shares(paths, 1) == [paths] and shares(["-"], 1) == [["-"]]
    assert shares(paths, 3) == [
        [paths[0], Part(paths[1], 0, 13)],
        [Part(paths[1], 13, 40), Part(paths[2], 0, 26)],
        [Part(paths[2], 26, 80)],
    ]
    packed = gzip.compress(b"some words\n")
    paths = write(tmp_path, [packed] * 5)
    assert shares(paths, 2) == [paths[:2], paths[2:]]
    named = tmp_path / "text.zst"  # by its name
    named.write_bytes(b"x" * 100)
    (plain,) = write(tmp_path, [b"y" * 100])
    assert shares([str(named), plain], 2) == [[str(named)], [plain]]
    (path,) = write(tmp_path, [b"text\nBZh9 text\nBZh9 text\n"])
    assert content(Part(path, 5, 8)) == b"BZh9 text\n"
    data = b"ab\n\nc\r\nlast"
    (path,) = write(tmp_path, [data])
    starts = [0, 3, 4, 7]
    for start, end in itertools.combinations_with_replacement(range(len(data) + 1), 2):
        expected = b"".join(data[a:b] for a, b in zip(starts, [*starts[1:], len(data)]) if start <= a < end)
        assert content(Part(path, start, end)) == expected
    (path,) = write(tmp_path, [b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n"])
    assert [block for _, block in blocks([Part(path, 0, 1)])] == [b"a\n"]
    assert [block for _, block in blocks([Part(path, 1, 10)])] == [b"\xef\xbb\xbfb\n"]


def test_urls_are_divided(memory):
    data = b"".join(b"line %d\n" % k for k in range(1000))
    url = memory("text", data)
    divided = shares([url], 3)
    assert all(isinstance(share[0], Part) for share in divided)
    assert b"".join(content(source) for share in divided for source in share) == data


def test_texts_that_cannot_be_divided(tmp_path):
    (path,) = write(tmp_path, [b"a b\n"])
    os.mkfifo(tmp_path / "pipe")
    for source, message in (
        ("-", "standard input: cannot be divided among ranks; give files"),
        (Sentences([["a"]]), "sentences: cannot be divided"),
        (io.BytesIO(b"a"), "file: cannot be divided"),
        (str(tmp_path / "pipe"), "pipe: not a regular file"),
        (str(tmp_path / "missing"), "missing: cannot be read: No such file"),
    ):
        refused(lambda: shares([path, source], 2), message)
    paths = write(tmp_path, [b"a\n", gzip.compress(b"a\n")])
    refused(lambda: shares(paths[:1], 5), "5 ranks, but the text has parts for only 2; use fewer ranks")
    refused(lambda: shares(paths, 3), "3 ranks, ", " for only 2; use fewer ranks, or decompress the files")
    (path,) = write(tmp_path, [b"one line of text"])
    refused(lambda: encode(shares([path], 2)[1]), "text0: no words; use fewer ranks")


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_messages_name_the_line_of_the_whole_file(tmp_path, monkeypatch, messages, block):
    monkeypatch.setattr(parts, "BLOCK", block)
    (path,) = write(tmp_path, [b"fine\n\nfine\ncaf\xe9\nfine\n"])
    for start in 0, 2, 5, 6, 10, 11:
        part = Part(path, start, 20)
        assert name_of(part) == shown(part) == path
        refused(lambda: encode([part]), "text0:4: invalid UTF-8 byte 0xe9")
        with pytest.raises(TiedtoolsError, match="text0:4: invalid UTF-8"), sources.Decoder(part, "strict") as decode:
            decode(content(part))
        for _ in blocks([part], "replace"):
            pass
        assert messages() == f"{path}: replaced 1 invalid UTF-8 sequence with U+FFFD, the first in line 4\n"


def test_only_the_share_is_read(tmp_path, monkeypatch):
    """And, to find its ends, at most one buffer at each."""
    (path,) = write(tmp_path, [b"some words\n" * 1_000_000])
    opened, found = parts.opened, []

    class Watched(io.FileIO):
        def readinto(self, buffer):
            n = super().readinto(buffer)
            found.append(n)
            return n

    monkeypatch.setattr(parts, "opened", lambda path: io.BufferedReader(Watched(path)))
    assert opened(path).read(4) == b"some"
    part = shares([path], 4)[1][0]
    ids = encode([part]).ids
    assert np.array_equal(ids, np.tile([1, 2, 0], ids.size // 3)) and abs(ids.size - 750_000) < 6
    assert sum(found) < 11_000_000 / 4 + 3 * (1 << 20)


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

    def exchange(self, value):
        for to in range(self.size):
            self.send(value, to)
        return [self.receive(source) for source in range(self.size)]


def on_ranks(size, work):
    """Return the results of work(ranks) on each of `size` ranks."""
    queues = [[queue.Queue() for _ in range(size)] for _ in range(size)]
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(work, [Threads(rank, queues) for rank in range(size)]))


@pytest.fixture
def paths(tmp_path):
    """A text of three files, the first two without a final newline, in which many words are equally frequent."""
    rng = np.random.default_rng(0)
    texts = ["\n".join(" ".join(f"w{n}" for n in rng.zipf(1.3, 8) % 5000) for _ in range(300)) for _ in range(3)]
    return write(tmp_path, [text.encode() + b" </s> x\n" * (k == 2) for k, text in enumerate(texts)])


def on_shares(divided, *choice, **options):
    """Encode each share of a text on its rank; return the EncodedTexts."""
    return on_ranks(len(divided), lambda ranks: encode(divided[ranks.rank], *choice, ranks=ranks, **options))


def assert_same(texts, one):
    """Check that the texts of all ranks, one after the other, are the text of a single process."""
    for text in texts:
        assert text.vocab.words == one.vocab.words and text.vocab.counts.tolist() == one.vocab.counts.tolist()
        assert text.size == text.ids.size
    assert np.array_equal(np.concatenate([text.ids for text in texts]), one.ids)
    assert sum(text.tokens_read for text in texts) == one.tokens_read


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("choice", [(1, None), (2, None), (1, 100)], ids=str)
def test_vocabulary_and_ids_are_those_of_a_single_process(paths, monkeypatch, size, choice):
    monkeypatch.setattr(counting, "WORDS", 100)
    assert_same(on_shares(shares(paths, size), *choice, threads=1), encode(paths, *choice))


@pytest.mark.parametrize("files", [(b"a b", b"c a\n"), (b"a b\n", b"c a"), (b"a b", b"", b"c"), (b"a b", b"c", b"")])
def test_a_missing_final_newline_is_added_at_the_end_of_a_share(tmp_path, files):
    paths = write(tmp_path, files)
    assert_same(on_shares([paths[:1], paths[1:]]), encode(paths))


@pytest.mark.parametrize("size", [2, 3])
def test_a_given_vocabulary(paths, size):
    texts = on_shares(shares(paths, size), vocab=VOCAB)
    assert all(text.vocab is VOCAB for text in texts)
    assert_same(texts, encode(paths, vocab=VOCAB))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_counts(paths, size):
    (table, tokens), divided = count(paths), shares(paths, size)
    found, *others = on_ranks(size, lambda ranks: count_shares(divided[ranks.rank], ranks))
    assert others == [None] * (size - 1)
    assert found[1] == tokens and found[0].words == table.words
    assert found[0].counts[: len(table)].tolist() == table.counts[: len(table)].tolist()
    assert found[0].state[counting.TOTALS].tolist() == table.state[counting.TOTALS].tolist()


def test_shares_with_many_no_or_invalid_words(tmp_path, monkeypatch):
    words = [b"word%d\n" % n for n in range(150_000)]
    a, b = write(tmp_path, [b"".join(words[:100_000]), b"".join(words[50_000:])])
    one = encode([a, b])
    assert_same(on_shares([[a], [b]], threads=1), one)
    assert len(one.vocab) == 150_001
    paths = write(tmp_path, [b"a b a b\n", b"only rare words\n"])
    work = lambda ranks, **how: encode([paths[ranks.rank]], threads=1, ranks=ranks, **how).vocab.words
    assert on_ranks(2, lambda ranks: work(ranks, min_count=2)) == [["</s>", "a", "b"]] * 2
    refused(lambda: on_ranks(2, lambda ranks: work(ranks, min_count=3)), "no word of the vocabulary in ")
    monkeypatch.setattr(sources, "BLOCK", 20)
    (path := tmp_path / "text").write_bytes(b"some words\n" * 30 + b"caf\xe9\n" + b"more\n" * 30 + b"\xff\n")
    for threads in (1, 4):
        refused(lambda: encode([str(path)], threads=threads), "text:31: invalid UTF-8 byte 0xe9")


@pytest.mark.parametrize("vocab", [None, VOCAB], ids=["own", "given"])
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_result_does_not_depend_on_the_number_of_threads(tmp_path, monkeypatch, threads, vocab):
    """Equal counts are ordered by first occurrence in the text, whichever thread reads it."""
    monkeypatch.setattr(sources, "BLOCK", 50)
    monkeypatch.setattr(counting, "MOST_TABLES", 7)
    rng = np.random.default_rng(0)
    lines = [" ".join(f"w{n}" for n in rng.zipf(1.3, 8) % 5000) for _ in range(400)]
    path, second = tmp_path / "text", tmp_path / "second"
    path.write_text("\n".join(lines))
    second.write_text("w1 </s> w7\n" * 3)
    one, many = (encode([str(path), str(second)], 2, vocab=vocab, threads=n) for n in (1, threads))
    assert one.vocab.words == many.vocab.words and one.vocab.counts.tolist() == many.vocab.counts.tolist()
    assert one.ids.tolist() == many.ids.tolist() and one.tokens_read == many.tokens_read
    one, many = (count([str(path)], unk="<unk>", threads=n)[0] for n in (1, threads))
    assert one.words == many.words and one.state.tolist()[:2] == many.state.tolist()[:2]
    assert one.counts[: len(one)].tolist() == many.counts[: len(many)].tolist()
