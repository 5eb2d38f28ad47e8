"""Test reading of texts and their translations as ids."""

import lzma

import numpy as np
import pytest
from refusals import refused

from tiedtools.text.bitext import Bitext


@pytest.fixture
def texts(tmp_path):
    """A function that writes texts, by name, and returns their paths, each in a list."""

    def write(**texts):
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        return [[str(tmp_path / name)] for name in texts]

    return write


def words(ids, vocab):
    return " ".join(vocab.words[k] for k in ids).replace("</s>", "|")


def test_words(texts):
    s, t = texts(s="b a\n\nb c\n", t="x\n\ny x <unk>")
    text = Bitext.read(s, t)
    assert text.source_vocab.words == ["</s>", "<unk>", "b", "a", "c"]
    assert text.source_vocab.counts.tolist() == [3, 0, 2, 1, 1]
    assert text.target_vocab.words == ["</s>", "<unk>", "x", "y"]
    assert text.target_vocab.counts.tolist() == [3, 1, 2, 1]
    assert words(text.train.source, text.source_vocab) == "b a | | b c |"
    assert words(text.train.target, text.target_vocab) == "x | | y x <unk> |"
    assert text.train.lines == 3 and text.train.source.dtype == np.int32
    assert text.vocab is text.target_vocab and text.codes == "" and text.valid is None


def test_joint_vocabulary_and_its_limits(texts):
    s, t, vs, vt = texts(s="a b\na c\n", t="c a\nd b\n", vs="d a e\n", vt="a\n")
    text = Bitext.read(s, t, vs, vt, joint=True)
    assert text.source_vocab is text.target_vocab
    assert text.vocab.words == ["</s>", "<unk>", "a", "b", "c", "d"]
    assert text.vocab.counts.tolist() == [4, 0, 3, 2, 2, 1]
    assert words(text.valid.source, text.vocab) == "d a <unk> |" and text.references == ["a"]
    rare = Bitext.read(s, t, joint=True, min_count=2)
    assert rare.vocab.words == ["</s>", "<unk>", "a", "b", "c"] and rare.vocab.counts.tolist() == [4, 1, 3, 2, 2]
    assert words(rare.train.target, rare.vocab) == "c a | <unk> b |"
    assert Bitext.read(s, t, joint=True, max_vocab=4).vocab.words == ["</s>", "<unk>", "a", "b"]


def test_bpe_is_joint(texts):
    pytest.importorskip("subword_nmt")
    s, t, vs, vt = texts(s="low lower\n" * 3, t="newest low\n" * 3, vs="slo", vt="q")
    text = Bitext.read(s, t, vs, vt, bpe=6)
    assert words(text.train.source, text.source_vocab).startswith("low lo@@ wer | low")
    assert "low" in text.target_vocab.words and text.source_vocab is not text.target_vocab
    assert words(text.valid.source, text.source_vocab) == "<unk> <unk> <unk> |"
    assert words(text.valid.target, text.target_vocab) == "<unk> |"
    assert text.codes.startswith("#version: 0.2\nl o")
    joint = Bitext.read(s, t, bpe=6, joint=True)
    assert set(joint.vocab.words) == {*text.source_vocab.words, *text.target_vocab.words}


def test_several_and_compressed_files(texts, tmp_path):
    s, t, more = texts(s="a\nb", t="x\ny\nz\n", more="c\n")
    (tmp_path / "more.xz").write_bytes(lzma.compress(b"c"))
    for other in more, [str(tmp_path / "more.xz")]:
        text = Bitext.read(s + other, t)
        assert words(text.train.source, text.source_vocab) == "a | b | c |"


@pytest.mark.parametrize("lines", ["a b\n\n\nzz c\n\n", "\na\n", "a  \n b"])
def test_references_are_the_lines(texts, lines):
    s, t = texts(s="a\n" * (lines + "\n" * (lines[-1] != "\n")).count("\n"), t=lines)
    text = Bitext.read(s, t, s, t, max_vocab=3)
    assert text.references == [" ".join(line.split()) for line in lines.splitlines()]


def test_errors(texts):
    s, t, ended, rare = texts(s="a\nb\n", t="x\n", ended="x </s>\ny\n", rare="x\ny\n")
    refused(lambda: Bitext.read(s, t), "t: has 1 line, but ", "s has 2; line N of one")
    refused(lambda: Bitext.read(s, ended), "ended: `</s>` within a line")
    refused(lambda: Bitext.read(s, rare, min_count=3), "s: no word of the vocabulary; lower")
