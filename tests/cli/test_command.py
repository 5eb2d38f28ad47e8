"""Test that a new command is one function and one entry of COMMANDS, and a new setting one field of a dataclass."""

import json
import math
import os
import shutil
import subprocess
import sys
import types

import click
import pytest
from common import ROOT

from tiedtools.base.errors import TiedtoolsError
from tiedtools.cli import COMMANDS
from tiedtools.cli.command import Answer, command
from tiedtools.cli.options import integer, json_option, option

ERRORS = {"bad": TiedtoolsError("bad: is bad; give a good one"), "thread": RuntimeError("can't start new thread")}


@command("toy", "Count words.", reads="texts", writes="output")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@integer("top", 2, "Number of words per text.")
@option("output", default="-", help="Output file.")
@json_option("Print one JSON object per text.")
def toy(texts, top):
    """Print the first words of each TEXT."""
    for text in texts:
        if text in ERRORS:
            raise ERRORS[text]
        yield Answer(f"{text} {top}\n", {"text": text, "top": math.nan if top > 5 else top}, status=int(text == "odd"))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    module = types.ModuleType("tiedtools.cli.toys")
    module.toy = toy
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(COMMANDS, "toy", "toys:toy")


def test_text_json_and_output_files(run, tmp_path):
    result = run("toy", "a", "caf\u00e9", "-top", 3)
    assert (result.exit_code, result.stdout_bytes, result.stderr) == (0, "a 3\ncaf\u00e9 3\n".encode(), "")
    result = run("toy", "a", "b", "--json", "--top", 6)
    assert [json.loads(line) for line in result.stdout.splitlines()] == [{"text": name, "top": None} for name in "ab"]
    assert run("toy").stdout == "- 2\n"
    for arguments in ["odd", "a"], ["a", "odd"], ["odd", "--json"]:
        assert run("toy", *arguments).exit_code == 1
    assert "toy           Count words.\n" in run("--help").stdout
    shown = run("toy", "--help").stdout
    assert shown.startswith("Usage: tiedtools toy [OPTIONS] [TEXT]...\n\n  Print the first words of each TEXT.\n")
    assert all(text in shown for text in ("--top N", "[default: 2; x>=1]", "--json", "Print one JSON object per text."))
    path = tmp_path / "out"
    assert run("toy", "a", "b", "-output", path).stdout == "" and path.read_text() == "a 2\nb 2\n"
    assert run("toy", "a", "bad", "-output", path).exit_code == 1 and path.read_text() == "a 2\nb 2\n"
    run.fails(2, "used as both input and output", "toy", path, "--output", path)


