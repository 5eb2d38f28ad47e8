"""Cases for the fuzzer: records, phrases, sentence pairs, manifests, and vectors of several runs."""

import csv
import io
import json

import numpy as np
from fuzzvectors import content

from tiedtools.evaluation.surprisal import read_pairs
from tiedtools.files import manifest
from tiedtools.text.phrases import Phrase, Phrases
from tiedtools.text.raw import records
from tiedtools.vectors.runs import Runs

ROWS = [{"id": k, "text": text} for k, text in enumerate(["the caf\u00e9, once", 'a "b"', "", "d\u2028e f"])]
CSV = 'id,text\n0,"the caf\u00e9, once"\n1,"a ""b"""\n2,\n3,d\u2028e f\n'
PHRASES = Phrases(delimiter="_")
PHRASES.passes = [[Phrase(("new", "york"), 12.5, 7), Phrase(("a", "caf\u00e9"), 1e-5, 3)], [Phrase(("a", "b"), 2.0, 5)]]
PAIRS = [dict(sentence_good="the cats sleep", sentence_bad="the cats sleeps", UID="agreement", field=k) for k in (1, 2)]
SHA256 = dict(path="text", sha256="1" * 64)
MANIFEST = dict(
    tiedtools="1.0.0", argv=["w2v", "text"], directory="/", stopped=None, threads=2, inputs=[SHA256],
    outputs=[dict(option="output", **SHA256)], options={}, settings={"size": 3}, environment={}, origin=SHA256,
)  # fmt: skip


def written(write, *arguments, **options):
    file = io.BytesIO()
    write(file, *arguments, **options)
    return file.getvalue()


def json_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def fields(path, files, rng):
    found, text = list(records(str(path), "text")), content(path, files).decode("utf-8-sig")
    plain = dict(delimiter="\t", quoting=csv.QUOTE_NONE)
    readers = [
        lambda: [json.loads(line)["text"] for line in text.split("\n") if line.strip()],
        *(lambda how=how: [row["text"] for row in csv.DictReader(io.StringIO(text, ""), **how)] for how in ({}, plain)),
    ]
    for read in readers:
        try:
            if found == read():
                return
        except (ValueError, KeyError, TypeError, RecursionError, csv.Error):
            pass
    raise AssertionError(f"{found} is not what the file has")


def phrases(path, files, rng):
    found = Phrases.load(path)
    rows = [line.rstrip("\r").split("\t") for line in content(path, files).decode("utf-8-sig").split("\n")]
    expected = sorted((int(row[0]), tuple(row[2].split(" ")), float(row[3])) for row in rows[1:] if len(row) > 1)
    assert expected == sorted((k, p.words, p.score) for k, some in enumerate(found.passes, 1) for p in some)
    assert Phrases.of(found.packed()).passes == found.passes
    assert found.joiner()("in new york\n").endswith("\n")


def pairs(path, files, rng):
    lines = content(path, files).removeprefix(b"\xef\xbb\xbf").split(b"\n")
    found = list(read_pairs(str(path)))
    assert len(found) == sum(bool(line.rstrip(b"\r")) for line in lines)
    assert all(isinstance(word, str) for pair in found for word in pair.good + pair.bad)


def manifests(path, files, rng):
    assert manifest.loads(path.read_bytes(), str(path)) == json.loads(files[path.name])


def runs(path, files, rng):
    found = Runs.read(str(path))
    for words, matrix in (*found, *found.on_whole_text):
        assert len(set(words)) == len(words) == len(matrix) and matrix.dtype == np.float32


def of_runs():
    R, words = 3, ["the", "caf\u00e9", "once", "3"]
    matrix = np.random.default_rng(0).normal(size=(R + 1, len(words), 3)).astype(np.float16)
    present = np.array([[5, 4, 3, 2], [5, 0, 3, 2], [4, 4, 0, 2]])
    return Runs(words, matrix[:R], present, present[0], dict(size=3, seeds=[1, 2, 3], documents=9), matrix[R:])


def cases():
    return {
        "field-json": ("t.jsonl", json_lines(ROWS), fields),
        "field-csv": ("t.csv", CSV.encode(), fields),
        "field-tsv": ("t.tsv", CSV.replace('"', "").replace(", ", " ").replace(",", "\t").encode(), fields),
        "phrases": ("p.tsv", written(PHRASES.write), phrases),
        "pairs-json": ("p.jsonl", json_lines(PAIRS), pairs),
        "pairs-tsv": ("p.tsv", b"the cats sleep\tthe cats sleeps\tagreement\n" * 3, pairs),
        "manifest": ("m.run.json", written(manifest.write, MANIFEST), manifests),
        "runs": ("m.npz", written(of_runs().save), runs),
    }
