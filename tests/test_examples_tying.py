"""Test examples/tying.py: its statistics by definition, and trials, runs, and table on a small text."""

import argparse
import importlib.util
import itertools

import numpy as np
import pytest
from paths import ROOT

from tiedtools import Vectors
from tiedtools.evaluation.similarity import SimilaritySet

SCRIPT = ROOT / "examples" / "tying.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="needs a checkout")


@pytest.fixture
def tying(monkeypatch):
    spec = importlib.util.spec_from_file_location("tying", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_holm(tying):
    assert tying.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert tying.holm([0.5, 0.9]) == pytest.approx([1, 1])


def test_pairs_are_resampled_by_their_words(tying):
    pairs = [("a", "b"), ("a", "c"), ("d", "e")]
    counts = tying.word_counts(SimilaritySet("", "", pairs, np.arange(3.0)))
    assert counts.shape == (1000, 3) and counts.min() == 0
    # Copies n of 5 words are multinomial: E[nm] = 1 - 1/5, E[nnmk] = (5)_4 / 5^4 + (5)_3 / 5^3, E[nmkl] = (5)_4 / 5^4.
    assert counts.mean(axis=0) == pytest.approx([0.8] * 3, abs=0.15)
    together = (counts[:, :1] * counts[:, 1:]).mean(axis=0)
    assert together == pytest.approx([120 / 625 + 60 / 125, 120 / 625], abs=0.15)
    assert (counts[counts[:, 0] > 0, 1] > 0).mean() > (counts[counts[:, 0] > 0, 2] > 0).mean() + 0.1


def test_rare_neighbors(tying, monkeypatch):
    monkeypatch.setattr(tying, "FREQUENT", slice(2, 6))
    monkeypatch.setattr(tying, "RARE", 20)
    matrix = np.random.default_rng(1).standard_normal((41, 5)).astype(np.float32)
    cosines = matrix @ matrix.T / np.outer(*[np.linalg.norm(matrix, axis=1)] * 2)
    np.fill_diagonal(cosines, -2)
    nearest = np.argsort(-cosines[3:7], axis=1)[:, :10]  # row 0 is </s>
    found = tying.rare_neighbors(Vectors(["</s>", *(f"w{k}" for k in range(40))], matrix))
    assert found == pytest.approx((nearest > 20).mean()) and 0 < found < 1


def test_differences_have_the_sign_and_intervals_of_their_seeds(tying):
    rng = np.random.default_rng(1)
    pairs = [(f"a{k}", f"b{k}") for k in range(200)]
    sets = {"one": SimilaritySet("", "", pairs, rng.standard_normal(200))}
    noisy = lambda scale: [{"one": sets["one"].scores + scale * rng.standard_normal(200)} for _ in range(5)]
    counts = {"one": tying.word_counts(sets["one"])}
    d, seeds, words, p = tying.compare(noisy(0.5), noisy(2), ["one"], sets, counts)
    assert 0.3 < d < 0.7 and p < 0.001
    for low, high in (map(float, interval.split(" to ")) for interval in (seeds, words)):
        assert 0 < low < d < high < 1


def test_trials_runs_and_table(tying, monkeypatch, tmp_path, capsys):
    topics = [[f"{topic}{k}" for k in range(5)] for topic in "abcd"]
    rng = np.random.default_rng(1)
    lines = [" ".join(rng.choice(topics[k % 4], 12)) for k in range(400)]
    (tmp_path / "text").write_text("\n".join(lines))
    words = sorted(itertools.chain(*topics))
    pairs = [f"{a}\t{b}\t{(a[0] == b[0]) + rng.random()}" for a, b in itertools.combinations(words, 2)]
    (tmp_path / "report").mkdir()
    for name in tying.SETS.values():
        (tmp_path / name).write_text("\n".join([*pairs, "unknown\ta1\t1"]))
    (tmp_path / "questions-words.txt").write_text(": x\na1 a2 b1 b2\na1 a2 c1 c2\n")
    given = argparse.Namespace(
        text=str(tmp_path / "text"), folder=tmp_path / "runs", sets=tmp_path, epochs=[1], seeds=[1, 2], only=["CBOW"]
    )
    given.folder.mkdir()
    kept = {name: tying.TYINGS[name] for name in ("untied, PMI", "tied, fixed signs")}
    for name, value in dict(
        W2V=tying.W2V.replace("300", "10"), TYINGS=kept, COMPARED=("tied, fixed signs",), FREQUENT=slice(1, 9), RARE=12
    ).items():
        monkeypatch.setattr(tying, name, value)

    tying.runs(given)
    files = {path: path.stat().st_mtime_ns for path in given.folder.iterdir()}
    assert len(files) == 4
    tying.table(given)
    assert files == {path: path.stat().st_mtime_ns for path in given.folder.iterdir()}
    printed = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    head, _, *rows, _, columns, _, one, two = printed
    assert [row[1:3] for row in rows] == [
        ["CBOW untied, PMI", "in"],
        ["CBOW untied, PMI", "**sum**"],
        ["CBOW tied, fixed signs", "**in**"],
    ]
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
