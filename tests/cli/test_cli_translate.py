"""Test `nmt`, `translate`, `bleu`, and `plot attention`."""

import dataclasses
import io
import json
import os
import sys

import numpy as np
import pytest
from common import save
from toytranslator import SOURCE, ToyTranslator

from tiedtools.files import modelfile
from tiedtools.files.families import FAMILIES
from tiedtools.models.translation.interpreter import Interpreter
from tiedtools.vectors.counts import word_counts
from tiedtools.vectors.vectors import Vectors

LINES = ["the cat sat", "", "the", "cat cat cat cat sat on the mat", "dog", "the cat sat on the mat"]
TEXT = "".join(f"{line}\n" for line in LINES).encode()


def expected(**options):
    """Return the translations of LINES, lists of Translation."""
    lines = ((number, line.split()) for number, line in enumerate(LINES, 1))
    return list(Interpreter(ToyTranslator(), **options).translations(lines))


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setitem(FAMILIES, "nmt", dataclasses.replace(FAMILIES["nmt"], model="toytranslator:ToyTranslator"))
    path = tmp_path / "m.npz"
    save(ToyTranslator(), path)
    return path


@pytest.mark.parametrize(
    "options", [[], ["--batch", 1], ["--beam", 1], ["--normalize", "--max-length", 3], ["--no-unk"]]
)
def test_each_line_is_translated_in_order(run, model, tmp_path, options):
    (tmp_path / "s").write_bytes(TEXT)
    result = run("translate", model, *options, tmp_path / "s")
    names = {"--beam": dict(beam=1), "--normalize": dict(normalize=True, max_length=3), "--no-unk": dict(banned=1)}
    found = expected(**names.get(next(iter(options), ""), {}))
    assert result.exit_code == 0 and result.stdout.split("\n") == [*(best.text for best, *_ in found), ""]
    assert result.stderr == "1 source word outside the vocabulary was read as `<unk>`\n"
    assert result.stdout == run("translate", model, *options, input=TEXT).stdout


def test_n_best_lists_have_the_scores_of_given_translations(run, model, tmp_path):
    result = run("translate", model, "--n-best", 3, "--beam", 4, input=TEXT)
    rows = [line.split(" ||| ") for line in result.stdout.splitlines()]
    found = [(k, t) for k, best in enumerate(expected(beam=4)) for t in best[:3]]
    assert rows == [[str(k), t.text, f"{t.logprob:.6f}"] for k, t in found] and ["1", "", "0.000000"] in rows
    full = [row for row in rows if LINES[int(row[0])]]
    for normalize in [], ["--normalize"]:
        (tmp_path / "t").write_text("".join(f"{text}\n" for _, text, _ in full))
        source = "".join(f"{LINES[int(k)]}\n" for k, *_ in full).encode()
        scores = run("translate", model, "--force", tmp_path / "t", *normalize, input=source).stdout.split()
        assert len(scores) == len(full) == 15
        for (_, text, score), forced in zip(full, scores):
            length = len(text.split()) + 1 if normalize else 1
            assert float(forced) == pytest.approx(float(score) / length, abs=2e-6)


def test_json_and_no_language_model(run, model, tmp_path):
    found = [json.loads(line) for line in run("translate", model, "--json", input=TEXT).stdout.splitlines()]
    best = [t[0] for t in expected()]
    assert found == [{"line": k, "text": t.text, "logprob": pytest.approx(t.logprob)} for k, t in enumerate(best, 1)]
    ranked = run("translate", model, "--json", "--n-best", 2, input=b"the\n").stdout.splitlines()
    assert [json.loads(line)["rank"] for line in ranked] == [1, 2]
    (tmp_path / "t").write_text("die\n")
    forced = json.loads(run("translate", model, "--json", "--force", tmp_path / "t", input=b"the\n").stdout)
    assert forced["text"] == "die" and forced["logprob"] < 0
    run.fails(1, "is a translation model, not a language model", "ppl", model, input=TEXT)


@pytest.mark.parametrize("force", [False, True])
def test_attention_weights_are_written_and_plotted(run, model, tmp_path, force):
    pytest.importorskip("matplotlib")
    (tmp_path / "t").write_text("die katze\n" * len(LINES))
    options = ["--force", tmp_path / "t"] if force else ["--n-best", 2]
    weights, picture = tmp_path / "w.json", tmp_path / "x.svg"
    result = run("translate", model, "--align", weights, *options, input=TEXT)
    assert result.exit_code == 0, result.stderr
    rows = [json.loads(line) for line in weights.read_text().splitlines()]
    assert [row["line"] for row in rows] == ([1, 2, 3, 4, 5, 6] if force else [1, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6])
    for row in rows:
        source = [*(word if word in SOURCE else "<unk>" for word in LINES[row["line"] - 1].split()), "</s>"]
        assert row["source"] == source and row["target"][-1] == "</s>" and len(row["weights"]) == len(row["target"])
        for given in row["weights"]:
            assert len(given) == len(source) and sum(given) == pytest.approx(1, abs=1e-3)
    assert run("plot", "attention", weights, "--line", 3, "--output", picture).exit_code == 0
    drawn = picture.read_text()
    first = next(row for row in rows if row["line"] == 3)
    assert all(f">{word}<" in drawn for word in [*first["target"][:-1], "the", "&lt;/s&gt;"])
    result = run("plot", "attention", weights, "--line", 7, "--output", picture)
    assert result.exit_code == 1
    assert result.stderr == f"tiedtools: {weights}: holds no weights of line 7; give another --line\n"
    weights.write_text('{"line": 1, "source": ["a"], "target": ["b"], "weights": [[1, 0]]}\n')
    run.fails(1, f"{weights}:1: not attention weights", "plot", "attention", weights, "--output", picture)


