"""Test options that exclude each other (exit status 2 before anything is read) or have no effect (a message)."""

import math

import numpy as np
import pytest
from refusals import refused

from tiedtools.base.errors import Contradiction
from tiedtools.cli.report import RnnlmReport
from tiedtools.evaluation import continuation, rnnlmtest
from tiedtools.vectors.vectors import Vectors

MISSING = "is/not/there"  # reading it gives exit status 1
TEXT = "the cat sat on the mat\nthe dog sat on the box\n" * 20


@pytest.mark.parametrize("command, message", [
    (f"w2v {MISSING} --checkpoint", "--checkpoint cannot be standard output or empty"),
    (f"w2v {MISSING} --tie --tie-linear", "--tie and --tie-linear are mutually exclusive; choose one"),
    (f"w2v {MISSING} --tie-signs -tie", "-tie and --tie-signs are mutually exclusive; choose one"),
    (f"w2v {MISSING} --tie-linear --tie-signs", "--tie-signs and --tie-linear are mutually exclusive"),
    (f"w2v {MISSING} --tie --tie-signs --tie-linear", "--tie and --tie-signs and --tie-linear are mutually"),
    (f"w2v {MISSING} -hs 1 --tie", "hierarchical softmax has no output word vectors to tie; use --negative"),
    (f"w2v {MISSING} -hs 1 --tie-signs", "use --negative with --tie, --tie-signs, or --tie-linear"),
    (f"w2v {MISSING} -hs 1 --tie-linear", "hierarchical softmax has no output word vectors to tie"),
    (f"w2v {MISSING} -hs 1 -negative 0 -cbow 0 --tie-linear", "vectors to tie"),
    (f"w2v {MISSING} -hs 1 -negative 0 --write out", "hierarchical softmax has no output word vectors; use --write in"),
    (f"w2v {MISSING} --tie --write concat", "would write each vector twice"),
    (f"w2v {MISSING} --tie-signs --write sum", "--write sum: input and output vectors differ only in signs"),
    (f"w2v {MISSING} --tie-signs --write concat", "their concatenation repeats them; use --write in"),
    (f"w2v {MISSING} --tie-signs --negated 1.1", "--negated"),
    (f"w2v {MISSING} --min-alpha .06", "--min-alpha 0.06 is above --lr 0.05; lower it"),
    (f"w2v {MISSING} -alpha .01 --min-lr .02", "--min-alpha 0.02 is above --lr 0.01; lower it"),
    (f"w2v {MISSING} --ns-exponent 10.5", "--ns-exponent"),
    (f"lstm {MISSING} --log-json", "--log-json cannot be standard output or empty"),
    (f"rnnlm {MISSING} -rnnlm m.gz -debug 0", "m.gz: this output is never compressed; remove .gz"),
    (f"rnnlm {MISSING} -one-iter --epochs 3 -debug 0", "--one-iter trains a single epoch: omit it or --epochs"),
    (f"rnnlm -rnnlm {MISSING} -gen 3 --resume", "--resume needs a TEXT"),
    (f"convert {MISSING} v.npz", "v.npz: would be read as a model file"),
    (f"convert {MISSING} v.npy.gz", "format npy is not compressed"),
    (f"convert {MISSING} v.tsv --to text", "v.tsv: would be read as tsv, but is text"),
    (f"convert {MISSING} - --to npy", "writes two files"),
])  # fmt: skip
def test_contradictions_are_found_before_reading(run, tmp_path, monkeypatch, command, message):
    monkeypatch.chdir(tmp_path)
    words = command.split()
    result = run(*words, *[""] * command.endswith(("--checkpoint", "--log-json")))
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1


def test_one_iter_agrees_with_one_epoch(run, tmp_path, monkeypatch, no_signals):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(TEXT)
    result = run(*"rnnlm text -rnnlm m -one-iter --epochs 1 -hidden 3 -class 3 -debug 0".split())
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("options, message", [
    ("-direct-order 4", "--direct-order has no effect without --direct\n"),
    ("--bptt-block 4", "--bptt-block has no effect without --bptt\n"),
    ("-doc-lr .1 -start-doc sum", "--start-doc has no effect without --doc-dim\n"),
    ("-anti-kasparek 10000", "--anti-kasparek has no effect without --rnnlm\n"),
    ("-lambda .5", "--lambda has no effect without --lm-prob\n"),
    ("-bptt 2 -bptt-block 4 -direct 1 -direct-order 4 -doc-dim 2 -doc-lr .1", None),
])  # fmt: skip
def test_options_without_effect_in_rnnlm(run, tmp_path, options, message):
    result = run(*f"rnnlm {MISSING}".split(), *options.split())
    assert message in result.stderr if message else "no effect" not in result.stderr


def test_the_name_of_another_vector_format_is_rejected(tmp_path):
    vectors = Vectors(["a"], np.ones((1, 2)))
    refused(lambda: vectors.write(str(tmp_path / "v.npy"), "binary"), "would be read as npy, but", kind=Contradiction)
    vectors.write(str(tmp_path / "v.npy"), "tsv")  # v.npy.tsv
    assert Vectors.read(str(tmp_path / "v.npy.tsv")).words == ["a"]


def test_an_empty_file_name_is_shown_in_quotes(run):
    result = run("rnnlm", "-rnnlm", "m", "-test", "")
    assert result.exit_code == 1 and result.stderr.startswith("tiedtools: '': No such file or directory")


def test_infinite_perplexities():
    text = rnnlmtest.as_text(np.array([-1e6, -1e6, -3.0]), 2, 0.5)
    assert "PPL net: infinite\n" in text and "PPL other: infinite\nPPL combine: 31.622777\n" in text
    line = RnnlmReport(0).line(1, 0.1, 64.0, math.inf, 1.0, 1.0)
    assert "TRAIN entropy: 6.0000" in line and line.endswith("VALID entropy: infinite")


def test_no_probability_is_above_1():
    class Absurd:
        def predict(self, ids, state):
            return np.array([[1e9, -1e9]]), state

    logprobs, _ = continuation.read(Absurd(), [0], ())
    assert continuation.most_probable(logprobs, 1) == [(0, 1.0)]
