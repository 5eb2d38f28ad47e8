"""Test encoding of texts, vocabularies, and lists of words."""

import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from common import refused

from tiedtools.kernels.text import tokenize
from tiedtools.text import counting, sources
from tiedtools.text.counting import WordTable
from tiedtools.text.encoding import EncodedText, encode
from tiedtools.text.vocab import Vocab, read_words


def words_of(encoded):
    return [encoded.vocab.words[k] for k in encoded.ids]


def test_many_and_long_words_and_hash_collisions(tmp_path):
    words = [f"w{k}" * (1 + k % 5) for k in range(200_000)]
    (path := tmp_path / "text").write_text(" ".join(words) + "\n" + " ".join(reversed(words)))
    encoded = encode([str(path)])
    assert encoded.vocab.words == ["</s>", *words]
    assert (encoded.vocab.counts[1:] == 2).all() and encoded.ids.size == 400_001
    (path := tmp_path / "text").write_bytes(b"some words " * 500_000)
    encoded = encode([str(path)])
    assert encoded.ids.size == 1_000_000 and encoded.vocab.counts.tolist() == [0, 500_000, 500_000]
    table = WordTable()
    long = ["x" * n for n in (7, 8, 9, 15, 16, 17, 1000)] + ["12345678a", "12345678b", "a12345678", "b12345678"]
    pieces = [ids.copy() for ids in table.encode(" ".join(long + long + [""]).encode())]
    assert np.concatenate(pieces).tolist() == list(range(1, 12)) * 2
    assert table.words[1:] == long
    # Long words are compared byte by byte: one with the key of another, forged here, is a new word.
    table = WordTable()
    table.arena = (around := table.arena[:17].copy())[:16]  # too small by a byte
    for _ in table.encode(b"a-long-word "):
        pass
    assert not around[16]
    position = table.arena.tobytes().index(b"a-long-word")
    table.arena[position] = ord("b")
    for _ in table.encode(b"a-long-word "):
        pass
    assert table.words == ["</s>", "b-long-word", "a-long-word"]


def test_line_ends_and_ends_of_files(tmp_path, messages):
    (path := tmp_path / "text").write_bytes(b"a </s> b\n</s>\n")
    assert encode([str(path)]).vocab.counts.tolist() == [4, 1, 1]
    told = f"{path}: `</s>` occurs 2 times and is read as a line end, as in word2vec.c and rnnlm\n"
    assert messages() == told
    path.write_bytes(b"a b\n </s>x </s>\n")
    encode([str(path)])
    assert messages() == told.replace("2 times", "1 time")
    a, b = tmp_path / "a", tmp_path / "b"
    b.write_bytes(b"three\n")
    for end in b"", b" ":
        a.write_bytes(b"one two" + end)
        assert words_of(encode([str(a), str(b)])) == ["one", "two", "</s>", "three", "</s>"]
        assert words_of(encode([str(b), str(a)])) == ["three", "</s>", "one", "two"]
    (path := tmp_path / "text").write_bytes(b"a\xc3 \xa9b\n")
    refused(lambda: encode([str(path)]), "text:1: invalid UTF-8 byte 0xc3")


@pytest.mark.parametrize("suffix, pack", [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)])
def test_compressed(tmp_path, monkeypatch, suffix, pack):
    path = tmp_path / f"text{suffix}"
    words = [f"w{k * k % 97}" for k in range(1000)]
    data = " ".join(words).encode()
    path.write_bytes(pack(data))
    assert words_of(encode([str(path)])) == words
    path.write_bytes(pack(data)[:-20])
    refused(lambda: encode([str(path)]), f"text{suffix}: cannot be read")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(pack(data))))
    assert words_of(encode(["-"])) == words


@pytest.mark.parametrize("paths", [[], ["-"]])
def test_standard_input(monkeypatch, paths):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b a\n")))
    assert words_of(encode(paths)) == ["a", "b", "a", "</s>"]


def test_ids_are_read_in_pieces_and_by_threads(tmp_path, monkeypatch):
    (path := tmp_path / "text").write_text(" ".join(str(k) for k in range(50_000)))
    encoded = encode([str(path)])

    def right(start):
        return (encoded.read(start, np.empty(100, np.int32)) == np.arange(start + 1, start + 101)).all()

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(right, range(0, 49_000, 7)))
    (path := tmp_path / "text").write_bytes(b"a b a\nc a\n")
    encoded = encode([str(path)])
    ids = encoded.ids
    assert encoded.size == 7 and ids.dtype == np.int32 and ids.tolist() == [1, 2, 1, 0, 3, 1, 0]
    out = np.full(3, -1, np.int32)
    for start in range(7):
        part = encoded.read(start, out)
        assert part.base is out and part.tolist() == ids[start : start + 3].tolist()
    assert encoded.read(7, out).size == encoded.read(9, out).size == 0
    (path := tmp_path / "text").write_bytes(b"a b a c a d " * 100)
    encoded = encode([str(path)])
    expected, preadv = encoded.ids, os.preadv
    monkeypatch.setattr(os, "preadv", lambda number, views, at: preadv(number, [views[0][:7]], at))
    assert encoded.ids.tolist() == expected.tolist() == [1, 2, 1, 3, 1, 4] * 100
    (path := tmp_path / "text").write_bytes(b"a b a\n")
    encoded = encode([str(path)])
    encoded.file.truncate(6)
    refused(lambda: encoded.ids, "cannot be read: the temporary file of token IDs is truncated")


