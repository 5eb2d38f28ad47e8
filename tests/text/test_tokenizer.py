"""Test the words of raw text: UAX #29, the path for ASCII, the rules, and the processes."""

import io
import unicodedata

import pytest
from common import refused, regex_or_skip
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tiedtools
from tiedtools import Contradiction, Word2Vec
from tiedtools.base.settings import DEFAULT, Tokenization
from tiedtools.text import raw
from tiedtools.text.sentences import Sentences
from tiedtools.text.sources import open_source
from tiedtools.text.tokenizer import Process, Tokenizer

regex = regex_or_skip()

# Characters of every word-boundary class, and pieces that have rules of their own.
PIECES = [
    *"aZ09_.,:;'\"’-‐#@<>/()&! \n\t\x07",
    *"éÉßΣσİıאबあ漢ไ한゛ア٫",
    *"\u0301\u200d\u00ad\u2060\U0001f1e9\U0001f1ea\U0001f469\U0001f3fd\ufe0f\u2028\u0345",
    *["http://", "www.", "n't", "'s", "l'", "<unk>", "<url>", "a@b.org", "3.14", "Dr.", "ΟΔΟΣ"],
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.characters(exclude_categories=["Cs"]), max_size=20).map("".join)
ASCII_TEXTS = st.lists(st.sampled_from([p for p in PIECES if p.isascii()] + [*map(chr, range(9, 127))])).map("".join)
SPECS = [
    DEFAULT, "lower", "lower,language=tr,hyphens=keep", "lower,numbers=fold,urls=fold,punctuation=drop",
    "numbers=zeros,apostrophes=split,language=el,lower", "language=en,apostrophes=contractions",
    "language=fr,urls=drop", "language=it,numbers=drop,hyphens=keep,lower",
    "language=ca,apostrophes=drop,punctuation=drop",
]  # fmt: skip


def tokenize(text, spec=DEFAULT):
    return Tokenizer(Tokenization.of(spec))(text)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_words_are_those_of_uax_29(text):
    """The library splits the whole text; addresses, #tags, variants, and marks after whitespace are ours."""
    for character in "@#<‐’\u00ad\ufeff\u200b\u202f\u2060":
        text = text.replace(character, " ")
    text = regex.sub(r"(?i)www\.|://|[\p{Cc}\p{Bidi_Control}--\s]", " ", text, flags=regex.V1)
    tokenizer = Tokenizer(Tokenization())
    text = regex.sub(r"(?:^|\s)[\p{WB=Extend}\p{WB=Format}\p{WB=ZWJ}]+", " ", text)
    pieces = regex.split(r"(?wV1)\b", unicodedata.normalize("NFC", text))
    assert tokenizer(text).split() == [word for piece in pieces for word in piece.split()]


@settings(max_examples=300, deadline=None)
@given(ASCII_TEXTS, st.sampled_from(["split", "keep"]))
def test_the_path_for_ascii_gives_the_same_words(text, hyphens):
    fast, slow = (Tokenizer(Tokenization(lower=True, language="tr", hyphens=hyphens)) for _ in range(2))
    slow.keeps = False
    assert fast(text) == slow(text) and fast.ascii_word.findall(text) == fast.word.findall(text)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from(SPECS))
@example("l'\u0301a", "numbers=zeros,apostrophes=split,language=el,lower")
def test_tokenizing_again_changes_nothing(text, spec):
    once = tokenize(text, spec)
    assert tokenize(once, spec) == once and once.count("\n") == text.count("\n")


