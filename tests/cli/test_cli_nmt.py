"""Test `tiedtools nmt` from texts to vectors and translations, and its options."""

import json
import sys

import numpy as np
import parsing
import pytest

from tiedtools.api.translation import Translator
from tiedtools.cli.training import settings_of
from tiedtools.models.translation.config import TranslationConfig, configure
from tiedtools.vectors.counts import word_counts
from tiedtools.vectors.vectors import Vectors

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


def test_words_in_bpe(run, here):
    pytest.importorskip("subword_nmt")
    for name in "st":
        text = (here / name).read_text().replace("a", "abc").replace("x", "xyz")
        (here / name).write_text(text)
    succeed(run, *TRAIN, "--bpe", 1, "--tie", "all", "--save-model", "m.npz", "-output", "v")
    words = set(Vectors.read("v").words)
    assert words >= {"x@@", "yz"} and not words & {"abc", "xyz"}
    assert "@@" not in succeed(run, "translate", "m.npz", input=b"abc b d\n").stdout


def test_interrupted_runs_resume_exactly(run, here):
    options = ["--checkpoint", "k", "-output", "v", "--drop-emb", ".2", "--no-manifest"]
    succeed(run, *TRAIN, *options)
    whole = (here / "v").read_bytes()
    (here / "k").unlink()
    succeed(run, *TRAIN, *options, "--epochs", 1)
    assert (here / "v").read_bytes() != whole
    succeed(run, *TRAIN, *options, "--resume")
    assert (here / "v").read_bytes() == whole


def test_rerun(run, here):
    succeed(run, *TRAIN, "-output", "v")
    assert "same bytes" in succeed(run, "rerun", "v.run.json").stdout


ERRORS = {
    "numbers of lines": (["--valid-source", "vs", "--valid-target", "t"], "t: has 40 lines, but vs has 9"),
    "one side": (["--valid-source", "vs"], "give both --valid-source and --valid-target"),
    "joint": (["--write", "concat", "--tie", "decoder"], "--write concat"),
    "no text": (["--source", "missing"], "missing: cannot be read"),
    "typed end": (["--source", "ended"], "ended: `</s>` within a line; remove it"),
}


@pytest.mark.parametrize("options, message", ERRORS.values(), ids=ERRORS)
def test_errors_are_one_line(run, here, options, message):
    (here / "ended").write_text("a </s> b\n")
    result = run(*TRAIN, *options, "-output", "v")
    assert result.exit_code in (1, 2) and message in result.stderr.splitlines()[-1]


@pytest.mark.parametrize("library", ["subword_nmt.apply_bpe", "sacrebleu.metrics"])
def test_missing_libraries_are_one_line(run, here, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    result = run(*TRAIN, "--bpe", 3, "--valid-source", "vs", "--valid-target", "vt", "-output", "v")
    assert result.exit_code == 1 and result.stderr.count("\n") == 1 and 'pip install "tiedtools[nmt]"' in result.stderr


def context(*args):
    return parsing.context("nmt", "--source", "s", "--target", "t", *args)


def test_defaults_are_those_of_the_library():
    config, training, reading = configure()
    known = {**vars(config), **vars(training), "min_count": 1, "max_vocab": None, "bpe": None, "bleu": True}
    params = context().params
    shared = known.keys() & params.keys() - {"threads"}
    assert len(shared) > 25 and {name: params[name] for name in shared} == {name: known[name] for name in shared}
    assert reading == {}


def test_options_reach_the_configuration():
    options = dict(
        size=12, hidden=9, tie="decoder", init=0.02, drop_emb=0.1, drop_annotation=0.2, drop_out=0.3, batch=7,
        max_length=33, optimizer="adadelta", l2=1e-6, threads=1, seed=3, precision="bfloat16",
    )  # fmt: skip
    given = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    model = Translator(**settings_of(context(*given, "--bpe", 50, "--no-bleu", "--min-count", 2)))
    config, training, reading = model.configured
    assert config == TranslationConfig(**options) and training.lr == 1.0
    assert reading == {"bpe": 50, "bleu": False, "min_count": 2}


def test_presets(run):
    listed = succeed(run, "nmt", "--list-presets").stdout
    assert "press-wolf-nmt" in listed and "zaremba" not in listed
    result = run("nmt", "--source", "a", "--target", "b", "--preset", "zaremba-small")
    assert result.exit_code == 2 and "press-wolf-nmt" in result.stderr


def test_options_without_effect(run, here):
    result = run(*TRAIN, "--debug", 1, "--eval-batch", 3, "--decay-after", 2, "-output", "v", "--source", "missing")
    assert "--eval-batch has no effect without --valid-source\n" in result.stderr
    assert "--decay-after has no effect with --schedule plateau\n" in result.stderr
