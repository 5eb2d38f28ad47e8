"""Test surprisal, entropy, and rank of words against the definition, and `ppl --words`."""

import csv
import io
import json
import math

import numpy as np
import pytest
from fakelm import WORDS, FakeLM
from refusals import refused

import tiedtools as tt
from tiedtools.base.errors import Contradiction
from tiedtools.evaluation import surprisal as module
from tiedtools.evaluation.lexicon import Lexicon
from tiedtools.evaluation.neuralcache import cached
from tiedtools.evaluation.perplexity import Totals, score_text
from tiedtools.evaluation.surprisal import surprisals
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm

TEXT = 'the cat  sat on\tthe mat\r\n\nthe "dog" sat\n caf\u00e9 a\u00a0b NA <unk>\n' * 3 + "mat"
CLOSED = [word for word in WORDS if word != "<unk>"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(TEXT.encode())
    return str(path)


def rows_of(model, path, **options):
    return [row for _, rows in surprisals(model, Lexicon(model.vocab), path, **options) for row in rows]


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("words", [WORDS, CLOSED], ids=["unk", "closed"])
def test_table_against_definition(monkeypatch, text, words, independent):
    monkeypatch.setattr(module, "WORDS", 5)
    model = FakeLM(words)
    rows = iter(rows_of(model, text, independent=independent))
    h, last = np.zeros(5), 0
    for number, line in enumerate(TEXT.replace("\r", " ").split("\n"), 1):
        tokens = [*line.replace("\t", " ").replace(" ", "\n").split("\n"), "</s>"]
        tokens = [token for token in tokens if token]
        at = 0
        for position, token in enumerate(tokens, 1):
            row = next(rows)
            begin = len(line.rstrip()) if token == "</s>" else line.index(token, at)
            at = row["end"]
            place = row["sentence"], row["position"], row["begin"], row["end"], row["word"]
            assert place == (number, position, begin, begin + len(token) * (token != "</s>"), token)
            assert row["unknown"] == (token not in words)
            known = token if token in words else "<unk>"
            if known not in words:
                assert [row[name] for name in ("surprisal_bits", "entropy_bits", "rank")] == [None] * 3
                continue
            h = (np.zeros(5) if independent and last == 0 else h) / 2 + model.emb[last]
            p, last = np.exp(model.distribution(h)), words.index(known)
            assert row["surprisal_bits"] == pytest.approx(-math.log2(p[last]))
            assert row["entropy_bits"] == pytest.approx(-(p * np.log2(p)).sum())
            assert row["rank"] == 1 + sum(p > p[last])
    assert next(rows, None) is None


def lstm(vocab):
    return LstmLM(vocab, LstmConfig(size=8, layers=1, threads=2))


def rnnlm(vocab):
    return Rnnlm(vocab, RnnlmConfig(hidden=8, classes=3, doc_dim=2, direct=100, threads=1, dtype="float64"))


@pytest.mark.parametrize("make", [lstm, rnnlm])
@pytest.mark.parametrize("cache", [0, 5])
@pytest.mark.parametrize("independent", [False, True])
def test_sum_is_that_of_perplexity(text, make, cache, independent):
    model = cached(make(FakeLM().vocab), cache, 1.0, 0.3)
    totals = Totals(WORDS.index("<unk>"))
    for piece in score_text(model, Lexicon(model.vocab), text, independent=independent):
        totals.add(piece)
    rows = rows_of(model, text, independent=independent, unit="nats")
    assert -sum(row["surprisal_nats"] for row in rows) == pytest.approx(totals.nats.sum(), rel=1e-6)
    assert all(0 < row["entropy_nats"] <= math.log(len(WORDS)) + 1e-6 for row in rows)
    assert {row["rank"] for row in rows} <= set(range(1, len(WORDS) + 1))


def test_subwords_of_a_word_are_summed(tmp_path):
    words = "</s> un@@ happi@@ ness is <unk>".split()
    path, plain = tmp_path / "text", tmp_path / "plain"
    path.write_text("un@@ happi@@ ness is un@@\nun@@ zz@@ is\n")
    rows = rows_of(FakeLM(words), str(path))
    tokens = rows_of(FakeLM(words), str(path), mark="")
    assert [row["word"] for row in rows] == ["unhappiness", "is", "un@@", "</s>", "unzzis", "</s>"]
    assert [(row["begin"], row["end"]) for row in rows[:3]] == [(0, 17), (18, 20), (21, 25)]
    assert rows[0]["surprisal_bits"] == pytest.approx(sum(row["surprisal_bits"] for row in tokens[:3]))
    assert [rows[0][name] for name in ("entropy_bits", "rank")] == [tokens[0][n] for n in ("entropy_bits", "rank")]
    assert [row["unknown"] for row in rows] == [False] * 4 + [True, False]
    assert sum(r["surprisal_bits"] for r in rows) == pytest.approx(sum(r["surprisal_bits"] for r in tokens))
    plain.write_text("")
    refused(lambda: rows_of(FakeLM(words), str(plain)), "plain")


def test_command_writes_tables(run, tmp_path, text):
    """Read the table as R's read.delim and pandas do: tab-separated, with quotes as in CSV."""
    path = tmp_path / "model"
    with open(path, "wb") as file:
        FakeLM(CLOSED).save(file)
    result = run("ppl", path, "--words", text)
    assert (result.exit_code, result.stderr) == (0, "")
    table = list(csv.DictReader(io.StringIO(result.stdout_bytes.decode()), dialect="excel-tab"))
    rows = [json.loads(line) for line in run("ppl", path, "--words", "--json", text).stdout.splitlines()]
    assert rows == rows_of(FakeLM(CLOSED), text)
    assert [row["word"] for row in table] == [row["word"] for row in rows] and {"NA", '"dog"'} <= {
        r["word"] for r in rows
    }
    for one, two in zip(table, rows):
        assert float(one["surprisal_bits"] or "nan") == pytest.approx(
            two["surprisal_bits"] or math.nan, nan_ok=True, abs=1e-6
        )
        assert one["unknown"] == str(two["unknown"])
    nats = run("ppl", path, "--words", "--unit", "nats", "--independent", "--batch", 2, text).stdout
    assert nats.startswith("sentence\tposition\tbegin\tend\tword\tsurprisal_nats\tentropy_nats\trank\tunknown\n")
    for wrong in (["--batch", 2], ["--debug", 1], [text], ["--repeats"]):
        assert run("ppl", path, "--words", text, *wrong).exit_code == 2


def test_python():
    model = tt.LanguageModel()
    model.trained = FakeLM()
    rows = list(model.surprisal([["the", "cat"], ["dog"]], unit="nats"))
    assert [(row["sentence"], row["word"], row["begin"]) for row in rows] == [
        (1, "the", 0), (1, "cat", 4), (1, "</s>", 7), (2, "dog", 0), (2, "</s>", 3),
    ]  # fmt: skip
    logprob = model.statistics([["the", "cat"], ["dog"]])["logprob"]
    assert -sum(row["surprisal_nats"] for row in rows) == pytest.approx(logprob * math.log(10))
    refused(lambda: list(model.surprisal([["the"]], unit="log10")), kind=Contradiction)
