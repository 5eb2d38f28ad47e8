"""Test messages.py: perplexity, and the formatting of non-finite numbers."""

import json
import math

import pytest

from tiedtools.base.messages import finite, in_digits, perplexity, to_json


def test_perplexity():
    assert perplexity(math.log(50)) == pytest.approx(50)
    assert perplexity(3 * math.log(50), 3) == pytest.approx(50)
    assert perplexity(1e4) == math.inf and math.isnan(perplexity(math.nan))
    assert perplexity(5.0, 0) is None


def test_figures_in_messages():
    assert [in_digits(figure) for figure in (None, math.inf, 12.345, 1234567.0)] == [
        "undefined", "infinite", "12.35", "1.23e+06"
    ]  # fmt: skip
    assert in_digits(math.nan, "g") == "undefined" and in_digits(12.345, ".1f") == "12.3"
    assert in_digits(2.5, "g") == "2.5"


def test_json_has_null_for_non_finite_numbers():
    assert finite(dict(a=math.inf, b=-math.inf, c=1.5, d=None, e=2)) == dict(a=None, b=None, c=1.5, d=None, e=2)
    assert json.loads(to_json({"a": [-math.inf, (math.nan, 1.0)]})) == {"a": [None, [None, 1.0]]}
