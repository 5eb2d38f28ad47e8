"""Test the scripts in examples/ that prepare texts or compare tyings, and the list of technical word pairs."""

import argparse
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from common import ROOT

from tiedtools import Vectors
from tiedtools.evaluation.similarity import SimilaritySet, read_set

EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="needs a POSIX shell")
subwords, tying = (pytest.importorskip(name, reason="needs a checkout") for name in ("subwords", "tying"))


def shell(script, *arguments, **options):
    command = ["sh", str(EXAMPLES / script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, **options)


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.sh")), ids=lambda path: path.name)
def test_syntax_and_usage(script):
    assert subprocess.run(["sh", "-n", script], capture_output=True, text=True).stderr == ""
    result = shell(script.name, stdin=subprocess.DEVNULL)
    assert result.returncode == 2 and result.stderr.startswith("usage: sh ") and result.stdout == ""


def sentences(folder, text, *arguments):
    """Return the lines of train.txt, valid.txt, and test.txt that the recipe makes from a text."""
    result = shell("wiki-sentences.sh", folder, *arguments, input=text)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert sorted(os.listdir(folder)) == ["test.txt", "train.txt", "valid.txt"]
    return [(folder / f"{name}.txt").read_text().splitlines() for name in ("train", "valid", "test")]


def test_wiki_sentences_are_split_shuffled_and_without_rare_words(tmp_path):
    names = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
    text = "".join(f"{' '.join([name] * 30)}\n\n" for name in names)  # words in train.txt are all frequent
    train, valid, test = sentences(tmp_path / "frequent", text, 30 * 40 + 29, 10, 12)
    assert [*map(len, (train, valid, test))] == [40, 10, 12] and set(valid + test) == {"<unk> " * 29 + "<unk>"}
    found = [line.split()[0] for line in train]
    assert len(set(found)) == 40 and set(found) <= set(names) and found != sorted(found)
    assert all(line == " ".join([name] * 30) for line, name in zip(train, found))
    text = "".join(f"w{k}\n" * 40 for k in range(20))
    same, again, other = (sentences(tmp_path / name, text, 600, 9, 9, seed) for name, seed in zip("abc", (1, 1, 2)))
    assert same == again != other
    assert sentences(tmp_path / "a", "a\nb\n", 9, 0, 0) == [["<unk>"] * 2, [], []]  # and replaces earlier files
    numbers = np.random.default_rng(1).integers(0, 60, (1000, 3))
    text = "".join(f"The {' '.join(f'W{k}' for k in row)}\n" for row in numbers)
    train, valid, test = sentences(tmp_path / "rare", text, 4 * 600, 150, 250)
    counts = Counter(" ".join(train).split())
    assert counts["the"] == 600 and min(counts.values()) >= 30 and 30 < len(counts) < 62
    assert {word for line in valid + test for word in line.split()} == set(counts)
    # Except for the replaced words, which are rare in training, the sentences are those of the text.
    original = Counter(word.lower() for word in text.split())
    kept = Counter(" ".join(train + valid + test).split())
    assert all(kept[word] == original[word] for word in counts if word != "<unk>")


ENGLISH = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand"
)
GERMAN = (
    "ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn"
    " achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend"
)


def value(text, names):
    """Return the number in words; "und" has no value."""
    values = {**dict(zip(names.split(), [*range(1, 21), *range(30, 100, 10)])), "und": 0}
    hundred, thousand = names.split()[-2:]
    total = part = 0
    for word in text.split():
        if word == thousand:
            total, part = 1000 * part, 0
        else:
            part = 100 * part if word == hundred else part + values[word]
    return total + part


def test_numbers_in_english_and_german():
    lines = subprocess.check_output(["awk", "-f", EXAMPLES / "numbers.awk"], text=True).splitlines()
    assert lines[1] == "fifteen thousand eight hundred thirty eight\tfünfzehn tausend acht hundert acht und dreißig"
    found = [[value(text, names) for text, names in zip(line.split("\t"), (ENGLISH, GERMAN))] for line in lines]
    assert found == [[k * 7919 % 100000] * 2 for k in range(1, 5001)] and len(set(map(tuple, found))) == 5000


