"""Test lists of words; test_encoding.py tests vocabularies with counts."""

import pytest
from refusals import refused

from tiedtools.text.vocab import read_words


def test_lists_of_words_with_and_without_counts(tmp_path):
    path = tmp_path / "listed"
    path.write_text("b 3\r\n\na\u00a0c\n</s> 9\n7\n")
    assert read_words(str(path)) == ["</s>", "b", "a\u00a0c", "7"]


@pytest.mark.parametrize("listed, problem", [
    ("a 1\nb c\n", ":2: expected a word, or `word count`"), ("a b 1\n", ":1: expected a word, or `word count`"),
    ("a\nb\na 1\n", ":3: duplicate word 'a'; remove one line"), ("\n", ": is empty; give a list of words"),
])  # fmt: skip
def test_invalid_lists_of_words_are_rejected(tmp_path, listed, problem):
    path = tmp_path / "listed"
    path.write_text(listed)
    refused(lambda: read_words(str(path)), f"{path}{problem}")
