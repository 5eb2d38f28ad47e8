"""Test syllables: those of Pyphen, languages, and what happens where Pyphen is missing or has other patterns."""

import pickle
import sys

import pytest

from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.text.subwords import Syllables


@pytest.fixture
def pyphen():
    return pytest.importorskip("pyphen", reason='needs Pyphen: pip install "tiedtools[subwords]"')


WORDS = [
    ("en_US", "hyphenation", "hy phen ation"), ("en_US", "dog", "dog"), ("en_US", "year-to-year", "year to year"),
    ("en_US", "dollar-denominated", "dol lar de nom i nat ed"),  # Pyphen's are empty around the hyphen
    ("en_US", "-", "-"), ("en_US", "--", "--"), ("en_US", "<unk>", "<unk>"), ("en-US", "Paper", "Pa per"),
    ("de_DE", "Straßenbahn", "Stra ßen bahn"), ("de", "e\u0301clair", "e\u0301clair"),
    ("hu_HU", "asszonnyal", "asz szony nyal"), ("en_US", "", ""),
]  # fmt: skip


def test_syllables(pyphen):
    for language, word, syllables in WORDS:
        assert Syllables(language).segment(word) == syllables.split()


def test_lowercasing_that_lengthens_a_word(pyphen):
    assert "".join(Syllables("en_US").segment("İİİİstanbulİ")) == "İİİİstanbulİ"


def test_unknown_language(pyphen):
    with pytest.raises(Contradiction, match="^`language='tlh'` is not one of af_ZA, .*, en_GB, en_US, .*zu_ZA$"):
        Syllables("tlh").load()


def test_without_pyphen(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyphen", None)
    with pytest.raises(TiedtoolsError, match=r'^syllables need Pyphen: pip install "tiedtools\[subwords\]"$'):
        Syllables("en_US").load()
    with pytest.raises(TiedtoolsError, match=r"^syllables need Pyphen: pip install pyphen==0\.9$"):
        Syllables("en_US", "0.9", "0" * 64).segment("paper")


def test_patterns_of_another_version(pyphen):
    made = Syllables("de_DE").load()
    assert made.version == pyphen.__version__ and len(made.patterns) == 64
    assert Syllables("de_DE", "0.9", made.patterns).segment("Papier") == ["Pa", "pier"]  # the version had the same
    with pytest.raises(TiedtoolsError, match="not those of version 0.9, .*; pip install pyphen==0.9$"):
        Syllables("de_DE", "0.9", "0" * 64).segment("Papier")


def test_pickling(pyphen):
    again = pickle.loads(pickle.dumps(Syllables("hu_HU").load()))
    assert again.segment("asszonnyal") == ["asz", "szony", "nyal"]