@pytest.mark.parametrize("spec, text, words", [
    (DEFAULT, "can’t l'homme 3.14 1,000 v1.2 foo_bar", "can't l'homme 3.14 1,000 v1.2 foo_bar"),
    (DEFAULT, "foo-bar 10:30 U.S.A. (cat's)", "foo - bar 10 : 30 U.S.A . ( cat's )"),
    (DEFAULT, "see http://a.org/b?c=1, x@y.org #tag @me", "see http://a.org/b?c=1 , x@y.org #tag @me"),
    (DEFAULT, "e\u0301te\u0301 \U0001f1e9\U0001f1ea <unk> co\u00adop", "été \U0001f1e9\U0001f1ea <unk> coop"),
    ("lower", "ÉTÉ İZMİR Straße GROẞ", "été izmir straße groß"),
    ("lower,language=tr", "İZMİR ISPARTA", "izmir ısparta"), ("language=fr", "l'" * 400 + "a", "l' " * 400 + "a"),
    ("sentences,lower,language=el", "ΟΔΟΣ ΟΔΟΣ-ΟΔΟΣ, Σ; ΝΑΙ\u037e Ε", "οδος οδος - οδος , σ ;\nναι ;\nε"),
    ("numbers=zeros", "3.14 b2b 1990s", "0.00 b0b 0000s"),
    ("numbers=fold", "3.14 b2b 1,000! ٣٤", "<num> b2b <num> ! <num>"),
    ("numbers=drop,urls=drop", "at 3.14 www.a.org now 联系user@host.org谢", "at now 联 系 谢"),
    ("urls=fold,punctuation=drop", "“at (www.a.org), x@y.org!” \U0001f600", "at <url> <url>"),
    ("apostrophes=contractions,language=en", "don't we'll dogs' n't", "do n't we 'll dogs ' n't"),
    ("language=fr", "L’homme qu'il aujourd'hui", "L' homme qu' il aujourd'hui"),
    ("language=it", "dell'arte po'", "dell' arte po'"), ("apostrophes=split", "don't", "don ' t"),
    ("apostrophes=split,punctuation=drop", "don't", "don t"), ("apostrophes=drop", "don't", "dont"),
    ("hyphens=keep", "state-of-the-art - a‑b \u200fc\u200e d\u200be\u2060", "state-of-the-art - a-b c d e"),
    ("sentences", "Is it? “Yes.” No… 3 Ես։ 好。」 是", "Is it ?\n“ Yes . ”\nNo …\n3 Ես ։\n好 。 」\n是"),
    ("sentences", "Dr. A. B. Lee of the U.S. Army. it... And", "Dr . A . B . Lee of the U.S . Army . it . . .\nAnd"),
    ("sentences,language=de", "Am 3. Mai war z.B. Ruhe. Dann", "Am 3 . Mai war z.B . Ruhe .\nDann"),
    ("sentences,punctuation=drop,lower", "... One. ... Two", "one\ntwo"),
])  # fmt: skip
def test_rules(spec, text, words):
    assert tokenize(text, spec) == words
    assert Tokenization.of(str(Tokenization.of(spec))) == Tokenization.of(spec)


def lines_of(text, spec, processes, **options):
    source = raw.Raw(io.BytesIO(text.encode()), Tokenization.of(spec), processes=processes, **options)
    return b"".join(source.pieces()).decode()


def test_processes(monkeypatch):
    monkeypatch.setattr(raw, "BATCH", 50)
    text = "".join(f"Line {k}. It is ÉTÉ, number {k}!\n\n" for k in range(40))
    once = lines_of(text, "sentences,lower", 1)
    assert once.count("\n") == 120 and once == lines_of(text, "sentences,lower", 3)
    taken = []
    source = raw.Raw(Sentences(taken.append(k) or f"Line {k}." for k in range(9)), Tokenization(), processes=1)
    with open_source(source) as file:
        assert [next(iter(file.readline, b"")) for _ in range(2)] == [b"Line 0 .\n", b"Line 1 .\n"]


def test_a_process_that_is_killed(tmp_path, monkeypatch):
    (tmp_path / "regex.py").write_text("raise SystemExit('a file of the current folder was run')")
    monkeypatch.chdir(tmp_path)
    process = Process(Tokenization())
    assert process("It's") == "It's"
    process.process.kill()
    refused(lambda: process("It's"), "has ended")
    process.close()


@pytest.mark.parametrize("processes", [1, 2])
def test_scripts_without_spaces_are_reported_once(messages, monkeypatch, processes):
    monkeypatch.setattr(raw, "BATCH", 5)
    assert lines_of("a\n漢字\nไทย\n", DEFAULT, processes) == "a\n漢 字\nไ ท ย\n"
    assert [line.split(": ")[0] for line in messages().splitlines()] == ["file"]


@pytest.mark.parametrize("spec", ["lwer", "language=xx", "apostrophes=contractions,language=de", "numbers", "lower=1"])
def test_wrong_tokenizations(spec):
    refused(lambda: Word2Vec(tokenize=spec), kind=Contradiction)


def test_python_takes_and_gives_iterables(tmp_path):
    texts = ["The file isn't open. Yes.\nNo", "", "ÉTÉ"]
    words = [["the", "file", "isn't", "open", ".", "yes", ".", "no"], [], ["été"]]
    assert list(tiedtools.tokenize(texts, lower=True)) == words == list(tiedtools.tokenize(iter(texts), lower=True))
    (tmp_path / "text").write_text("The file isn't open. Yes. No\n\nÉTÉ\n")
    assert list(tiedtools.tokenize(tmp_path / "text", lower=True)) == words
    refused(lambda: tiedtools.tokenize(texts, lower=3), kind=Contradiction)