def test_a_model_of_bpe_reads_and_writes_words(run, model, tmp_path):
    pytest.importorskip("subword_nmt")
    codes = "#version: 0.2\nc a\nk a\nz e</w>\n"
    made = ToyTranslator(["</s>", "<unk>", "ca@@", "t"], ["</s>", "<unk>", "ka@@", "t@@", "ze"], codes)
    made.emb_out[:2], made.emb_out[3] = 0, -made.emb_out[2]  # "ka@@" or "t@@" is the best first word
    save(made, model)
    result = run("translate", model, "--align", tmp_path / "w", "--max-length", 7, input=b"cat\n")
    text = (tmp_path / "w").read_text()
    assert json.loads(text)["source"] == ["ca@@", "t", "</s>"] and "@@" in text.partition("target")[2]
    assert "@@" not in result.stdout and result.stderr == ""
    (tmp_path / "t").write_text("katze\n")
    told = run("translate", model, "--force", tmp_path / "t", "--align", tmp_path / "v", input=b"ss").stderr
    assert '"ka@@", "t@@", "ze", "</s>"]' in (tmp_path / "v").read_text() and told.startswith("2 source symbols out")


@pytest.mark.parametrize("kind", ["word2vec", "lstm", "rnnlm", "checkpoint"])
def test_models_of_another_kind(run, tmp_path, kind):
    file = io.BytesIO()
    modelfile.save(file, kind, {}, ["</s>"], {})
    (tmp_path / "m").write_bytes(file.getvalue())
    result = run("translate", tmp_path / "m", input=TEXT)
    assert result.exit_code == 1 and result.stdout == "" and result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"tiedtools: {tmp_path}/m: is a") or "word vectors" in result.stderr


@pytest.mark.parametrize("options, status, message", [
    (["--n-best", 6], 2, "--n-best 6 needs a --beam of at least 6"),
    (["--force", "t", "--beam", 2], 2, "--beam has no effect on the translations given by --force"),
    (["--force", "-"], 2, "standard input can be read only once"),
    (["--force", "t"], 1, "t: has 1 line, fewer than standard input"), (["--align", "m.npz"], 2, "m.npz"),
    (["--align", "-"], 2, "--align cannot be standard output"), (["missing"], 1, "missing: cannot be read"),
], ids=str)  # fmt: skip
def test_errors_are_one_line(run, model, tmp_path, monkeypatch, options, status, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t").write_text("die katze\n")
    run.fails(status, message, "translate", "m.npz", *options, input=TEXT)
    assert os.path.getsize(model) > 1000


def test_bleu(run, tmp_path):
    pytest.importorskip("sacrebleu")
    (tmp_path / "a").write_text("the  cat sat on the mat .\n")
    (tmp_path / "b").write_text("A cat sat on a mat .\n")
    hypothesis = b"the cat sat on a mat .\n"
    result = run("bleu", tmp_path / "a", input=hypothesis)
    assert result.exit_code == 0 and result.stdout.startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|")
    found = json.loads(run("bleu", tmp_path / "a", "--json", input=hypothesis).stdout)
    assert f"= {found['bleu']:.2f} " in result.stdout or f"= {found['bleu']:.1f} " in result.stdout
    assert found["words"] == 7 and found["signature"] in result.stdout
    both = json.loads(run("bleu", tmp_path / "a", tmp_path / "b", "--lowercase", "--json", input=hypothesis).stdout)
    assert both["bleu"] > found["bleu"]
    (tmp_path / "h").write_bytes(hypothesis * 2)
    result = run("bleu", tmp_path / "a", "--hypothesis", tmp_path / "h")
    assert result.exit_code == 1 and "a: has 1 line, but " in result.stderr and "h has 2; give a ref" in result.stderr


WORDS = {"a": "x", "b": "y", "c": "z", "d": "w"}
TRAIN = "nmt --source s --target t --size 8 --hidden 8 --epochs 2 --batch 4 --threads 1 --debug 0".split()


def write(folder, name, n, seed):
    """Write n lines of random words, and their translations word by word."""
    rng = np.random.default_rng(seed)
    lines = [rng.choice(list(WORDS), rng.integers(1, 6)).tolist() for _ in range(n)]
    (folder / f"{name}s").write_text("".join(f"{' '.join(line)}\n" for line in lines))
    (folder / f"{name}t").write_text("".join(f"{' '.join(WORDS[word] for word in line)}\n" for line in lines))


@pytest.fixture
def here(tmp_path, monkeypatch, no_signals):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "", 40, 1)
    write(tmp_path, "v", 9, 2)
    return tmp_path


