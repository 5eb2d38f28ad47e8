"""Test reading of training texts as ids: language-model texts, bitexts."""

import collections
import lzma
import random
import re

import numpy as np
import pytest
from common import refused

from tiedtools.text.bitext import Bitext
from tiedtools.text.lmtext import LmText
from tiedtools.text.vocab import Vocab


@pytest.fixture
def path(tmp_path):
    def path(data, name="text"):
        (tmp_path / name).write_bytes(data if isinstance(data, bytes) else data.encode())
        return str(tmp_path / name)

    return path


def words(text, name):
    ids = getattr(text, name)
    assert ids.dtype == np.int32
    return [text.vocab.words[k] for k in ids]


def counted(text):
    return dict(zip(text.vocab.words, text.vocab.counts.tolist()))


def read(train, valid_share=0, **options):
    return LmText.read([train], valid_share=valid_share, **options)


@pytest.mark.parametrize("seed, min_count, max_vocab", [
    (0, 1, None), (1, 3, None), (2, 1, 12), (3, 4, 8), (4, 0, 30), (5, 4, 8), (6, 1, 12), (7, 3, None),
])  # fmt: skip
def test_agrees_with_plain_python(path, seed, min_count, max_vocab):
    rng = random.Random(seed)
    tokens = [rng.choice(["\n", "<unk>"] + [f"w{k * k // 9}" for k in range(rng.randint(1, 12))]) for _ in range(150)]
    tokens = ["</s>" if token == "\n" else token for token in [*tokens, "w0", "w0", "w0", "w0"]]
    text = read(path(" ".join(tokens).replace("</s>", "\n")), min_count=min_count, max_vocab=max_vocab)
    counts = collections.Counter(tokens)
    unk, ends = counts.pop("<unk>", 0), counts.pop("</s>", 0)
    kept = [w for w, c in sorted(counts.items(), key=lambda item: (-item[1], tokens.index(item[0]))) if c >= min_count]
    if unk or len(kept) < len(counts) or max_vocab and len(kept) > max_vocab - 1:
        kept = kept[: max_vocab and max_vocab - 2]
        lost = unk + sum(c for w, c in counts.items() if w not in kept)
        position = sum(counts[w] > lost for w in kept)
        kept.insert(position, "<unk>")
        counts["<unk>"] = lost
    assert text.vocab.words == ["</s>", *kept]
    assert text.vocab.counts.tolist() == [ends, *(counts[w] for w in kept)]
    assert words(text, "train") == [w if w in ["</s>", *kept] else "<unk>" for w in tokens]


def test_other_texts_and_held_out_lines(path, messages):
    train, other = path("a b <unk>\n", "train"), path("a new b\nnew\n", "other")
    text = read(train, valid=other, test=other)
    assert words(text, "valid") == words(text, "test") == ["a", "<unk>", "b", "</s>", "<unk>", "</s>"]
    assert messages().splitlines() == [] and counted(text) == {"</s>": 1, "a": 1, "b": 1, "<unk>": 1}
    train, other = path("a b\n", "train"), path("a new b\nnew\n", "other")
    text = read(train, valid=other)
    assert words(text, "valid") == ["a", "b", "</s>", "</s>"]
    assert messages().splitlines() == [f"{other}: 2 words outside the vocabulary, which has no <unk>, are left out"]
    data = "".join(f"a b c d{k}\n" for k in range(10))
    text = LmText.read([path(data)], valid_share=0.22)
    assert len(text.train) == 40 and words(text, "valid") == ["a", "b", "c", "</s>"] * 2
    assert counted(text)["a"] == 8 and "d7" in text.vocab.words and "d8" not in text.vocab.words
    told = messages().splitlines()
    assert told[0] == "validation: the last 10 of the text's 50 tokens (`valid_share`)"
    assert ", last part: 2 words outside" in told[1]
    text = LmText.read([path(data)], valid_share=0.22, min_count=2)
    assert words(text, "valid") == ["a", "b", "c", "<unk>", "</s>"] * 2 and counted(text)["<unk>"] == 8
    text = LmText.read([path("a b c a b c a b")], valid_share=0.25)
    assert words(text, "train") == ["a", "b", "c", "a", "b", "c"] and words(text, "valid") == ["a", "b"]


