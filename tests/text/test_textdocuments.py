"""Documents of a text, and texts of resampled documents."""

import itertools

import numpy as np
import pytest

from tiedtools.text.documents import Marks, rearranged
from tiedtools.text.encoding import encode

FIRST = "a b\nc\n\n\nb rare a\nrare\n\nc c\n"
SECOND = "\na\nb c\n\nc a"  # without a final line end


def documents(ids, bounds):
    return [ids[start:end].tolist() for start, end in itertools.pairwise(bounds)]


@pytest.fixture
def paths(tmp_path):
    for name, text in ("one", FIRST), ("two", SECOND):
        (tmp_path / name).write_text(text)
    return [str(tmp_path / "one"), str(tmp_path / "two")]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "kind, expected",
    [
        ("line", ["a b\n", "c\n\n\n", "b a\n\n\n", "c c\n\n", "a\n", "b c\n\n", "c a"]),
        ("paragraph", ["a b\nc\n\n\n", "b a\n\n\n", "c c\n\n", "a\nb c\n\n", "c a"]),
        ("file", ["a b\nc\n\n\nb a\n\n\nc c\n", "\na\nb c\n\nc a"]),
    ],
)
def test_documents_are_lines_paragraphs_or_files(paths, monkeypatch, kind, expected, threads):
    """Each has a word; rare words are dropped, and an empty line in a block by itself is one, too."""
    monkeypatch.setattr("tiedtools.text.sources.BLOCK", 5)
    marks = Marks(kind)
    text = encode(paths, 3, threads=threads, marks=marks)
    words = ["\n", *text.vocab.words[1:]]
    shown = ["".join(words[k] + " " * bool(k) for k in ids) for ids in documents(text.ids, marks.bounds(text.ids))]
    assert [document.replace(" \n", "\n").rstrip(" ") for document in shown] == expected


def test_rearranged_texts_are_their_documents_in_order(paths):
    marks = Marks("line")
    text = encode(paths, 1, marks=marks)
    bounds, order = marks.bounds(text.ids), np.array([3, 0, 3, 5])
    parts = documents(text.ids, bounds)
    new = rearranged(text.vocab.words, text.ids, bounds, order)
    assert new.ids.tolist() == [k for number in order for k in parts[number]]
    assert new.vocab.counts.tolist() == np.bincount(new.ids, minlength=len(text.vocab)).tolist()
