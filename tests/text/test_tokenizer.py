"""Test the words of raw text: UAX #29, the path for ASCII, the rules, and the processes."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tiedtools.base.settings import DEFAULT, Tokenization
from tiedtools.text.tokenizer import Tokenizer

regex = pytest.importorskip("regex")

# Characters of every word-boundary class, and pieces that have rules of their own.
PIECES = [
    *"aZ09_.,:;'\"’-‐#@<>/()&! \n\t\x07",
    *"éÉßΣσİıאबあ漢ไ한゛ア٫",
    *"\u0301\u200d\u00ad\u2060\U0001f1e9\U0001f1ea\U0001f469\U0001f3fd\ufe0f\u2028\u0345",
    *["http://", "www.", "n't", "'s", "l'", "<unk>", "<url>", "a@b.org", "3.14", "Dr.", "ΟΔΟΣ"],
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.characters(exclude_categories=["Cs"]), max_size=20).map("".join)
ASCII_TEXTS = st.lists(st.sampled_from([p for p in PIECES if p.isascii()] + [*map(chr, range(33, 127))])).map("".join)
SPECS = [
    DEFAULT,
    "lower",
    "lower,language=tr,hyphens=keep",
    "lower,numbers=fold,urls=fold,punctuation=drop",
    "numbers=zeros,apostrophes=split,language=el,lower",
    "language=en,apostrophes=contractions",
    "language=fr,urls=drop",
    "language=it,numbers=drop,hyphens=keep,lower",
    "language=ca,apostrophes=drop,punctuation=drop",
]


def tokenize(text, spec=DEFAULT):
    return Tokenizer(Tokenization.of(spec))(text)


@settings(max_examples=1000, deadline=None)
@given(TEXTS)
def test_words_are_those_of_uax_29(text):
    """The library splits the whole text at word boundaries; addresses, tags, and typographic variants are ours."""
    for character in "@#<‐’\u00ad\ufeff\u202f":
        text = text.replace(character, " ")
    text = regex.sub(r"(?i)www\.|://|[\p{Cc}--\s]", " ", text, flags=regex.V1)
    tokenizer = Tokenizer(Tokenization())
    pieces = regex.split(r"(?wV1)\b", unicodedata.normalize("NFC", text))
    assert tokenizer(text).split() == [word for piece in pieces for word in piece.split()]


@settings(max_examples=1000, deadline=None)
@given(ASCII_TEXTS, st.sampled_from(["split", "keep"]))
def test_the_path_for_ascii_gives_the_same_words(text, hyphens):
    tokenizer = Tokenizer(Tokenization(hyphens=hyphens))
    assert tokenizer.ascii_word.findall(text) == tokenizer.word.findall(text)


@settings(max_examples=1000, deadline=None)
@given(TEXTS, st.sampled_from(SPECS))
def test_tokenizing_again_changes_nothing(text, spec):
    once = tokenize(text, spec)
    assert tokenize(once, spec) == once
    assert once.count("\n") == text.count("\n")
