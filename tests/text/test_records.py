"""Test fields of records, documents of a text, and texts of resampled documents."""

import csv
import gzip
import io
import itertools
import json

import numpy as np
import pytest
from common import refused

import tiedtools
from tiedtools import TiedtoolsError
from tiedtools.text.encoding import Marks, encode, rearranged
from tiedtools.text.parts import Part
from tiedtools.text.raw import prepared, records

TEXTS = ["the cat", 'a "dog", ÉTÉ', "", "two\nlines", "x"]


def as_json(texts, make=lambda text: {"id": 1, "text": text}):
    return "".join(json.dumps(make(text)) + "\n" for text in texts)


def as_csv(texts):
    file = io.StringIO()
    csv.writer(file).writerows([["id", "text"], *(["1", text] for text in texts)])
    return file.getvalue()


def read(text, field="text", **options):
    return list(records(io.BytesIO(text.encode("utf-8")), field, **options))


@pytest.mark.parametrize("name", ["a.jsonl", "a.json.gz", "a.csv", "a.csv.gz", "a.txt", "a"])
def test_formats_have_the_same_texts(tmp_path, name):
    data = (as_csv if "csv" in name or name == "a" else as_json)(TEXTS).encode()
    (path := tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert list(tiedtools.documents([path, path], "text")) == TEXTS * 2
    assert list(tiedtools.documents(f"file://{path}", "text")) == TEXTS


def test_fields_and_parts_of_records(tmp_path):
    assert read('id\ttext\n1\t"a" b\n2\t"c\n') == ['"a" b', '"c']
    assert read("\n \n" + as_json("ab", lambda text: {"a": {"b": {"c": text}}}), "a.b.c") == ["a", "b"]
    assert read(as_json("ab", lambda text: {"a.b": text, "a": {"b": 1}}), "a.b") == ["a", "b"]
    half = as_json(["a\ud800b"])
    assert [read(half, errors=errors) for errors in ("replace", "ignore")] == [["a\ufffdb"], ["ab"]]
    for name, data in ("a.jsonl", as_json("abcd")), ("a.csv", as_csv("abcd")):
        (tmp_path / name).write_text(data)
    path = str(tmp_path / "a.jsonl")
    size = len(as_json("a"))
    assert list(records(Part(path, size, 3 * size), "text")) == ["b", "c"]
    refused(lambda: list(records(Part(path, 2 * size, 4 * size), "txt")), "a.jsonl:3: record 1: no field")
    refused(lambda: list(records(Part(str(tmp_path / "a.csv"), 0, 9), "text")), "cannot be divided")


@pytest.mark.parametrize("text, position", [
    (as_json("ab") + "\n" + as_json([None]), ":4: record 3: 'text' is null"),
    (as_json(["a", 3]), ":2: record 2: 'text' is a number"),
    (as_json(["a", {"b": "c"}]), ":2: record 2: 'text' is an object.*; .* 'text.b'"),
    (as_json("a") + as_json("b", lambda text: {"txt": text}), ":2: record 2: no field 'text'; .* 'txt', or"),
    ('[{"text": "a"},\n', ":1: record 1: not JSON .*; give an object per line: `jq -c '...'`"),
    (as_json("a") + '{"text": "b"', ":2: record 2: not JSON"), ('[{"text": "a"}]', ":1: record 1: not an object; "),
    (as_json(["a", "\0"]), ":2: record 2: a zero byte; `sed "),
    (as_json(["a", "\ud800"]), ":2: record 2: an unpaired surrogate"),
    ("id,txt\n1,a\n", ":1: no column 'text'; .* 'id', 'txt'"), ("text,text\n1,a\n", ":1: two columns 'text'; rename"),
    ('id,text\n1,"a\nb"\n2,c,d\n', ":4: record 2: 3 cells, the header has 2"),
    ('id,text\n1,"a', ":2: record 1: not CSV"),
    ("id\ttext\n1\ta\n2\n", ":3: record 2: 1 cell, the header has 2; save"), ("", ":1: no column 'text'; add a header"),
    ('{"a": {"b": "c"}}', ":1: record 1: no field 'text'; .* 'a',"), ("{}", ":1: record 1: no field 'text'; drop"),
])  # fmt: skip
def test_errors_name_the_record(text, position):
    with pytest.raises(TiedtoolsError, match=f"^file{position}") as raised:
        read(text)
    assert "\n" not in str(raised.value)


def test_errors_name_fields_in_objects():
    refused(lambda: read('{"a": {"b": "c"}}', "a.d"), "no field 'a.d'", "'a.b'")
    refused(lambda: read('{"a": {"b": "c"}}', "a.b.c"), "no field 'a.b.c'", 'select(."a"."b"."c"? |')


@pytest.mark.parametrize(
    "unit, ids",  # of the words and, 0, the ends of lines
    [("text", [1, 2, 0, 3, 0, 4, 0]), ("line", [1, 2, 0, 3, 4, 0]), ("record", [1, 2, 0, 0, 3, 0, 4, 0, 0])],
)
def test_a_record_is_lines_a_line_or_a_document(unit, ids):
    source = prepared(io.BytesIO(as_json(["a b", "c\nd"]).encode()), field="text", unit=unit)
    text = encode([source])
    words = [text.vocab.words[k] for k in text.ids]
    assert words == [" abcd"[k].replace(" ", "</s>") for k in ids]
    source = prepared(io.BytesIO(as_json(["10\u00a0000 euros"]).encode()), field="text", unit=unit)
    assert encode([source]).vocab.words[1:] == ["10\u00a0000", "euros"]  # only ASCII white space separates words
    source = prepared(io.BytesIO(as_json(["a b", "c\nd", "", "\u00a0\na"]).encode()), field="text", unit="record")
    text = encode([source], marks=(marks := Marks("record")))
    assert text.tokens_read == text.vocab.counts.sum() == 11 and text.vocab.counts[0] == 5  # none for separators
    assert [len(document) for document in documents(text.ids, marks.bounds(text.ids))] == [3, 4, 4]
    assert Marks("line").bounds(np.array([0, 0, 1, 0, 0, 2, 0])).tolist() == [0, 5, 7]


@pytest.mark.parametrize("field", [None, "text"])
def test_lines_that_lose_all_words_do_not_end_a_document(monkeypatch, field):
    pytest.importorskip("regex")
    monkeypatch.setattr("tiedtools.text.raw.BATCH", 5)
    text, rules = "a b\n***\nc\n\nd\n", "punctuation=drop"
    data = as_json([text]) if field else text
    for unit, ends in ("text", 5), ("paragraph", 4), ("record", 4):
        source = prepared(io.BytesIO(data.encode()), rules, field, unit=unit, processes=2)
        assert (encode([source]).ids == 0).sum() == ends + (field is not None and unit == "paragraph"), unit


FIRST = "a b\nodd\nc\n\n\nb rare a\nrare\n\nc c\n"
SECOND = "\na\nb c\n\nc a"  # without a final line end


def documents(ids, bounds):
    return [ids[start:end].tolist() for start, end in itertools.pairwise(bounds)]


@pytest.fixture
def paths(tmp_path):
    for name, text in ("one", FIRST), ("two", SECOND):
        (tmp_path / name).write_text(text)
    return [str(tmp_path / "one"), str(tmp_path / "two")]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind, expected", [
    ("line", ["a b\n\n", "c\n\n\n", "b a\n\n\n", "c c\n\n", "a\n", "b c\n\n", "c a"]),
    ("paragraph", ["a b\n\nc\n\n\n", "b a\n\n\n", "c c\n\n", "a\nb c\n\n", "c a"]),
    ("file", ["a b\n\nc\n\n\nb a\n\n\nc c\n", "\na\nb c\n\nc a"]),
])  # fmt: skip
def test_documents_are_lines_paragraphs_or_files(paths, monkeypatch, kind, expected, threads):
    """Each has a word; rare words are dropped, and an empty line in a block by itself is one, too."""
    monkeypatch.setattr("tiedtools.text.sources.BLOCK", 5)
    text = encode(paths, 3, threads=threads, marks=(marks := Marks(kind)))
    words = ["\n", *text.vocab.words[1:]]
    shown = ["".join(words[k] + " " * bool(k) for k in ids) for ids in documents(text.ids, marks.bounds(text.ids))]
    assert [document.replace(" \n", "\n").rstrip(" ") for document in shown] == expected
    same = encode(paths, vocab=text.vocab, threads=threads, marks=(given := Marks(kind)))
    assert (given.bounds(same.ids) == marks.bounds(text.ids)).all() and same.tokens_read == text.tokens_read
    text = encode(paths[::-1], 3, marks=(marks := Marks("paragraph")))
    assert len(marks.bounds(text.ids)) == 1 + 2 + 3  # a paragraph ends with its file


def test_rearranged_texts_are_their_documents_in_order(paths):
    text = encode(paths, 1, marks=(marks := Marks("line")))
    bounds, order = marks.bounds(text.ids), np.array([3, 0, 3, 5])
    parts = documents(text.ids, bounds)
    new = rearranged(text.vocab.words, text.ids, bounds, order)
    assert new.ids.tolist() == [k for number in order for k in parts[number]]
    assert new.vocab.counts.tolist() == np.bincount(new.ids, minlength=len(text.vocab)).tolist()