def test_oov_words_can_be_kept(path, messages):
    data, other = path("a b c\nb new\n", "train"), path("new b\n<unk>\n", "other")
    text = LmText.read([data], other, other, keep_oovs=True)
    assert text.train.tolist() == [2, 1, 3, 0, 1, 4, 0]
    assert text.valid.tolist() == text.test.tolist() == [4, 1, 0, -1, 0] and text.valid.dtype == np.int32
    assert (
        messages().splitlines() == [f"{other}: 1 word outside the vocabulary, which has no <unk>, is not predicted"] * 2
    )
    text = LmText.read([data], valid_share=0.5, keep_oovs=True)
    assert text.valid.tolist() == [2, -1, 0] and len(messages().splitlines()) == 2
    train, other = path("a <unk> b\n", "train"), path("a x <unk> y\n", "other")
    options = dict(keep_oovs=True, predict_oovs=False)
    text = LmText.read([train], other, other, **options)
    a, unk = (text.vocab.words.index(word) for word in ("a", "<unk>"))
    assert text.valid.tolist() == text.test.tolist() == [a, -1, unk, -1, 0]
    assert messages().splitlines() == [f"{other}: 2 words outside the vocabulary are not predicted"] * 2
    assert words(LmText.read([train], other), "valid") == ["a", "<unk>", "<unk>", "<unk>", "</s>"]


def test_a_vocabulary_object_is_used_unchanged(path, messages):
    vocab = Vocab(["</s>", "b", "a"], np.array([3, 1, 0]))  # in an order other than the text's
    train = path("a b c\nb a c\n", "train")
    text = LmText.read([train], valid_share=0.5, vocab=vocab, min_count=9, max_vocab=3)
    assert text.vocab is vocab and text.train.tolist() == [2, 1, 0] and text.valid.tolist() == [1, 2, 0]
    told = messages().splitlines()
    assert [line.split(": ")[1].split(",")[0] for line in told[::2]] == ["1 word outside the vocabulary"] * 2
    text = LmText.read([train], train, vocab=vocab, keep_oovs=True)
    assert text.train.tolist() == text.valid.tolist() == [2, 1, -1, 0, 1, 2, -1, 0]
    vocab = Vocab(["</s>", "b", "<unk>"], np.array([3, 1, 1]))
    assert LmText.read([train], valid_share=0, vocab=vocab).train.tolist() == [2, 1, 2, 0, 1, 2, 2, 0]
    refused(lambda: LmText.read([path("c d\n")], valid_share=0, vocab=vocab), "no word of the vocabulary")


def test_given_vocabularies_and_invalid_texts(path):
    vocab = path("</s> 5\na 9\nb 7\nc 2\n", "vocab")
    text = read(path("a b a\n"), read_vocab=vocab)
    assert counted(text) == {"</s>": 5, "a": 9, "b": 7, "c": 2}
    text = read(path("a new b new\n"), read_vocab=vocab)
    assert list(counted(text).items()) == [("</s>", 5), ("a", 9), ("b", 7), ("<unk>", 2), ("c", 2)]
    assert words(text, "train") == ["a", "<unk>", "b", "<unk>", "</s>"]
    text = read(path("a b new c c c\n"), read_vocab=vocab, max_vocab=4)
    assert counted(text) == {"</s>": 5, "a": 9, "b": 7, "<unk>": 4}
    assert words(text, "train") == ["a", "b", *["<unk>"] * 4, "</s>"]
    vocab = path("</s> 5\na 9\n<unk> 8\nb 7\n", "vocab")
    assert counted(read(path("a new b\n"), read_vocab=vocab)) == {"</s>": 5, "a": 9, "<unk>": 8, "b": 7}
    vocab = path("</s> 5\na 9\nb 0\n", "vocab")
    assert words(read(path("a b\n"), read_vocab=vocab), "train") == ["a", "<unk>", "</s>"]
    train = path("a b\n", "train")
    for data in "x y", "x y\n\nz\n":
        refused(lambda: read(train, valid=path(data, "valid")), "valid: no word of the vocabulary")
    refused(lambda: read(train, read_vocab=path("</s> 1\nz 3\n", "vocab")), "train: no word of the vocabulary in 3")
    refused(lambda: read(train, test="nothing"), "nothing: cannot be read")