def test_ids_are_not_held_in_memory(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"some words " * 200_000)
    large.write_bytes(b"a b " * 5_000_000)
    code = f"""
import resource
from tiedtools.text.encoding import encode
peaks = []
for path in {str(small)!r}, {str(large)!r}:
    size = encode([path]).size
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(size, *peaks)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    size, before, after = map(int, result.stdout.split())
    growth = (after - before) * (1 if sys.platform == "darwin" else 1024)
    assert size == 10_000_000 and growth < 2 * size


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and depends on glibc")
def test_memory_of_rare_words_is_released(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_text("a a " + " ".join(f"word{k}" for k in range(50_000)))
    large.write_text("a a " + " ".join(f"word{k}" for k in range(1_000_000)))
    code = f"""
from tiedtools.text.encoding import encode
for path in {str(small)!r}, {str(large)!r}:
    encode([path], min_count=2)
    print(int(open("/proc/self/statm").read().split()[1]))
"""
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    before, after = (int(pages) * os.sysconf("SC_PAGE_SIZE") for pages in output.split())
    assert after - before < 10e6


def test_positions_and_counts_beyond_2_to_the_31(tmp_path):
    with tempfile.TemporaryFile(buffering=0) as file:
        file.seek(4 * 2**31)
        file.write(np.arange(5, dtype=np.int32))
        encoded = EncodedText(None, file, 2**31 + 5, 2**31 + 5)
        assert encoded.read(2**31 - 2, np.empty(100, np.int32)).tolist() == [0, 0, 0, 1, 2, 3, 4]
    table = WordTable()
    for _ in table.encode(b"a b a\n"):
        pass
    table.counts[:3] = table.state[tokenize.LINES] = table.state[tokenize.UNKNOWN] = 2**31 - 1
    for _ in table.encode(b"a c\n", grow=False):
        pass
    assert table.counts[:3].tolist() == [2**31, 2**31, 2**31 - 1]
    assert table.state[[tokenize.LINES, tokenize.UNKNOWN]].tolist() == [2**31, 2**31]
    vocab, _ = table.vocab(1, None)
    assert vocab.total == 3 * 2**31 - 1
    with open(tmp_path / "vocab", "wb") as file:
        vocab.write(file)
    assert Vocab.read(str(tmp_path / "vocab")).counts.tolist() == vocab.counts.tolist()


@pytest.mark.parametrize("block", [1, 7, 1 << 18])
def test_renumbering_block_by_block(monkeypatch, block):
    monkeypatch.setattr(counting, "BLOCK", block)
    rng = np.random.default_rng(0)
    ids, new_id = rng.integers(50, size=1000, dtype=np.int32), np.arange(-20, 30, dtype=np.int32)[::-1].copy()
    with tempfile.TemporaryFile() as file:
        file.write(ids)
        left = counting.renumber(file, new_id)
        file.seek(0)
        expected = new_id[ids][new_id[ids] >= 0]
        assert left == expected.size and np.frombuffer(file.read(), np.int32).tolist() == expected.tolist()


@pytest.mark.parametrize("vocab", [None, Vocab(["</s>", "fine", "x"], np.array([3, 2, 1]))], ids=["own", "given"])
@pytest.mark.parametrize("block", [3, 1 << 20])
def test_invalid_utf8_errors_name_file_and_line(tmp_path, monkeypatch, block, vocab):
    monkeypatch.setattr(sources, "BLOCK", block)
    good, path = tmp_path / "good", tmp_path / "text"
    good.write_bytes(b"x\ny\n")
    path.write_bytes("fine\ncaf\u00e9 \u00e9\nbad ".encode() + b"caf\xe9 \xa9\nend\n")
    refused(lambda: encode([str(good), str(path)], vocab=vocab), "text:3: invalid UTF-8 byte", "`iconv -f CP1252")
    assert "caf\ufffd" in words_of(encode([str(path)], errors="replace"))
    assert words_of(encode([str(path)], errors="ignore"))[5:7] == ["bad", "caf"]


def test_binary_files_are_rejected(tmp_path):
    (path := tmp_path / "text").write_bytes(b"\x7fELF x\nab\x00cd e\n")
    refused(lambda: encode([str(path)]), "text:2: a zero byte; ", "`iconv -f UTF-16")
    path.write_bytes(b"x" * (sources.LONGEST_WORD + 10 + sources.BLOCK))
    refused(lambda: encode([str(path)]), "plain text")


@pytest.mark.parametrize("data, min_count", [(b"", 1), (b"\n\n \n", 1), (b"a b c\n", 5)])
def test_nothing_to_train_on(tmp_path, data, min_count):
    (path := tmp_path / "text").write_bytes(data)
    refused(lambda: encode([str(path)], min_count=min_count), "text: no word")


@pytest.mark.parametrize("size", [2, 3, 50])
def test_max_vocab_is_exact(tmp_path, size):
    (path := tmp_path / "text").write_bytes(b"".join(b"w%d " % (k % (1 + k // 9)) for k in range(2000)))
    encoded = encode([str(path)], max_vocab=size)
    assert len(encoded.vocab) == size == encoded.ids.max() + 1
    everything = encode([str(path)])
    assert encoded.vocab.words == everything.vocab.words[:size]


def test_given_vocabularies_and_words_dropped_from_them(tmp_path, messages):
    (path := tmp_path / "text").write_bytes(b"a b c a unknown\nb\n")
    vocab = Vocab(["</s>", "b", "a"], np.array([7, 6, 5]))
    encoded = encode([str(path)], vocab=vocab)
    assert words_of(encoded) == ["a", "b", "a", "</s>", "b", "</s>"]
    assert encoded.vocab is vocab and encoded.tokens_read == 8
    refused(lambda: encode([str(path)], vocab=Vocab(["</s>", "z"], np.array([7, 6]))), "no word of the vocabulary")
    (tmp_path / "text").write_text("a b\n\nrare a b\nb\na")
    encoded = encode([str(tmp_path / "text")], min_count=2)
    assert list(encoded.sentences()) == [["a", "b"], [], ["a", "b"], ["b"], ["a"]]
    (path := tmp_path / "listed").write_text("b 3\r\n\na\u00a0c\n</s> 9\n7\n")
    assert read_words(str(path)) == ["</s>", "b", "a\u00a0c", "7"]
    (path := tmp_path / "vocab").write_bytes(b"</s> 1\n" + b"".join(b"w%d %d\n" % (k, k) for k in range(1, 1500)))
    assert len(Vocab.read(str(path), 1001, 100)) == 100
    assert messages() == (
        f"{path}: `min_count=1001` dropped 1,000 of 1,500 words\n{path}: `max_vocab=100` dropped 400 of 1,500 words\n"
    )
    Vocab.read(str(path))
    Vocab.read(str(path), 1001)
    assert messages() == f"{path}: `min_count=1001` dropped 1,000 of 1,500 words\n"


def test_vocab_files_are_read_in_any_order(tmp_path):
    vocab = Vocab(["</s>", "a\u00a0b", "é", "x"], np.array([3, 9, 5, 5]))
    path = tmp_path / "vocab"
    with open(path, "wb") as file:
        vocab.write(file)
    assert path.read_bytes() == "</s> 3\na\u00a0b 9\né 5\nx 5\n".encode()
    again = Vocab.read(str(path))
    assert again.words == vocab.words and again.counts.tolist() == [3, 9, 5, 5]
    assert Vocab.read(str(path), min_count=6).words == ["</s>", "a\u00a0b"]
    assert Vocab.read(str(path), max_vocab=3).words == ["</s>", "a\u00a0b", "é"]
    (path := tmp_path / "vocab").write_bytes(b"rare 1\n</s> 2\ncommon\t30\r\n\n")
    assert Vocab.read(str(path)).words == ["</s>", "common", "rare"]
    path.write_bytes(b"rare 1\n")
    assert Vocab.read(str(path)).words == ["</s>", "rare"]
    path.write_bytes("\ufeffrare 1\n\ufeffrare 2\n".encode())  # a byte order mark, then part of a word
    assert Vocab.read(str(path)).words == ["</s>", "\ufeffrare", "rare"]


@pytest.mark.parametrize("line", [
    b"word", b"word x", b"word -3", b"5", b" 5", b"two words 5", b"a\0b 3", b"\xff 3", b"word 99999999999999999999",
])  # fmt: skip
def test_invalid_vocab_files_are_rejected(tmp_path, line):
    (path := tmp_path / "vocab").write_bytes(b"</s> 1\n" + line + b"\n")
    refused(lambda: Vocab.read(str(path)), "vocab:2: ")
    for empty in b"", b"\n \n":
        path.write_bytes(empty)
        refused(lambda: Vocab.read(str(path)), "vocab: is empty; give a vocabulary file")
    path.write_bytes(b"a 1\nb 2\na 3\n")
    refused(lambda: Vocab.read(str(path)), "vocab:3: duplicate word 'a'")


@pytest.mark.parametrize("listed, problem", [
    ("a 1\nb c\n", ":2: expected a word, or `word count`"), ("a b 1\n", ":1: expected a word, or `word count`"),
    ("a\nb\na 1\n", ":3: duplicate word 'a'; remove one line"), ("\n", ": is empty; give a list of words"),
])  # fmt: skip
def test_invalid_lists_of_words_are_rejected(tmp_path, listed, problem):
    (path := tmp_path / "listed").write_text(listed)
    refused(lambda: read_words(str(path)), f"{path}{problem}")
