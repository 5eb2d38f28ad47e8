"""Test BLEU, and its errors."""

import sys

import pytest
from refusals import refused

from tiedtools.models.translation.bleu import bleu

pytest.importorskip("sacrebleu")


def test_by_definition():
    found = bleu(["a b c d e f"], [["a b c d x f g"]])
    # Matches: 5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3; the translation is shorter than the reference.
    expected = 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25 * 2.718281828 ** (1 - 7 / 6)
    assert found.score == pytest.approx(expected)
    assert found.details["words"] == 6 and found.details["reference_words"] == 7
    assert "tok:none" in found.signature and found.signature in found.line and f"{expected:.2f}"[:4] in found.line


def test_options():
    assert bleu(["A b c d ."], [["a b c d."]], lowercase=True, tokenize="13a").score == pytest.approx(100)
    assert bleu(["a b c d"], [["x y z u"], ["a b c d"]]).score == pytest.approx(100)


def test_errors(monkeypatch):
    refused(lambda: bleu([], [[]]), "no translations")
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics", None)
    refused(lambda: bleu(["a"], [["a"]]), "tiedtools[nmt]")
