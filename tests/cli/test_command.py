"""Test the decorator of commands: a new command is one function and one entry of COMMANDS."""

import json
import math
import sys
import types

import click
import pytest

from tiedtools.base.errors import TiedtoolsError
from tiedtools.cli import COMMANDS
from tiedtools.cli.command import Answer, command
from tiedtools.cli.options import integer, json_option, option


@command("toy", "Count words.", reads="texts", writes="output")
@click.argument("texts", nargs=-1, metavar="[TEXT]...")
@integer("top", 2, "Number of words per text.")
@option("output", default="-", help="Output file.")
@json_option("Print one JSON object per text.")
def toy(texts, top):
    """Print the first words of each TEXT."""
    for text in texts:
        if text == "bad":
            raise TiedtoolsError("bad: is bad; give a good one")
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
    for arguments, problem in (
        (["-", "-"], "standard input can be read only once"),
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