def test_words_dropped_from_a_given_vocabulary_are_reported(path, messages):
    vocab = path("</s> 5\na 9\n<unk> 1\nb 7\nc 2\nd 1\n", "vocab")
    options = dict(read_vocab=vocab)
    assert counted(read(path("a b\n"), min_count=2, max_vocab=4, **options)) == {"</s>": 5, "a": 9, "b": 7, "<unk>": 4}
    assert messages().splitlines() == [
        f"{vocab}: `min_count=2` dropped 1 of 5 words",
        f"{vocab}: `max_vocab=4` dropped 1 of 5 words",
    ]
    read(path("a b\n"), **options)
    vocab = path("</s> 5\na 9\nb 7\n", "vocab")
    read(path("a b\n"), max_vocab=3, **options)
    read(path("a a b\n"), min_count=2, max_vocab=3)  # dropped from the text's own vocabulary
    assert messages().splitlines() == []
    read(path("a b\rc d\re f\r")), read(path("\ufeff\n<!DOCTYPE HTML>\na b\n"))
    assert re.search("(?s)text: its lines end in CR.*text: is HTML", messages())


@pytest.mark.parametrize("data, options, message", [
    ("", {}, "text: no words; give a text"), ("a b\n", dict(min_count=2), "no word of the vocabulary in 3 tokens"),
    ("a", dict(valid_share=0.5), "too little text"), ("{\\rtf1 a}\n", {}, "text:1: is in Rich Text Format; save it"),
    ("a b c d", dict(valid_share=0.2), "text, last part: no word of the vocabulary; use `valid` or `valid_share=0`"),
    ("PK\3\4", {}, "1: is a zip archive"), ("PAR1\x15", {}, "is in Parquet"), ("a\0b\n", {}, "text:1: a zero byte"),
    ("%PDF-1\n", {}, "1: is a PDF"), ("a".ljust(257, "\0") + "ustar", {}, "text:1: is a tar archive; unpack it"),
    (b"ok\n\xff\n", {}, "text:2: invalid UTF-8 byte 0xff"),
])  # fmt: skip
def test_invalid_training_texts(path, data, options, message):
    refused(lambda: read(path(data), **options), message)


def test_a_known_vocabulary_adds_its_counts(path):
    known = read(path("a a a b c\n", "old"), min_count=2).vocab
    assert counted(read(path("a a a b c\n", "old"), min_count=2)) == {"</s>": 1, "a": 3, "<unk>": 2}
    new = path("b b d d d a <unk>\n")
    assert counted(read(new, known=known)) == {"</s>": 2, "<unk>": 8, "a": 4}
    text = read(new, known=known, grow=True, min_count=2)
    assert counted(text) == {"</s>": 2, "a": 4, "d": 3, "<unk>": 3, "b": 2}
    assert words(text, "train") == ["b", "b", "d", "d", "d", "a", "<unk>", "</s>"]
    known, new = read(path("a a b\n", "old")).vocab, path("a c c d\n")
    text = read(new, known=known)
    assert set(text.vocab.words) == set(known.words) and words(text, "train") == ["a", "</s>"]
    text = read(new, known=known, grow=True, min_count=2)
    assert words(text, "train") == ["a", "c", "c", "<unk>", "</s>"]
    text = read(path("a c\na d\n"), known=known, grow=True, valid_share=0.5)  # d is held out, so it is not known
    assert set(text.vocab.words) == {*known.words, "c"} and words(text, "valid") == ["a", "</s>"]
    refused(lambda: read(path("x y\n"), known=known))


