"""Test surprisal, mean probabilities, and minimal pairs against the definition."""

import csv
import gzip
import io
import json
import math

import numpy as np
import pytest
import rnnlmcase
from common import refused, save
from fakelm import WORDS, FakeLM

import tiedtools as tt
from tiedtools.base.errors import Contradiction
from tiedtools.evaluation import lexicon as lexicon_module
from tiedtools.evaluation import surprisal as module
from tiedtools.evaluation.analogysets import wilson
from tiedtools.evaluation.lexicon import Lexicon
from tiedtools.evaluation.neuralcache import cached
from tiedtools.evaluation.perplexity import REPEAT, Totals, mean_probabilities, score_text
from tiedtools.evaluation.surprisal import compare, read_pairs, surprisals
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm

TEXT = 'the cat  sat on\tthe mat\r\n\nthe "dog" sat\n caf\u00e9 a\u00a0b NA <unk>\n' * 3 + "mat"
CLOSED = [word for word in WORDS if word != "<unk>"]


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
    save(FakeLM(CLOSED), path)
    result = run("ppl", path, "--words", text)
    assert (result.exit_code, result.stderr) == (0, "")
    table = list(csv.DictReader(io.StringIO(result.stdout_bytes.decode()), dialect="excel-tab"))
    rows = [json.loads(line) for line in run("ppl", path, "--words", "--json", text).stdout.splitlines()]
    assert rows == rows_of(FakeLM(CLOSED), text)
    words = [row["word"] for row in rows]
    assert [row["word"] for row in table] == words and {"NA", '"dog"'} <= {*words}
    for one, two in zip(table, rows):
        assert float(one["surprisal_bits"] or "nan") == pytest.approx(
            two["surprisal_bits"] or math.nan, nan_ok=True, abs=1e-6
        )
        assert one["unknown"] == str(two["unknown"]).upper()
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
    refused(lambda: model.surprisal([["the"]], unit="log10"), kind=Contradiction)
    refused(lambda: model.surprisal([["the"]], batch=2), "set `independent`", kind=Contradiction)


LINES = [["the", "cat", "sat"], [], ["a", "dog", "on", "the", "mat"]] * 9


@pytest.fixture
def repeated(tmp_path):
    (tmp_path / "text").write_text("".join(" ".join(line) + "\n" for line in LINES))
    return str(tmp_path / "text")


@pytest.mark.parametrize("words", [WORDS, [word for word in WORDS if word != "<unk>"]], ids=["unk", "closed"])
@pytest.mark.parametrize("piece", [1 << 14, 4])
def test_means_match_the_definition(monkeypatch, repeated, words, piece):
    monkeypatch.setattr(lexicon_module, "PIECE", piece)
    model, unk = FakeLM(words), words.index("<unk>") if "<unk>" in words else None
    tokens = [token for line in LINES for token in [*line, "</s>"]]
    ids = [k for k in (words.index(token) if token in words else unk for token in tokens) if k is not None]
    h, last, distributions = np.zeros(5), 0, []
    for word in ids:
        h, last = h / 2 + model.emb[last], word
        distributions.append(np.exp(model.distribution(h)))
    asked = ["cat", REPEAT, "</s>", "sat"]
    found = mean_probabilities(model, Lexicon(model.vocab), repeated, asked)
    assert list(found) == asked
    before = [0, *ids[:-1]]
    repeated = [p[word] for p, word in zip(distributions, before)], [a == b for a, b in zip(ids, before)]
    assert found.pop(REPEAT) == pytest.approx(tuple(map(np.mean, repeated)), rel=1e-10)
    for word, (mean, share) in found.items():
        assert mean == pytest.approx(np.mean(distributions, axis=0)[words.index(word)], rel=1e-10)
        assert share == pytest.approx(ids.count(words.index(word)) / len(ids))