def succeed(run, *args, **options):
    result = run(*args, **options)
    assert result.exit_code == 0, result.stderr
    return result


@pytest.mark.parametrize("tie", ["none", "decoder", "all"])
def test_from_texts_to_vectors_and_translations(run, here, tie):
    pytest.importorskip("sacrebleu")
    valid = "--valid-source vs --valid-target vt --save-model m.npz --log-json l -output v --write source".split()
    succeed(run, *TRAIN, *valid, "--tie", tie)
    epochs = [json.loads(line) for line in (here / "l").read_text().splitlines()]
    assert [epoch["epoch"] for epoch in epochs[:2]] == [1, 2] and 0 <= epochs[0]["valid_bleu"] <= 100
    own, target = set(WORDS), set(WORDS.values())
    assert set(Vectors.read("v").words) == {"</s>", "<unk>", *own, *(target if tie == "all" else ())}
    assert set(Vectors.read("m.npz:out").words) == {"</s>", "<unk>", *target, *(own if tie == "all" else ())}
    np.testing.assert_allclose(Vectors.read("m.npz:source").matrix, Vectors.read("v").matrix, atol=1e-6)
    same = [Vectors.read(f"m.npz:{a}").matrix.tolist() == Vectors.read(f"m.npz:{b}").matrix.tolist() for a, b in (
        ("in", "out"), ("source", "in"),
    )]  # fmt: skip
    assert same == [tie != "none", tie == "all"]
    texts = "".join((here / name).read_text() for name in ("s", "t")[: 1 + (tie == "all")])
    for name in "v", "m.npz:source":
        counts = dict(zip(Vectors.read(name).words, word_counts(name, Vectors.read(name).words)))
        assert {word: counts[word] for word in own} == {word: texts.split().count(word) for word in own}
    found = succeed(run, "translate", "m.npz", "vs").stdout
    assert found.count("\n") == 9 and found == succeed(run, "translate", "m.npz", "vs", "--batch", 1).stdout


def test_words_in_bpe_and_rerun(run, here):
    pytest.importorskip("subword_nmt")
    for name in "st":
        text = (here / name).read_text().replace("a", "abc").replace("x", "xyz")
        (here / name).write_text(text)
    succeed(run, *TRAIN, "--bpe", 1, "--tie", "all", "--save-model", "m.npz", "-output", "v")
    words = set(Vectors.read("v").words)
    assert words >= {"x@@", "yz"} and not words & {"abc", "xyz"}
    assert "@@" not in succeed(run, "translate", "m.npz", input=b"abc b d\n").stdout
    succeed(run, *TRAIN, "-output", "v")
    assert "same bytes" in succeed(run, "rerun", "v.run.json").stdout


ERRORS = {
    "numbers of lines": (["--valid-source", "vs", "--valid-target", "t"], "t: has 40 lines, but the source, vs, has 9"),
    "halving": ("--valid-source vs --valid-target vt --schedule halving".split(), "use --no-bleu"),
    "one side": (["--valid-source", "vs"], "give both --valid-source and --valid-target"),
    "joint": (["--write", "concat", "--tie", "decoder"], "--write concat"),
    "no text": (["--source", "missing"], "missing: cannot be read"),
    "typed end": (["--source", "ended"], "ended: `</s>` within a line; remove it"),
}


@pytest.mark.parametrize("options, message", ERRORS.values(), ids=ERRORS)
def test_errors_of_nmt_are_one_line(run, here, options, message):
    (here / "ended").write_text("a </s> b\n")
    result = run(*TRAIN, *options, "-output", "v")
    assert result.exit_code in (1, 2) and message in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("library", ["subword_nmt.apply_bpe", "sacrebleu.metrics"])
def test_missing_libraries_are_one_line(run, here, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    result = run(*TRAIN, "--bpe", 3, "--valid-source", "vs", "--valid-target", "vt", "-output", "v")
    assert result.exit_code == 1 and result.stderr.count("\n") == 1 and 'pip install "tiedtools[nmt]"' in result.stderr


def test_presets_and_options_without_effect(run, here):
    listed = succeed(run, "nmt", "--list-presets").stdout
    assert "press-wolf-nmt" in listed and "zaremba" not in listed
    run.fails(2, "press-wolf-nmt", "nmt", "--source", "a", "--target", "b", "--preset", "zaremba-small")
    result = run(*TRAIN, "--debug", 1, "--eval-batch", 3, "--no-bleu", "--decay-after", 2, "--source", "missing")
    assert "--no-bleu has no effect without --valid-source\n--eval-batch has no effect without --v" in result.stderr
    assert "--decay-after has no effect with --schedule plateau\n" in result.stderr
