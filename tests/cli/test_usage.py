"""Test usage errors, the decorator of commands, completion, and `warmup`."""

import os
import shutil
import subprocess
import sys

import click
import pytest
from common import ROOT, context_of

from tiedtools.base import aliases
from tiedtools.cli import COMMANDS, cli
from tiedtools.cli.setup import VARIABLE

# Command lines -> messages, which end in a pointer to the help of the command.
MISTAKES = {
    "lstn": "tiedtools: No such command 'lstn'. Did you mean 'lstm'?",
    "W2V text": "tiedtools: No such command 'W2V'. Did you mean 'w2v'?",
    "eval_sim v": "tiedtools: No such command 'eval_sim'. Did you mean 'eval-sim'?",
    "xyzzy": "tiedtools: No such command 'xyzzy'.",
    "w2v -size": "tiedtools w2v: Option '-size' requires an argument.",
    "plot speed -output": "tiedtools plot speed: Option '-output' requires an argument.",
    "w2v -size ten": "tiedtools w2v: Invalid value for '--size': 'ten' is not a whole number.",
    "lstm --decay x": "tiedtools lstm: Invalid value for '--decay': 'x' is not a number.",
    "trian text": "tiedtools: No such command 'trian'. Use w2v (word vectors), lm (language models), or nmt"
    " (translation models).",
    "help w2v": "tiedtools: No such command 'help'. Use tiedtools COMMAND --help.",
    "skipgramm": "tiedtools: No such command 'skipgramm'. Did you mean 'w2v --preset fasttext'?",
    "most_similar v": "tiedtools: No such command 'most_similar'. Did you mean 'nn'?",
    "w2v --bigrams t": "tiedtools w2v: No such option '--bigrams'. Learn phrases with `tiedtools phrases` first,"
    " and give the list with --phrases.",
    "w2v --xyzzy t": "tiedtools w2v: No such option '--xyzzy'.",
    "completion": "tiedtools completion: Missing argument '{bash|zsh|fish}'. Choose from: bash, zsh, fish",
}


@pytest.mark.parametrize("line, message", MISTAKES.items())
def test_usage_errors_name_the_command_and_its_help(run, line, message):
    result, program = run(*line.split()), message.partition(":")[0]
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", f"{message} (see {program} --help)\n")


@pytest.mark.parametrize("line, meant", [
    ("w2v --vector-size 5", "--size"), ("w2v --vector_size=5", "--size"), ("w2v -dim 5", "--size"),
    ("w2v -minCount 5", "--min-count"), ("w2v --min_count 5", "--min-count"), ("w2v -ws 5", "--window"),
    ("w2v -t 1e-4", "--sample"), ("w2v --sg 1", "--cbow 0"), ("w2v --workers 4", "--threads"),
    ("rnnlm -workers 4", "--threads"), ("lstm -iter 5", "--epochs"), ("lstm --tied", "--tie"),
    ("lstm --emsize 5", "--size"), ("lstm --bptt 35", "--steps"), ("nn --topn 5", "--top"),
    ("ppl m --independant", "--independent"), ("rnnlm -hiden 5", "--hidden"), ("w2v -hss 1", "--hs"),
    ("lstm -epohcs 3", "--epochs"), ("ppl m -indepedent", "--independent"), ("w2v -verbose 1", "--debug"),
])  # fmt: skip
def test_options_of_other_programs_and_misspelled_ones_suggest_one(run, line, meant):
    option = line.split()[-2 if line.split()[-1][0].isdigit() else -1].partition("=")[0]
    where = f"tiedtools {line.split()[0]}"
    message = f"{where}: No such option {option!r}. Did you mean {meant!r}? (see {where} --help)\n"
    assert run(*line.split()).stderr == message


def test_spelling_exist():
    """Each suggested command line is one, with options of its command; no name has two meanings, or is a command's."""
    options = {name for _, command in commands() for option in command.params for name in option.opts}
    for table in aliases.COMMANDS, aliases.OPTIONS:
        others = [name for names in table.values() for name in names.split()]
        assert len(set(others)) == len(others)
        for meant in table:
            words = [word for word in meant.split() if not meant.endswith(".")]
            assert all(word in options for word in words if word.startswith("--")), meant
            assert table is aliases.OPTIONS or not words or words[0] in COMMANDS, meant
    assert not {*COMMANDS} & {name for names in aliases.COMMANDS.values() for name in names.split()}


