"""Test `--json`: standard JSON, one object per line, with every name documented in docs/formats.md."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from fakelm import WORDS, FakeLM
from paths import ROOT
from rnnlmcase import DOC
from rnnlmcase import model as rnnlm

from tiedtools.vectors.vectors import Vectors

FORMATS = ROOT / "docs/formats.md"
COMMANDS = {
    "nn": "nn v a nowhere --json", "analogy": "analogy v a b c --json", "check": "check v --json",
    "pca": "pca v zeros --json", "compare": "compare v zeros --set pairs --json --words 3",
    "eval-sim": "eval-sim v zeros --set pairs --json", "eval-analogy": "eval-analogy v zeros --set questions --json",
    "data list": "data list --json", "vocab": "vocab text --json --min-count 1",
    "docvec": "docvec documents text --json --unit doc", "similar": "similar documents text --json --line 1 --query x",
    "ppl": "ppl model text --json -debug 0", "predict": "predict model text --json",
    "generate": "generate model --lines 1 --json", "nbest": "nbest model text --ids --json",
}  # fmt: skip
AS = {"analogy": "nn", "compare": "eval-sim"}  # commands that also use the names of another one
FREE = {"neighbors a", "analogies a b c", "set_paths pairs"}  # names from user input


def names(value, above=""):
    """Yield the names in an object and in the objects nested in it; `above` is the parent's name."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if f"{above} {name}" not in FREE:
                yield name
            yield from names(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from names(inner, above)


@pytest.mark.skipif(not FORMATS.exists(), reason="needs a checkout")
@pytest.mark.parametrize("command, line", COMMANDS.items())
def test_names_are_documented(run, tmp_path, monkeypatch, command, line):
    monkeypatch.chdir(tmp_path)
    Path("v").write_text("5 2\na 1 0\nb 0 1\nc 1 1\nd 1 -1\nb 2 2\n")
    Path("zeros").write_text("4 2\na 0 0\nb 0 0\nc 0 0\nd 0 0\n")
    Path("pairs").write_text("a b 1\na c 2\nb d 3\na d 4\n")
    Path("questions").write_text(": s\na b c d\n")
    Path("text").write_text("w1 cat the\n")
    for path, model in ("documents", rnnlm(**DOC)), ("model", FakeLM()):
        with open(path, "wb") as file:
            model.save(file)
    (told,) = run(*line.split()).stdout.splitlines()
    found = json.loads(told, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    section, _, printed = FORMATS.read_text().partition("\n## JSON\n")[2].partition("\n## What the language models")
    rows = dict(re.findall(r"^\| `([\w -]+)`.*? \|(.*)$", section, re.MULTILINE))
    rows |= dict.fromkeys(["ppl", "predict", "generate", "nbest"], printed)
    documented = rows[command] + rows.get(AS.get(command), "")
    if command == "data list":
        found = list(found.values())
    if command == "check":
        found["files"][0]["problems"] = list(found["files"][0]["problems"].values())
        assert found["files"][0]["problems"]
    assert sorted(set(names(found)) - set(re.findall(r'(?<=[`"])[^`"]+(?=[`"])', documented))) == []


def objects(result):
    """Return the objects that a command printed, one per line; NaN and infinities are errors."""
    assert result.exit_code == 0, result.stderr
    refuse = lambda name: pytest.fail(f"{name} is not JSON")
    return [json.loads(line, parse_constant=refuse) for line in result.stdout.splitlines()]


def saved(path, model):
    with open(path, "wb") as file:
        model.save(file)
    return path


def test_nbest(run, tmp_path):
    text = "u1 the caf\u00e9\nu2 cat\nu2\n".encode()
    path = saved(tmp_path / "lm", FakeLM(never=[WORDS.index("cat")]))
    found = objects(run("nbest", path, "--json", "--ids", input=text))
    assert [(line["line"], line["id"], line["text"]) for line in found] == [
        (1, "u1", "the caf\u00e9"), (2, "u2", "cat"), (3, "u2", "")
    ]  # fmt: skip
    plain = run("nbest", path, "--ids", input=text).stdout.splitlines()
    assert plain[1] == "-inf" and found[1]["logprob"] is None
    assert [f"{found[k]['logprob']:.6f}" for k in (0, 2)] == [plain[0], plain[2]]
    for options in [], ["--batch", 1]:
        found = objects(run("nbest", path, "--json", *options, input=b"the\n\non mat"))
        assert [(line["line"], line["text"]) for line in found] == [(1, "the"), (2, ""), (3, "on mat")]
        assert found[0].keys() == {"line", "text", "logprob"}


@pytest.mark.parametrize("options", [["--lines", 6], ["--words", 30], ["--prompt", "the caf\u00e9 ", "--words", 9]])
def test_generate(run, tmp_path, options):
    path = saved(tmp_path / "lm", FakeLM())
    found = objects(run("generate", path, "--json", *options))
    plain = run("generate", path, *options).stdout.removesuffix("\n").split("\n")
    assert found == [{"line": number, "text": text} for number, text in enumerate(plain, 1)]


def test_vocab(run, tmp_path):
    path = tmp_path / "out"
    result = run("vocab", "--json", "-min-count", 2, input="b \u00e9 \u00e9\nb b\n c\n".encode())
    expected = {"tokens": 9, "words": 4, "kept": 3, "kept_tokens": 8, "vocab": [["</s>", 3], ["b", 3], ["\u00e9", 2]]}
    assert objects(result) == [expected]
    assert result.stderr == "9 tokens, 4 words, 3 kept with 8 tokens\n"
    assert run("vocab", "--json", "-output", path, "-min-count", 9, input=b"b\n").stdout == ""
    assert json.loads(path.read_text())["vocab"] == [["</s>", 1]]


def test_docvec(run, tmp_path):
    path, text = saved(tmp_path / "model", rnnlm(**DOC)), b"w1 w2\nw3\n\nw4 w4"
    for options, lines in ([], ["w1 w2", "w3", "", "w4 w4"]), (["--unit", "doc"], ["w1 w2", "w4 w4"]):
        found = objects(run("docvec", path, "--json", *options, input=text))
        assert [(line["line"], line["text"]) for line in found] == list(enumerate(lines, 1))
        run("docvec", path, "-binary", 1, "-output", tmp_path / "out", *options, input=text)
        matrix = Vectors.read(tmp_path / "out").matrix
        assert np.array_equal(np.float32([line["vector"] for line in found]), matrix)
    refused = run("docvec", path, "--json", "-binary", 1, input=text)
    assert refused.exit_code == 2 and "--json writes text: omit --binary 1" in refused.stderr
    assert "5 words outside the vocabulary" in run("docvec", path, "--json", input=b"a b c d e\n").stderr