def test_means_of_a_model_with_a_document_vector(tmp_path):
    """The words of the text update the vector; the words whose probability is averaged do not."""
    model, ids = rnnlmcase.model(**rnnlmcase.DOC, doc_lr=0.5), rnnlmcase.text(200, oov=0)
    (tmp_path / "text").write_text("".join(f"w{k} " if k else "\n" for k in ids))
    state, distributions = model.start(1), []
    for before in rnnlmcase.inputs(ids)[0]:
        logprobs, state = model.predict(before[None], state)
        distributions.append(np.exp(logprobs[0]))
    found = mean_probabilities(model, Lexicon(model.vocab), tmp_path / "text", ["</s>", "w1", "w2"])
    np.testing.assert_allclose([mean for mean, _ in found.values()], np.mean(distributions, 0)[:3], rtol=1e-9)


def test_command(run, repeated, tmp_path):
    path = tmp_path / "lm.npz"
    save(FakeLM(), path)
    lexicon = Lexicon(FakeLM().vocab)
    expected = mean_probabilities(FakeLM(), lexicon, repeated, ["<unk>", "the"])
    plain = run("ppl", path, repeated).stdout
    lines = [f"{word}\t{mean:.6g}\t{share:.6g}\n" for word, (mean, share) in expected.items()]
    assert run("ppl", path, repeated, "--average", "<unk>", "--average", "the").stdout == plain + "".join(lines)
    mean, share = mean_probabilities(FakeLM(), lexicon, repeated, [REPEAT])[REPEAT]
    assert run("ppl", path, repeated, "--repeats").stdout == plain + f"(repeated)\t{mean:.6g}\t{share:.6g}\n"
    assert 0 < mean < 1 and 0 < share < 1
    found = run("ppl", path, repeated, "--json", "--average", "the").stdout.splitlines()
    assert json.loads(found[1]) == dict(word="the", mean_probability=expected["the"][0], share=expected["the"][1])
    assert run("ppl", path, "--average", "the").exit_code == 2
    assert run("ppl", path, repeated, "--average", "the", "--independent").exit_code == 2
    model = FakeLM()
    refused(lambda: mean_probabilities(model, Lexicon(model.vocab), repeated, ["dog"]), "'dog' is not in the model's")


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


def test_accuracy_by_paradigm_and_of_unknown_words(messages):
    first, second, mean = result_of(pairs_of("a", 6, 3, same=1, unknown=1) + pairs_of("b", 5, 0), batch=3)
    assert [first[name] for name in ("paradigm", "pairs", "ties", "unknown", "accuracy")] == ["a", 11, 1, 1, 0.65]
    assert (first["low"], first["high"]) == wilson(6.5, 10) and first["accuracy_unknown"] == 1
    assert (second["accuracy"], second["high"], second["accuracy_unknown"]) == (1, 1, None)
    assert [mean[name] for name in ("paradigm", "pairs", "ties", "unknown")] == ["mean", 16, 1, 1]
    low, high = (math.hypot(*(line["accuracy"] - line[end] for line in (first, second))) / 2 for end in ("low", "high"))
    assert [mean[x] - 0.825 for x in ("accuracy", "low", "high")] == pytest.approx([0, -low, high])
    assert "pairs:10" in messages()
    results = result_of(pairs_of("a", 8, 0, unknown=1, unknown_wrong=1) + pairs_of("b", 9, 0, unknown_wrong=1))
    assert [line["accuracy"] for line in results] == [None, 1, 1] and results[2]["paradigm"] == "mean"
    assert [line["accuracy_unknown"] for line in results] == [0.5, 0, 1 / 3]
    assert "words: a" in messages()
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
    save(FakeLM(), model)
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
    "line", ["a cat", "a\tb\tc\td", '{"sentence_good": "a"}', '{"sentence_good": "a", "sentence_bad": 3}', "{"]
)
def test_wrong_line_is_named(tmp_path, line):
    (path := tmp_path / "pairs").write_text(f"{GOOD}\t{WORSE}\n{line}\n")
    refused(lambda: result_of(str(path)), "pairs:2: ")
    path.write_text("\n")
    refused(lambda: result_of(str(path)))
