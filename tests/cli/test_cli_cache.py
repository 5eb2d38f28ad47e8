"""Test --cache of `ppl`, `nbest`, and `predict`; tests/evaluation/test_neuralcache.py has the figures."""

import itertools

import lmcase
import pytest
import subwordcase

COMMANDS = {"ppl": ["-debug", 2], "nbest": ["--ids"], "predict": ["-k", 3, "--carry"]}
every_command = pytest.mark.parametrize("command", COMMANDS)
TEXT = b"w1 w2 w3\nw1 w2 w3\nw1 w2\n"


@pytest.fixture
def lm(tmp_path):
    with open(tmp_path / "lm.npz", "wb") as file:
        lmcase.model().save(file)
    return tmp_path / "lm.npz"


@every_command
def test_a_cache_of_no_words_changes_no_byte(run, lm, command):
    plain, none, some = (
        run(command, lm, *COMMANDS[command], *options, input=TEXT).stdout_bytes
        for options in ([], ["--cache", 0], ["--cache", 5])
    )
    assert plain == none != some and plain.count(b"\n") == some.count(b"\n")


@every_command
def test_the_cache_is_reset_where_the_state_is(run, lm, command):
    """Equal lines have equal figures where lines are independent, and others where the state is carried over."""
    line, cache = b"w1 w2 w3 w1 w2\n", ["--cache", 100, "--cache-lambda", 0.4]
    carrying, apart = dict(ppl=([], ["--independent"]), nbest=(["--ids"], []), predict=(["--carry"], []))[command]
    debug = ["-debug", 1, "--json"] if command == "ppl" else []
    text = (lambda ids: b"a " * ids + line + b"b " * ids + line)("--ids" in carrying)
    first, second = figures(run(command, lm, *carrying, *debug, *cache, input=text).stdout, command)
    assert first != second
    first, second = figures(run(command, lm, *apart, *debug, *cache, input=line * 2).stdout, command)
    assert first == second


def figures(printed, command):
    """Return the printed figures of two lines without their numbers."""
    rows = printed.splitlines()
    if command == "predict":
        return [[row.split("\t")[1:] for row in rows[k : k + 10]] for k in (0, 10)]
    return [row.partition(", ")[2] if command == "ppl" else row for row in rows[:2]]


def test_texts_and_averages(run, lm, tmp_path):
    """Each text starts with an empty cache, and --average counts the cache in."""
    (tmp_path / "text").write_bytes(TEXT)
    printed = lambda *line: run("ppl", lm, *line, "--average", "w1", "--repeats").stdout_bytes.decode().splitlines()
    alone = printed(tmp_path / "text", "--cache", 9)
    (tmp_path / "other").write_bytes(TEXT)
    both = printed(tmp_path / "text", tmp_path / "other", "--cache", 9)
    assert both[: len(alone)] == alone and both[len(alone) + 1 : 2 * len(alone)] == alone[1:]
    plain = printed(tmp_path / "text")
    for with_cache, without in itertools.islice(zip(alone, plain), 2, 4):
        assert float(with_cache.split("\t")[1]) != float(without.split("\t")[1])
        assert with_cache.split("\t")[2] == without.split("\t")[2]


def test_another_vocabulary(run, tmp_path):
    with open(tmp_path / "lm.npz", "wb") as file:
        subwordcase.lettered().save(file)
    (tmp_path / "words").write_text("cats\ndogly\nowlcat\n")
    command = ["ppl", tmp_path / "lm.npz", "--vocabulary", tmp_path / "words"]
    plain, with_cache = (run(*command, *options, input=b"owlcat dogly owlcat\n") for options in ([], ["--cache", 9]))
    assert (plain.exit_code, with_cache.exit_code) == (0, 0) and plain.stdout != with_cache.stdout


@every_command
@pytest.mark.parametrize("options, problem", [
    (["--cache", -1], "'--cache': -1 is not in the range x>=0."),
    (["--cache", 2.5], "'--cache': '2.5' is not a whole number."),
    (["--cache-theta", 1], "--cache-theta requires --cache N"),
    (["--cache-lambda", 0.2, "--cache", 0], "--cache-lambda requires --cache N"),
    (["--cache", 9, "--cache-lambda", 1], "'--cache-lambda': 1.0 is not in the range 0<x<1."),
    (["--cache-lambda", 0, "--cache", 9], "'--cache-lambda': 0.0 is not in the range 0<x<1."),
    (["--cache", 9, "--cache-theta", -1], "'--cache-theta': -1.0 is not in the range 0<=x<=1000."),
    (["--cache", 9, "--cache-theta", "nan"], "'--cache-theta': nan must be finite"),
])  # fmt: skip
def test_wrong_values(run, lm, command, options, problem):
    result = run(command, lm, *options, input=TEXT)
    assert result.exit_code == 2 and problem in result.stderr and result.stderr.count("\n") == 1
