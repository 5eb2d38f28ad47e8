"""Test minimal pairs: accuracy by paradigm, ties, unknown words, and the two kinds of files."""

import gzip
import json
import math

import numpy as np
import pytest
from fakelm import WORDS, FakeLM

import tiedtools as tt
from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation.analogysets import wilson
from tiedtools.evaluation.lexicon import Lexicon
from tiedtools.evaluation.minimalpairs import compare, read_pairs

GOOD, WORSE = sorted(
    ("the cat sat", "mat on the"), key=lambda line: -FakeLM().by_definition([*map(WORDS.index, line.split()), 0]).sum()
)


def pairs_of(paradigm, right, wrong, same=0, unknown=0, unknown_wrong=0):
    return (
        [(GOOD, WORSE, paradigm)] * right + [(WORSE, GOOD, paradigm)] * wrong + [("on", "on", paradigm)] * same
        + [(f"{GOOD}", "dog dog dog dog dog dog", paradigm)] * unknown
        + [("dog dog dog dog dog dog", GOOD, paradigm)] * unknown_wrong
    )  # fmt: skip


def result_of(pairs, model=None, **options):
    model = model or FakeLM()
    return compare(model, Lexicon(model.vocab), read_pairs(pairs), **options)


def test_accuracy_by_paradigm(messages):
    first, second, mean = result_of(pairs_of("a", 6, 3, same=1, unknown=1) + pairs_of("b", 5, 0), batch=3)
    assert [first[name] for name in ("paradigm", "pairs", "ties", "unknown", "accuracy")] == ["a", 11, 1, 1, 0.65]
    assert (first["low"], first["high"]) == wilson(6.5, 10) and first["accuracy_unknown"] == 1
    assert (second["accuracy"], second["high"], second["accuracy_unknown"]) == (1, 1, None)
    assert [mean[name] for name in ("paradigm", "pairs", "ties", "unknown")] == ["mean", 16, 1, 1]
    half = 1.959964 * math.sqrt(np.var([1] * 6 + [0] * 3 + [0.5]) / 10) / 2
    np.testing.assert_allclose([mean[x] for x in ("accuracy", "low", "high")], [0.825, 0.825 - half, 0.825 + half])
    assert "pairs:10" in messages()


def test_no_comparison_with_many_unknown_words(messages):
    results = result_of(pairs_of("a", 8, 0, unknown=1, unknown_wrong=1) + pairs_of("b", 9, 0, unknown_wrong=1))
    assert [line["accuracy"] for line in results] == [None, 1, 1] and results[2]["paradigm"] == "mean"
    assert [line["accuracy_unknown"] for line in results] == [0.5, 0, 1 / 3]
    assert "words: a" in messages()


def test_a_model_that_knows_nothing_has_one_half():
    model = FakeLM()
    model.emb[:] = 0
    (line,) = result_of([("the cat", "cat on"), ("sat", "mat")] * 20, model)
    assert (line["accuracy"], line["ties"]) == (0.5, 40)


def test_files(run, tmp_path):
    blimp, columns, model = tmp_path / "passive_1.jsonl", tmp_path / "verbs.tsv.gz", tmp_path / "model"
    records = [{"sentence_good": GOOD, "sentence_bad": WORSE, "UID": "u", "pairID": "0"}]
    records.append({"sentence_good": WORSE, "sentence_bad": GOOD})
    blimp.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    with gzip.open(columns, "wt") as file:
        file.write(f"{GOOD}\t{WORSE}\r\n\n{WORSE}\t{GOOD}\tw\n")
    with open(model, "wb") as file:
        FakeLM().save(file)
    result = run("nbest", model, "--pairs", "--json", blimp, columns)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(line["paradigm"], line["accuracy"]) for line in found[:-1]] == [
        ("u", 1), ("passive_1", 0), ("verbs", 1), ("w", 0),
    ]  # fmt: skip
    table = run("nbest", model, "--pairs", blimp, columns).stdout.splitlines()
    assert len(table) == 6 and table[1].split()[:2] == ["u", "1"] and table[0].split()[4] == "accuracy"
    language_model = tt.LanguageModel()
    language_model.trained = FakeLM()
    assert language_model.minimal_pairs([str(blimp), str(columns)]) == found
    assert language_model.minimal_pairs([(GOOD.split(), WORSE)])[0]["accuracy"] == 1
    assert run("nbest", model, "--pairs", "--ids", blimp).exit_code == 2


@pytest.mark.parametrize(
    "line", ["the cat", '{"sentence_good": "a"}', '{"sentence_good": "a", "sentence_bad": 3}', "{"]
)
def test_wrong_line_is_named(tmp_path, line):
    path = tmp_path / "pairs"
    path.write_text(f"{GOOD}\t{WORSE}\n{line}\n")
    with pytest.raises(TiedtoolsError, match="pairs:2: "):
        result_of(str(path))
    path.write_text("\n")
    with pytest.raises(TiedtoolsError):
        result_of(str(path))