def test_errors_are_one_line(run, tmp_path):
    result = run("toy", "a", "bad", "b")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "a 2\n", "tiedtools: bad: is bad; give a good one\n")
    run.fails(1, "the system cannot start a thread; raise its limits (ulimit -u, ulimit -v)", "toy", "thread")
    for arguments, problem in (
        (["-", "-"], "standard input can be read only once; give a file for the other"),
        (["--tpo", 3], "No such option '--tpo'. Did you mean '--top'?"),
        (["--top", "x"], "Invalid value for '--top': 'x' is not a whole number."),
    ):
        result = run("toy", *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == f"tiedtools toy: {problem} (see tiedtools toy --help)\n"


def test_gathered_rows_and_options_without_json(run, monkeypatch):
    @command("toy", None, gather=lambda rows: {"all": rows}, without_json={"loud": "--loud is not JSON"})
    @option("loud", is_flag=True)
    @json_option("Print one JSON object.")
    def gathered(loud):
        yield Answer("one\n", {"n": 1})
        yield Answer("two\n", {"n": 2})

    monkeypatch.setattr(sys.modules["tiedtools.cli.toys"], "toy", gathered)
    assert run("toy", "--loud").stdout == "one\ntwo\n"
    assert run("toy", "--json").stdout == '{"all": [{"n": 1}, {"n": 2}]}\n'
    result = run("toy", "--json", "--loud")
    assert (result.exit_code, result.stderr) == (2, "tiedtools toy: --loud is not JSON (see tiedtools toy --help)\n")


# Setting -> (module, the declaration that it is put before, commands that then have its option).
TOYS = {
    "toy_loss": ("network/config.py", "    augment: float", ["lm", "lstm"]),
    "toy_epochs": ("training/schedules.py", "    decay: float", ["lm", "lstm", "nmt"]),
    "toy_words": ("models/word2vec/config.py", "    window: int", ["w2v", "shift"]),
    "toy_classes": ("models/rnnlm/config.py", "    classes: int", ["rnnlm"]),
    "toy_sentences": ("models/translation/config.py", "    tie: str", ["nmt"]),
}
ESTIMATORS = {
    "toy_loss": "LanguageModel('lstm', ", "toy_epochs": "Translator(", "toy_words": "Word2Vec(",
    "toy_classes": "LanguageModel('rnnlm', ", "toy_sentences": "Translator(",
}  # fmt: skip


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Return a function that runs Python with a copy of the package that has the TOYS; its folder is `folder`."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "tiedtools", folder / "tiedtools", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "reference.py", folder / "docs")
    for name, (module, before, _) in TOYS.items():
        path = folder / "tiedtools" / module
        text = path.read_text()
        assert text.count(before) == 1
        path.write_text(text.replace(before, f'    {name}: int = setting(3, Range(0, 9))("Toy of `seed`.")\n{before}'))

    def run(*args):
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        command = [sys.executable, *map(str, args)]
        result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout

    run.folder = folder
    return run


def test_the_pages_have_its_option(python):
    python("docs/reference.py")
    pages = "".join(page.read_text() for page in sorted((python.folder / "docs").glob("commands-*.md"), reverse=True))
    sections = pages.split("\n## tiedtools ")
    for name, (_, _, commands) in TOYS.items():
        option = f"--{name.replace('_', '-')}"
        assert [text.split("\n")[0] for text in sections if f"\n  {option} " in text] == sorted(
            commands, key=["w2v", "lm", "lstm", "rnnlm", "nmt", "shift"].index
        )
    for text in sections:
        if "--toy-" in text:
            assert " ".join(text.split()).count("Toy of --seed. [default: 3; 0<=x<=9]") == text.count("  --toy-")


@pytest.mark.parametrize("name", TOYS)
def test_python_checks_it(python, name):
    code = f"""
import tiedtools
def refused(**settings):
    try:
        tiedtools.{ESTIMATORS[name]}**settings)
    except tiedtools.Contradiction as error:
        return str(error)
print(refused({name}=4))
print(refused({name[:-1]}=4))
print(refused({name}=10))
print(refused({name}="4"))
print("{name}" in tiedtools.{ESTIMATORS[name].partition("(")[0]}.__doc__)
"""
    accepted, misspelled, large, text, documented = python("-c", code).splitlines()
    assert accepted == "None" and misspelled == f"unknown setting `{name[:-1]}`; did you mean `{name}`?"
    assert large == f"`{name}=10` must be from 0 to 9" and text == f"`{name}='4'` is not int; correct it"
    assert documented == str(name != "toy_classes")


@pytest.mark.parametrize("command, name", [("w2v -iter 1 -size 4", "toy_words"), ("lstm --epochs 1", "toy_loss")])
def test_the_manifest_and_the_model_have_it(python, command, name):
    (python.folder / "text").write_text("the cat sat on the mat\n" * 30)
    option, output = name.replace("_", "-"), python.folder / name
    more = f"-threads 1 --{option} 4 -size 4 -output {output} --save-model {output}.npz text"
    python("-m", "tiedtools", *command.split(), *more.split())
    assert json.loads((python.folder / f"{name}.run.json").read_text())["options"][option] == 4
    code = f"import tiedtools; print(tiedtools.load('{output}.npz').settings['{name}'])"
    assert python("-c", code).strip() == "4"