@pytest.fixture
def texts(tmp_path):
    """A function that writes texts, by name, and returns their paths, each in a list."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        return [[str(tmp_path / name)] for name in texts]

    return write


def as_words(ids, vocab):
    return " ".join(vocab.words[k] for k in ids).replace("</s>", "|")


def test_words_of_bitexts(texts, tmp_path):
    s, t = texts(s="b a\n\nb c\n", t="x\n\ny x <unk>")
    text = Bitext.read(s, t)
    assert text.source_vocab.words == ["</s>", "<unk>", "b", "a", "c"]
    assert text.source_vocab.counts.tolist() == [3, 0, 2, 1, 1]
    assert text.target_vocab.words == ["</s>", "<unk>", "x", "y"]
    assert text.target_vocab.counts.tolist() == [3, 1, 2, 1]
    assert as_words(text.train.source, text.source_vocab) == "b a | | b c |"
    assert as_words(text.train.target, text.target_vocab) == "x | | y x <unk> |"
    assert text.train.lines == 3 and text.train.source.dtype == np.int32
    assert text.vocab is text.target_vocab and text.codes == "" and text.valid is None
    s, t, more = texts(s="a\nb", t="x\ny\nz\n", more="c\n")
    (tmp_path / "more.xz").write_bytes(lzma.compress(b"c"))
    for other in more, [str(tmp_path / "more.xz")]:
        text = Bitext.read(s + other, t)
        assert as_words(text.train.source, text.source_vocab) == "a | b | c |"
    s, t, vs, vt = texts(s="a b\na c\n", t="c a\nd b\n", vs="d a e\n", vt="a\n")
    text = Bitext.read(s, t, vs, vt, joint=True)
    assert text.source_vocab is text.target_vocab
    assert text.vocab.words == ["</s>", "<unk>", "a", "b", "c", "d"]
    assert text.vocab.counts.tolist() == [4, 0, 3, 2, 2, 1]
    assert as_words(text.valid.source, text.vocab) == "d a <unk> |" and text.references == ["a"]
    more, long = texts(more="a\na\nb\n", long=f"a\n{'b ' * 1001}\nc\n")
    text = Bitext.read(s, t, more, long)
    assert text.references == ["a", "c"] and as_words(text.valid.source, text.source_vocab) == "a | b |"
    rare = Bitext.read(s, t, joint=True, min_count=2)
    assert rare.vocab.words == ["</s>", "<unk>", "a", "b", "c"] and rare.vocab.counts.tolist() == [4, 1, 3, 2, 2]
    assert as_words(rare.train.target, rare.vocab) == "c a | <unk> b |"
    assert Bitext.read(s, t, joint=True, max_vocab=4).vocab.words == ["</s>", "<unk>", "a", "b"]
    s, t, ended, rare = texts(s="a\nb\n", t="x\n", ended="x </s>\ny\n", rare="x\ny\n")
    refused(lambda: Bitext.read(s, t), "t: has 1 line, but ", "s, has 2; line N of one")
    refused(lambda: Bitext.read(s, ended), "ended: `</s>` within a line")
    refused(lambda: Bitext.read(s, rare, min_count=3), "s: no word of the vocabulary; lower")


def test_bpe_is_joint(texts):
    pytest.importorskip("subword_nmt")
    s, t, vs, vt = texts(s="low lower\n" * 3, t="newest low\n" * 3, vs="slo", vt="q")
    text = Bitext.read(s, t, vs, vt, bpe=6)
    assert as_words(text.train.source, text.source_vocab).startswith("low lo@@ wer | low")
    assert "low" in text.target_vocab.words and text.source_vocab is not text.target_vocab
    assert as_words(text.valid.source, text.source_vocab) == "<unk> <unk> <unk> |"
    assert as_words(text.valid.target, text.target_vocab) == "<unk> |"
    assert text.codes.startswith("#version: 0.2\nl o")
    joint = Bitext.read(s, t, bpe=6, joint=True)
    assert set(joint.vocab.words) == {*text.source_vocab.words, *text.target_vocab.words}


@pytest.mark.parametrize("lines", ["a b\n\n\nzz c\n\n", "\na\n", "a  \n b"])
def test_references_are_the_lines(texts, lines):
    s, t = texts(s="a\n" * (lines + "\n" * (lines[-1] != "\n")).count("\n"), t=lines)
    text = Bitext.read(s, t, s, t, max_vocab=3)
    assert text.references == [" ".join(line.split()) for line in lines.splitlines()]
