"""Test byte-pair encoding: its symbols, their restoration, and its codes."""

import sys

import pytest
from common import refused

from tiedtools.text.bitext import Segmenter, check_codes, learn

subword_nmt = pytest.importorskip("subword_nmt")

COUNTS = {"low": 5, "lower": 2, "newest": 6, "widest": 3}  # of Sennrich et al. 2016


def test_symbols_of_words_and_their_restoration(monkeypatch):
    segmenter = Segmenter(learn(COUNTS, 10))
    assert segmenter.codes.splitlines()[:4] == ["#version: 0.2", "s t</w>", "e st</w>", "l o"]
    assert segmenter.symbols(["lowest", "new"]) == ["lo@@", "west", "ne@@", "w"]
    segmenter = Segmenter(learn(COUNTS, 3))
    words = "lowest <unk> w new caf\u00e9".split()
    assert "<unk>" in segmenter.symbols(words)
    assert segmenter.restore(segmenter.symbols(words)) == " ".join(words)
    assert segmenter.restore(["a@@", "b", "c@@"]) == "ab c"
    assert segmenter.restore([]) == ""
    segmenter = Segmenter()
    assert segmenter.symbols(["a@@", "b"]) == ["a@@", "b"] and segmenter.restore(["a@@", "b"]) == "a@@ b"
    assert all(check_codes(codes) == codes for codes in ("", "#version: 0.2\n", learn(COUNTS, 3)))
    monkeypatch.setitem(sys.modules, "subword_nmt", None)
    refused(lambda: learn(COUNTS, 3), "tiedtools[nmt]")


@pytest.mark.parametrize("counts", [{"a": 9}, {"ab": 1}, {"ab": 2}])
def test_too_few_pairs(counts, capsys):
    assert learn(counts, 100).count("\n") == 1 + (counts == {"ab": 2})
    assert "%" not in capsys.readouterr().err  # subword-nmt's progress


@pytest.mark.parametrize("codes", ["a b\n", "#version: 0.2\na b c\n", "#version: 0.1\na b\n"])
def test_other_codes_are_refused(codes):
    with pytest.raises(ValueError, match="not those of subword-nmt"):
        check_codes(codes)