def test_the_tutorial_trains_a_model_that_translates(tmp_path):
    """The lines of the tutorial as they stand; other tests run them with one epoch."""
    pytest.importorskip("sacrebleu", reason='needs pip install ".[nmt]"')
    page = (ROOT / "docs" / "tutorial.md").read_text()
    lines = page[page.index("awk -f examples/numbers.awk") :].partition("tiedtools plot attention")[0]
    (program := tmp_path / "tiedtools").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tiedtools "$@"\n')
    program.chmod(0o755)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    result = subprocess.run(["sh", "-eu"], input=lines, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    bleu = float(re.search(r" = (\d+\.\d+) ", result.stdout)[1])
    assert bleu > 95


def test_technical_pairs():
    pairs = read_set(EXAMPLES / "technical-pairs.txt")
    assert 60 <= len(pairs.pairs) <= 100
    assert len({frozenset(pair) for pair in pairs.pairs}) == len(pairs.pairs)
    assert pairs.scores.min() == 0 and 9 < pairs.scores.max() <= 10


def test_statistics_of_tyings(monkeypatch):
    assert tying.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert tying.holm([0.5, 0.9]) == pytest.approx([1, 1])
    monkeypatch.setattr(tying, "FREQUENT", slice(2, 6))
    monkeypatch.setattr(tying, "RARE", 20)
    matrix = np.random.default_rng(1).standard_normal((41, 5)).astype(np.float32)
    cosines = matrix @ matrix.T / np.outer(*[np.linalg.norm(matrix, axis=1)] * 2)
    np.fill_diagonal(cosines, -2)
    nearest = np.argsort(-cosines[3:7], axis=1)[:, :10]  # row 0 is </s>
    found = tying.rare_neighbors(Vectors(["</s>", *(f"w{k}" for k in range(40))], matrix))
    assert found == pytest.approx((nearest > 20).mean()) and 0 < found < 1
    rng = np.random.default_rng(1)
    pairs = [(f"a{k}", f"b{k}") for k in range(200)]
    sets = {"one": SimilaritySet("", "", pairs, rng.standard_normal(200))}
    noisy = lambda scale: [{"one": sets["one"].scores + scale * rng.standard_normal(200)} for _ in range(5)]
    counts = {"one": tying.word_counts(sets["one"])}
    d, seeds, words, p = tying.compare(noisy(0.5), noisy(2), ["one"], sets, counts)
    assert 0.3 < d < 0.7 and p < 0.001
    for low, high in (map(float, interval.split(" to ")) for interval in (seeds, words)):
        assert 0 < low < d < high < 1


WORDS = [f"{topic}{k}" for topic in "abcd" for k in range(5)]


@pytest.fixture
def given(tmp_path):
    """Arguments of tying.py and subwords.py, with a text and sets."""
    rng = np.random.default_rng(1)
    (tmp_path / "text").write_text("\n".join(" ".join(rng.choice(WORDS[k % 4 * 5 :][:5], 12)) for k in range(400)))
    pairs = [f"{a}\t{b}\t{(a[0] == b[0]) + rng.random()}" for a, b in itertools.combinations(WORDS, 2)]
    for folder in "report", "runs":
        (tmp_path / folder).mkdir()
    for name in tying.SETS.values():
        (tmp_path / name).write_text("\n".join([*pairs, "unknown\ta1\t1"]))
    (tmp_path / "questions-words.txt").write_text(": x\na1 a2 b1 b2\na1 a2 c1 c2\n")
    of = dict(folder=tmp_path / "runs", sets=tmp_path, epochs=[1], seeds=[1, 2], only=["CBOW"])
    return argparse.Namespace(text=tmp_path / "text", **of)


def test_subwords_of_two_texts(given, monkeypatch):
    """A run with the settings of a trial shares its file; the runs of another text do not."""
    trained, matrix = [], np.random.default_rng(1).standard_normal((20, 5)).astype(np.float32)
    monkeypatch.setattr(subwords, "train", lambda *arguments: trained.append(arguments[-1].touch()))
    monkeypatch.setattr(subwords.Vectors, "read", lambda path: Vectors(WORDS, matrix))
    subwords.trials(given)
    given.epochs, trials = 1, len(trained)
    subwords.table(given)
    given.text = given.text.with_name("other")
    subwords.table(given)
    assert len(trained) == trials + 3 * len(subwords.MODELS)  # all but those of seed 1 of the first text


def test_trials_runs_and_table(given, monkeypatch, capsys):
    kept = {name: tying.TYINGS[name] for name in ("untied, PMI", "tied, fixed signs")}
    for name, value in dict(
        W2V=tying.W2V.replace("300", "10"), TYINGS=kept, COMPARED=("tied, fixed signs",), FREQUENT=slice(1, 9), RARE=12
    ).items():
        monkeypatch.setattr(tying, name, value)

    tying.runs(given)
    files = {path: path.stat().st_mtime_ns for path in given.folder.iterdir()}
    assert len(files) == 4 and all(path.name.startswith("text CBOW ") for path in files)
    tying.table(given)
    assert files == {path: path.stat().st_mtime_ns for path in given.folder.iterdir()}
    printed = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    head, _, *rows, _, columns, _, one, two = printed
    names = ["CBOW untied, PMI in", "CBOW untied, PMI **sum**", "CBOW tied, fixed signs **in**"]
    assert [" ".join(row[1:3]) for row in rows] == names
    assert {len(row) for row in rows} == {len(head)} and {len(one), len(two)} == {len(columns)}
    mean = head.index("mean")
    means = {tuple(row[1:3]): float(row[mean]) for row in rows}
    difference = means["CBOW tied, fixed signs", "**in**"] - means["CBOW untied, PMI", "**sum**"]
    assert float(one[columns.index("difference")]) == pytest.approx(difference, abs=0.0016)

    monkeypatch.setattr(tying, "TYINGS", {"tied, fixed signs": "--tie-signs"})
    monkeypatch.setattr(tying, "options_tried", lambda *_: ["", "-alpha 10000"])
    tying.trials(given)
    (good, (*_, last)) = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert good[:4] == ["CBOW", "tied, fixed signs", "defaults", "in"] and len(good) == 9 and last == "diverged"
    score, *parts = map(float, good[4:8])
    assert score == pytest.approx(np.mean(parts), abs=0.001)
