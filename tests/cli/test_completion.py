"""Test `tiedtools completion`: the completions in bash, and the scripts for all shells."""

import os
import shutil
import subprocess
import sys

import pytest

from tiedtools.cli.setup import VARIABLE


def completed(line):
    """Return the bash completions at the end of a line, each as `kind,value`."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - (not line.endswith(" ")))}
    environment = {**os.environ, **words, VARIABLE: "bash_complete"}
    command = [sys.executable, "-m", "tiedtools"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return result.stdout.split()


@pytest.mark.parametrize("line, expected", [
    ("tiedtools eval", ["plain,eval-analogy", "plain,eval-sim"]),
    ("tiedtools plot s", ["plain,similarity", "plain,speed"]),
    ("tiedtools w2v --tie", ["plain,--tie", "plain,--tie-signs", "plain,--tie-linear"]),
    ("tiedtools w2v -si", ["plain,-size"]), ("tiedtools w2v --write s", ["plain,sum"]),
    ("tiedtools lstm --preset zaremba-s", ["plain,zaremba-small"]), ("tiedtools lm --preset rhn", ["plain,rhn-ptb"]),
    ("tiedtools data get wikitext2-v", ["plain,wikitext2-valid"]), ("tiedtools w2v corp", ["file,corp"]),
    ("tiedtools w2v -output ve", ["file,ve"]), ("tiedtools w2v --no-such", []),
])  # fmt: skip
def test_completions(line, expected):
    assert completed(line) == expected


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_in_bash(run, tmp_path):
    program = tmp_path / "tiedtools"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tiedtools "$@"\n')
    program.chmod(0o755)
    # $1 of a completion function is the command.
    script = run("completion", "bash").stdout + (
        'COMP_WORDS=(tiedtools lstm -dropout-kind "") COMP_CWORD=3\n'
        "$(complete -p tiedtools | sed 's/.*-F \\([^ ]*\\) .*/\\1/') tiedtools\n"
        'echo "${COMPREPLY[@]}"\n'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(["bash", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    if "older than 4.4" in result.stderr:
        pytest.skip("bash is too old")
    assert (result.stdout, result.stderr) == ("standard variational gal locked\n", "")


@pytest.mark.parametrize("shell, word", [("zsh", "compdef"), ("fish", "commandline")])
def test_scripts(run, shell, word):
    script = run("completion", shell).stdout
    assert word in script and f"{VARIABLE}={shell}_complete" in script
