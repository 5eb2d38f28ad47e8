"""Files of runs on the command line: training, queries, evaluation, and change."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import tiedtools as tt
from tiedtools.models.word2vec.permutation import PermutedRuns

RNG = np.random.default_rng(5)
PAIRS = "alpha beta 9\nalpha gamma 3\nbeta gamma 4\ndelta gamma 1\nalpha delta 5\n"
NAMES = ["alpha", "beta", "gamma", "delta", *(f"w{k}" for k in range(30))]
ANALOGIES = "\n".join([": test", *map(" ".join, zip(NAMES, NAMES[1:], NAMES[2:], NAMES[3:-1]))])


def sentences(n, names=NAMES):
    return "".join(" ".join(RNG.choice(names, 12)) + "\n" for _ in range(n))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, content in ("a", sentences(300)), ("b", sentences(300, NAMES[:-1])), ("sim", PAIRS), ("ana", ANALOGIES):
        (folder / name).write_text(content)
    return folder


@pytest.fixture(scope="module")
def files(folder):
    for name in "ab":
        model = tt.Word2Vec(size=8, epochs=2, min_count=1, threads=1)
        model.fit(folder / name, runs=5, output=folder / f"{name}.runs")
    return folder / "a.runs", folder / "b.runs"


def answer(run, *args):
    """Run a command with and without --json; return the parsed JSON and the lines of text."""
    result, text = run(*args, "--json"), run(*args)
    assert (result.exit_code, text.exit_code) == (0, 0), result.stderr + text.stderr
    return json.loads(result.stdout), text.stdout.splitlines()


def test_neighbors_analogies_and_cosines_of_runs(run, files):
    found, lines = answer(run, "nn", files[0], "alpha", "beta", "--top", 3)
    assert found["runs"] == 5 and list(found["answers"]) == ["alpha", "beta"]
    assert [len(rows) for rows in found["answers"].values()] == [3, 3]
    first = found["answers"]["alpha"][0]
    assert first["low"] < first["cosine"] < first["high"]
    assert lines[0].split("  ")[0] == "word" and len(lines) == 7
    assert lines[1].split()[:2] == ["alpha", first["neighbor"]]
    assert len(run("nn", files[0], "alpha", "alpha", "--top", 1).stdout.splitlines()) == 3
    counts = tt.Vectors.read(f"{files[1]}:2").counts
    assert counts.tolist() == [tt.load(files[1]).counts[tt.load(files[1]).index[w]] for w in tt.load(f"{files[1]}:2")]
    result = run("nn", files[0], "Alpha", "beta")
    assert result.exit_code == 1 and "Alpha" in result.stderr and "alpha" in result.stderr and "beta" in result.stdout
    found, _ = answer(run, "analogy", files[0], "alpha", "beta", "gamma", "--top", 4)
    words = [row["neighbor"] for row in found["answers"]["alpha beta gamma"]]
    assert len(words) == 4 and not {"alpha", "beta", "gamma"} & set(words)
    found, lines = answer(run, "cosine", files[0], "alpha", "beta", "gamma", "alpha - beta", "--with", files[1])
    assert [row["runs"] for row in found["cosines"]] == [5] * 6
    one, _, two, _, gap, _ = (row["cosine"] for row in found["cosines"])
    assert gap == pytest.approx(two - one) and len(lines) == 7
    assert run("cosine", files[0], "alpha").exit_code == 2
    assert "omega" in run("cosine", files[0], "alpha", "omega").stderr
    (single,) = answer(run, "cosine", f"{files[0]}:1", "alpha", "beta")[0]["cosines"]
    expected = tt.Vectors.read(f"{files[0]}:1").similarity("alpha", "beta")
    assert single["cosine"] == pytest.approx(expected, abs=1e-6) and single["low"] is None and single["runs"] == 1


def test_evaluations_and_comparisons_have_intervals(run, files, folder):
    found, _ = answer(run, "eval-sim", *files, "--set", folder / "sim")
    one, two = found["results"]
    assert (one["covered"], one["runs"]) == (5, 5)
    assert found["differences"][0]["difference"] == pytest.approx(two["rho"] - one["rho"])
    (folder / "none").write_text("alpha omega 1\nomega beta 2\n")
    found, _ = answer(run, "eval-analogy", *files, "--set", folder / "ana", "--method", "both")
    one, two = (found["results"][k]["accuracy"] for k in (3, 7))  # total, mul
    assert found["differences"][-1]["difference"] == pytest.approx(two - one) and two != one
    found, lines = answer(run, "compare", *files, "--top", 3)
    assert [line["pairs"] for line in found["results"]] == [5] * 4 and len(lines) == 5
    assert answer(run, "compare", files[0], files[0])[0]["results"][0]["value"] == pytest.approx(1)
    assert f"{files[0]}: rho is undefined: fewer" in run("eval-sim", files[0], "--set", folder / "none").stderr
    one, _ = answer(run, "compare", f"{files[0]}:2", files[0])
    assert one["results"][2]["low"] < one["results"][2]["value"] < 1


def test_stability_and_change(run, files, folder):
    found, lines = answer(run, "stability", files[0], "--top", 3)
    (band,) = found["results"]
    assert band["words"] == len(NAMES) and 0 < band["shared"] < 1 and len(lines) == 2
    assert answer(run, "stability", files[0], "alpha", "--top", 3)[0]["results"][0]["word"] == "alpha"
    below = answer(run, "stability", files[0], "--below", 0.2, "--top", 3)[0]["results"]
    assert all(row["shared"] < 0.2 for row in below) and run("stability", files[0], "--top", 100).exit_code == 1
    (folder / "list").write_text("</s>\nalpha\nomega\u00a0 \nw29\nalpha\n")
    found, lines = answer(run, "shift", *files, "--words", folder / "list")
    assert [row["word"] for row in found["results"]] == ["alpha"]
    assert found["absent"] == ["</s>", "omega\u00a0", "w29"] and "w29" in found["only_a"] and "w29" in lines[-2]
    assert lines[-1] == "in neither vocabulary: 1: omega\u00a0"
    row = found["results"][0]
    assert row["low"] <= row["change"] <= row["high"] and row["expected"] > 0
    rows = answer(run, "shift", *files)[0]["results"]
    assert rows == sorted(rows, key=lambda row: row["expected"] - row["change"])
    assert answer(run, "shift", *files, "--top", 2)[0]["results"] == rows[:2]
    assert run("shift", *files, "--size", 5).exit_code == 2


def test_files_of_the_command_and_other_files(run, files, folder):
    options = "--runs 5 -size 8 -iter 2 -min-count 1 -threads 1 -debug 0".split()
    assert run("w2v", folder / "a", *options, "-output", folder / "x").exit_code == 0
    assert (folder / "x").read_bytes() == files[0].read_bytes()
    assert "--resample" in run("w2v", folder / "a", *options[2:], "--resample", "none", "-output", folder / "y").stderr
    (folder / "empty").write_text("")
    (folder / "cut").write_bytes(files[0].read_bytes()[:-200])
    for args in (
        ["stability", folder / "a"], ["cosine", folder / "cut", "alpha", "beta"], ["shift", folder / "cut", files[0]],
        ["shift", folder / "empty", folder / "a", "--permutations", 2], ["shift", *files, "--words", folder / "empty"],
    ):  # fmt: skip
        result = run(*args)
        assert result.exit_code == 1 and result.stderr.splitlines()[-1].startswith("tiedtools: ")


def test_permutations_of_documents(run, folder):
    """A word whose contexts differ between the texts has the lowest possible p, and the checkpoint resumes."""
    rng, groups = np.random.default_rng(5), [[f"{group}{k}" for k in range(4)] for group in "abcdef"]
    for text, name in enumerate(("one", "two")):
        lines = []
        for k in range(1200):
            line = [*rng.permutation(groups[k % 6])]
            lines.append(" ".join([*line[:2], "word", *line[2:]] if k % 6 == text and k % 4 else line))
        (folder / name).write_text("\n".join(lines) + "\n")
    args = ["shift", folder / "one", folder / "two", "--permutations", 19, "-size", 8, "-min-count", 1, "-sample", 0]
    args += ["-iter", 5, "-window", 3, "--threads", 2]
    checkpoint = ["--checkpoint", folder / "c"]
    found = json.loads(run(*args, *checkpoint, "--json").stdout)
    p = {row["word"]: row["p"] for row in found["results"]}
    model = SimpleNamespace(config=SimpleNamespace(seed=1))
    sides = [PermutedRuns.order(SimpleNamespace(model=model, bounds=range(21), first=8), k).tolist() for k in range(4)]
    assert [sorted(side) for side in sides[:2]] == [[*range(8)], [*range(8, 20)]] != sides[:2]  # in random order, too
    assert sorted(sides[2] + sides[3]) == [*range(20)] and len(sides[2]) == 8 and sorted(sides[2]) != [*range(8)]
    assert found["results"][0]["word"] == "word" and p["word"] == 0.05
    assert np.mean([p[word] > 0.05 for word in p if word[0] in "cdef"]) > 0.7
    assert run(*args).stdout.splitlines()[1].split()[0] == "word"
    again = json.loads(run(*args, *checkpoint, "--resume", "--json").stdout)
    assert again["results"] == found["results"]
    whole = (folder / "one").read_text() + (folder / "two").read_text()
    (folder / "one").write_text(whole[: len(whole) // 3].rpartition("\n")[0] + "\n")
    (folder / "two").write_text(whole.removeprefix((folder / "one").read_text()))
    assert "different documents" in run.fails(1, "checkpoint", *args, *checkpoint, "--resume").stderr
