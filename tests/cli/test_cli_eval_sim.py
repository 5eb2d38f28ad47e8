"""Test `tiedtools eval-sim`."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from similaritycase import write_set, write_toy, write_vectors

from tiedtools.evaluation import similarity
from tiedtools.vectors.vectors import Vectors


@pytest.fixture(autouse=True)
def no_data_around(monkeypatch, tmp_path):
    monkeypatch.delenv("TIEDTOOLS_DATA", raising=False)
    monkeypatch.setenv("TIEDTOOLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("TIEDTOOLS_MIRROR", str(tmp_path / "mirror"))  # instead of the internet


@pytest.fixture
def toy(tmp_path):
    return write_toy(tmp_path)


def numbers(result):
    """Return the first table that `eval-sim` prints, as {set: {column: cell}}."""
    header, *lines = result.stdout.split("\n\n")[0].splitlines()[1:]
    return {line.split()[0]: dict(zip(header.split(), line.split())) for line in lines}


def test_table_and_json_agree(run, toy):
    one, _, words = toy
    table = run("eval-sim", one, "--set", words)
    assert table.exit_code == 0 and table.stderr == ""
    assert table.stdout.splitlines()[0] == "# oov=skip case=fallback bootstrap=1000 seed=1 interval=0.95"
    answer = json.loads(run("eval-sim", one, "--set", words, "--json").stdout)
    assert {key: answer[key] for key in ("oov", "case", "bootstrap", "seed", "interval")} == {
        "oov": "skip", "case": "fallback", "bootstrap": 1000, "seed": 1, "interval": 0.95}  # fmt: skip
    assert answer["set_paths"] == {str(words): str(words)} and answer["differences"] == []
    (result,) = answer["results"]
    (line,) = result["sets"]
    assert result["file"] == str(one) and result["mean_rho"] == line["rho"]
    assert line["pairs"] == 120 and 0 < line["covered"] < 120 and line["oov_words"] == 2
    assert line["low"] < line["rho"] < line["high"]
    cells = numbers(table)
    assert cells[str(words)] == {
        "set": str(words), "pairs": "120", "covered": str(line["covered"]), "oov_words": "2", "file": str(one),
        **{key: f"{line[key]:.4f}" for key in ("rho", "low", "high")}}  # fmt: skip
    assert "mean" not in cells  # of a single set


def test_results_depend_neither_on_order_nor_on_other_sets_and_files(run, toy, tmp_path):
    one, two, words = toy
    other = write_set(tmp_path / "other", [("w1", "w2", 1), ("w3", "w4", 2), ("w5", "w6", 3)])
    alone = json.loads(run("eval-sim", two, "--set", words, "--json").stdout)
    among = json.loads(run("eval-sim", one, two, "--set", other, "--set", words, "--json").stdout)
    assert among["results"][1]["sets"][1] == alone["results"][0]["sets"][0]
    rhos = [line["rho"] for line in among["results"][1]["sets"]]
    assert among["results"][1]["mean_rho"] == pytest.approx(sum(rhos) / 2)
    lines = words.read_text().splitlines()
    swapped = [f"{b}\t{a}\t{score}" for a, b, score in (line.split("\t") for line in lines)]
    mixed = np.random.default_rng(8).permutation(lines[::2] + swapped[1::2])
    expected = run("eval-sim", one, two, "--set", words, "--json").stdout
    words.write_text("\n".join(mixed))
    assert run("eval-sim", one, two, "--set", words, "--json").stdout == expected


def test_several_files_are_compared_with_the_first(run, toy):
    one, two, words = toy
    answer = json.loads(run("eval-sim", one, two, one, "--set", words, "--json").stdout)
    different, same = answer["differences"]
    assert (different["file"], same["file"]) == (str(two), str(one))
    assert (same["difference"], same["low"], same["high"], same["p"]) == (0, 0, 0, 1)
    # The second file's words are a subset of the first's, so all its pairs are common.
    rho_two = answer["results"][1]["sets"][0]
    assert different["pairs"] == rho_two["covered"] < answer["results"][0]["sets"][0]["covered"]
    assert different["rho"] == rho_two["rho"] != different["rho_first"]
    assert different["rho_first"] != answer["results"][0]["sets"][0]["rho"]
    assert different["difference"] == different["rho"] - different["rho_first"]
    assert different["low"] < different["difference"] < different["high"] and 0 < different["p"] < 1
    (reverse,) = json.loads(run("eval-sim", two, one, "--set", words, "--json").stdout)["differences"]
    assert (reverse["pairs"], reverse["difference"]) == (different["pairs"], -different["difference"])
    assert reverse["p"] == different["p"]
    zero = json.loads(run("eval-sim", one, two, "--set", words, "--json", "--oov", "zero").stdout)
    assert zero["differences"][0]["pairs"] == 120
    table = run("eval-sim", one, two, "--set", words).stdout.split("\n\n")[1].splitlines()
    assert table[0].split() == ["set", "pairs", "rho", "rho_first", "difference", "low", "high", "p", "file"]
    assert table[1].split()[4] == f"{different['difference']:.4f}" and len(table) == 2


def test_the_mean_over_sets_is_resampled_and_tested_as_a_whole(run, toy, tmp_path):
    one, two, words = toy
    lines = words.read_text().splitlines()
    halves = [tmp_path / name for name in ("even", "odd")]
    for path, half in zip(halves, (lines[::2], lines[1::2])):
        path.write_text("\n".join(half))
    options = ["eval-sim", one, two, "--set", halves[0], "--set", halves[1]]
    answer = json.loads(run(*options, "--json").stdout)
    vectors = [Vectors.read(path) for path in (one, two)]
    sets = [similarity.read_set(half) for half in halves]
    judged = [[similarity.judge(v, s) for s in sets] for v in vectors]
    samples = [[similarity.summarize(s, j)[1] for s, j in zip(sets, of_one)] for of_one in judged]
    for result, of_one in zip(answer["results"], samples):
        expected = similarity.interval((of_one[0] + of_one[1]) / 2)
        assert (result["mean_low"], result["mean_high"]) == pytest.approx(expected)
        assert result["mean_low"] < result["mean_rho"] < result["mean_high"]
    *each, mean = answer["differences"]
    assert (mean["set"], mean["pairs"], mean["file"]) == ("mean", None, str(two)) and len(each) == 2
    for key in ("rho", "rho_first", "difference"):
        assert mean[key] == pytest.approx((each[0][key] + each[1][key]) / 2)
    compared = [similarity.compare(s, j, f) for s, j, f in zip(sets, judged[1], judged[0])]
    assert (mean["low"], mean["high"]) == pytest.approx(similarity.interval(sum(c[1] for c in compared) / 2, 2))
    assert mean["p"] == similarity.permutation_test(sum(c[2] for c in compared) / 2)
    table = run(*options).stdout.split("\n\n")[1].splitlines()
    figures = ("rho", "rho_first", "difference", "low", "high", "p")
    assert table[-1].split() == ["mean", "-", *(f"{mean[key]:.4f}" for key in figures), str(two)]


def test_all_policies_are_options_and_take_effect(run, toy, tmp_path):
    one, _, words = toy

    def line(*options):
        return json.loads(run("eval-sim", one, "--set", words, "--json", *options).stdout)["results"][0]["sets"][0]

    default = line()
    assert line("--seed", 2)["rho"] == default["rho"] and line("--seed", 2)["low"] != default["low"]
    assert line("--bootstrap", 50)["low"] != default["low"]
    none = line("--bootstrap", 0)
    assert (none["low"], none["high"], none["rho"]) == (None, None, default["rho"])
    assert "-" in run("eval-sim", one, "--set", words, "--bootstrap", 0).stdout.splitlines()[2].split()
    for oov in ("zero", "mean"):
        assert line("--oov", oov)["rho"] != default["rho"] and line("--oov", oov)["covered"] == default["covered"]
    words.write_text(words.read_text().upper())
    assert line() == default and line("--case", "lower") == default
    assert (line("--case", "as-is")["covered"], line("--case", "as-is")["rho"]) == (0, None)
    assert line("-format", "text") == default
    assert run("eval-sim", one, "--set", words, "--format", "npy").exit_code == 1
    from tiedtools.cli.evaluate import eval_sim

    choices = {p.name: tuple(p.type.choices) for p in eval_sim.params if hasattr(p.type, "choices")}
    assert (choices["oov"], choices["case"]) == (similarity.OOV, similarity.CASES)


UNDEFINED = [  # scores of three pairs, the last with an unknown word, of which the first two have cosines 0 and .6
    ("1 2 3", "a b, a c, a x", None),
    ("1 2 3", "a b, a x, a y", "fewer than two covered pairs"),
    ("2 2 3", "a b, a c, a x", "all scores equal"),
    ("1 2 3", "a b, a d, a x", "all cosines equal"),
]


@pytest.mark.parametrize("scores, pairs, reason", UNDEFINED, ids=lambda value: str(value))
def test_the_reason_for_an_undefined_rho_is_on_stderr(run, tmp_path, scores, pairs, reason):
    vectors = write_vectors(tmp_path / "v.txt", "abcd", [[1, 0], [0, 1], [0.6, 0.8], [0, 2]])
    triples = [(*pair.split(), score) for pair, score in zip(pairs.split(", "), scores.split())]
    one, two = (write_set(tmp_path / name, triples) for name in ("one", "two"))
    result = run("eval-sim", vectors, "--set", one, "--set", two)
    assert numbers(result)["mean"]["rho"] == ("-" if reason else "1.0000")
    expected = f"{vectors}: rho is undefined: {reason} on {one}, {two}\n" if reason else ""
    assert (result.exit_code, result.stderr) == (0, expected)


def test_the_reason_for_an_undefined_difference_is_on_stderr(run, tmp_path):
    """Each file covers two pairs, of which they share one."""
    one = write_vectors(tmp_path / "one.txt", "abc", [[1, 0], [0, 1], [0.6, 0.8]])
    two = write_vectors(tmp_path / "two.txt", "abd", [[1, 0], [0, 1], [0.6, 0.8]])
    pairs = write_set(tmp_path / "pairs", [("a", "b", 1), ("a", "c", 2), ("a", "d", 3)])
    result = run("eval-sim", one, two, "--set", pairs)
    reason = f"rho is undefined: fewer than two covered pairs on {pairs}"
    assert result.stderr == f"{two} and {one}: {reason}\n"


def test_named_sets_and_odd_file_names(run, toy, tmp_path, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "EN-VERB-143.txt").write_text(toy[2].read_text())
    answer = json.loads(run("eval-sim", toy[0], "--data", folder, "--json").stdout)
    assert answer["set_paths"] == {"verb143": str(folder / "EN-VERB-143.txt")}
    monkeypatch.setenv("TIEDTOOLS_DATA", str(folder))
    both = run("eval-sim", toy[0], "--set", "verb143", "--set", toy[2], "--set", "verb143")
    assert list(numbers(both)) == ["verb143", str(toy[2]), "mean"]
    one, _, named = toy
    vectors, pairs = (os.fsencode(path) + b"\xff" for path in (one, named))
    os.rename(one, vectors)
    os.rename(named, pairs)
    command = [sys.executable, "-m", "tiedtools", "eval-sim", vectors, "--set", pairs]
    table = subprocess.check_output(command, env={**os.environ, "PYTHONIOENCODING": "utf-8"})
    assert re.search(b"^%b  .*  %b$" % (re.escape(pairs), re.escape(vectors)), table, re.M)