def test_help_lists_each_command_in_its_group(run):
    groups = {}
    for line in run("--help").stdout.splitlines():
        if line and line[0] != " ":
            names = groups.setdefault(line, [])
        elif line[2:3].strip():
            names.append(line.split()[0])
    groups = {title: names for title, names in groups.items() if not title.startswith(("Usage", "Options"))}
    assert list(groups) == ["Train:", "Use:", "Evaluate:", "Prepare:"]
    for title, name in zip(groups, ("w2v", "nn", "ppl", "vocab")):
        assert name in groups[title]
    assert [name for names in groups.values() for name in names] == list(COMMANDS)
    assert run("-version").stdout == run("--version").stdout != "" and run("-h").stdout == run("--help").stdout


@pytest.mark.skipif(not hasattr(click.exceptions, "NoArgsIsHelpError"), reason="needs click 8.2")
@pytest.mark.parametrize("line", ["", "data", "plot"])
def test_a_missing_command_shows_help(run, line):
    result = run(*line.split())
    assert (result.exit_code, result.stdout, result.stderr) == (2, "", run(*line.split(), "--help").stdout)


def commands(group=cli, path=()):
    """Yield (words, command) for each command."""
    for name in group.list_commands(None):
        command = group.get_command(click.Context(group), name)
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


@pytest.mark.parametrize(
    "words, command", list(commands()), ids=lambda part: "-".join(part) if type(part) is tuple else ""
)
def test_options_have_help_and_take_one_dash_or_two_and_h_is_help(run, words, command):
    shown = run(*words, "--help").stdout
    assert shown.startswith("Usage: ") and run(*words, "-h").stdout == run(*words, "-help").stdout == shown
    for option in [parameter for parameter in command.params if isinstance(parameter, click.Option)]:
        names = {*option.opts, *option.secondary_opts}
        assert names >= {name[1:] for name in names if name.startswith("--")} and option.help, option.name


SYNONYMS = {
    "w2v": {"size": "size", "epochs": "iter", "lr": "alpha", "shared-negatives": "batch"},
    "lstm": {"size": "emb", "hidden": "hidden", "epochs": "epochs", "lr": "lr", "batch": "batch"},
    "rnnlm": {"size": "hidden", "epochs": "max-iter", "lr": "alpha", "seed": "rand-seed"},
}


@pytest.mark.parametrize("command", SYNONYMS)
def test_training_commands_share_option_names_and_accept_the_original_ones(command):
    options = [option.opts for option in cli.get_command(None, command).params]
    for name, earlier in {**SYNONYMS[command], "seed": "seed", "threads": "threads"}.items():
        (found,) = [opts for opts in options if f"--{name}" in opts]
        assert f"-{earlier}" in found
    page = (ROOT / "docs/commands.md").read_text()
    for name, earlier in SYNONYMS[command].items():
        assert name == earlier or f"| `--{name}` | `-{earlier}` |" in page or f"| `--{earlier}` | `-{name}` |" in page


@pytest.mark.parametrize("line, binary", [
    ("t", False), ("-binary t", True), ("-binary 1 t", True), ("--binary 0 t", False), ("t -binary 1", True),
])  # fmt: skip
def test_binary_of_rnnlm_is_a_flag_that_accepts_the_values_of_word2vec(line, binary):
    given = context_of("rnnlm", *line.split()).params
    assert (given["binary"], given["texts"]) == (binary, ("t",))


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
    (program := tmp_path / "tiedtools").write_text(f'#!/bin/sh\nexec {sys.executable} -m tiedtools "$@"\n')
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


def warmup(*commands):
    done = subprocess.run([sys.executable, "-m", "tiedtools", "warmup", *commands], capture_output=True, text=True)
    return done.returncode, done.stderr.splitlines()


def test_nothing_is_compiled_after_warmup(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    status, lines = warmup("w2v --tie-linear", "rnnlm -direct 1")
    assert status == 0 and any(line.startswith("w2v: compiling kernel ") for line in lines)
    done = [line.rsplit(" after", 1)[0] for line in lines if "compiling" not in line]
    assert done == ["w2v --tie-linear: ready", "rnnlm -direct 1: ready"]
    before = set(tmp_path.rglob("*.nbc"))
    (tmp_path / "text").write_text("a b c\n" * 50)
    for line in ("w2v --tie-linear -cbow 0", "w2v --tie-linear", "rnnlm -direct 1 -max-iter 2"):
        command = [sys.executable, "-m", "tiedtools", *line.split(), "text"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert "compil" not in done.stderr
    assert set(tmp_path.rglob("*.nbc")) == before and before
    message = "tiedtools: lstm: No such option '--nonsense'. (see tiedtools lstm --help)"
    assert warmup("lstm --nonsense") == (1, [message])
    status, (line,) = warmup("nn")
    assert status == 2 and "'nn' is not one of the commands w2v, lm, lstm, rnnlm, nmt" in line
