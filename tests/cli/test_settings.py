"""Test how options become settings: contradictions, options without effect, and spelling."""

import math

import click
import numpy as np
import pytest
from common import context_of, refused

from tiedtools.api.language import LanguageModel
from tiedtools.base.errors import Contradiction
from tiedtools.cli import cli
from tiedtools.cli.networks import idle
from tiedtools.cli.options import explicit, spelled
from tiedtools.cli.report import RnnlmReport
from tiedtools.cli.training import settings_of
from tiedtools.evaluation import continuation, rnnlmtest
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.rnnlm.config import RnnlmConfig, configure
from tiedtools.vectors.vectors import Vectors

MISSING = "is/not/there"  # reading it gives exit status 1
TEXT = "the cat sat on the mat\nthe dog sat on the box\n" * 20


def test_one_iter_agrees_with_one_epoch(run, tmp_path, monkeypatch, no_signals):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_text(TEXT)
    result = run(*"rnnlm text -rnnlm m -one-iter --epochs 1 -hidden 3 -class 3 -debug 0".split())
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("options, message", [
    ("-direct-order 4", "--direct-order has no effect without --direct\n"),
    ("--defer --bptt-block 4", "--defer has no effect with blocks of one word\n--bptt-block has no effect without"),
    ("--sentences -bptt 4", "--bptt has no effect with --sentences\n"),
    ("-doc-lr .1 -start-doc sum", "--start-doc has no effect without --doc-dim\n"),
    ("-anti-kasparek 10000", "--anti-kasparek has no effect without --rnnlm\n"),
    ("-rnnlm m -test - -nbest -dynamic .1", "--dynamic has no effect with --nbest\n"),
    ("--checkpoint-minutes 1", "--checkpoint-minutes has no effect without --checkpoint\n"),
    ("-lambda .5", "--lambda has no effect without --lm-prob\n"),
    ("--decay 2", "--decay has no effect with --schedule halving\n"),
    ("--one-iter --schedule decay", "--schedule has no effect with --one-iter\n"),
    ("-bptt 2 -bptt-block 4 --defer -direct 1 -direct-order 4 -doc-dim 2 --no-sentences -doc-lr .1", None),
])  # fmt: skip
def test_options_without_effect_in_rnnlm(run, tmp_path, options, message):
    result = run(*f"rnnlm {MISSING}".split(), *options.split())
    assert message in result.stderr if message else "no effect" not in result.stderr


def test_the_name_of_another_vector_format_is_rejected(tmp_path):
    vectors = Vectors(["a"], np.ones((1, 2)))
    refused(lambda: vectors.write(str(tmp_path / "v.npy"), "binary"), "would be read as npy, but", kind=Contradiction)
    vectors.write(str(tmp_path / "v.npy"), "tsv")  # v.npy.tsv
    assert Vectors.read(str(tmp_path / "v.npy.tsv")).words == ["a"]


def test_infinite_perplexities_and_probabilities_up_to_1():
    text = rnnlmtest.as_text(np.array([-1e6, -1e6, -3.0]), 2, 0.5)
    assert "PPL net: infinite\n" in text and "PPL other: infinite\nPPL combine: 31.622777\n" in text
    line = RnnlmReport(0).line(1, 0.1, 64.0, math.inf, 1.0, 1.0)
    assert "TRAIN entropy: 6.0000" in line and line.endswith("VALID entropy: infinite")

    class Absurd:
        def predict(self, ids, state):
            return np.array([[1e9, -1e9]]), state

    logprobs, _ = continuation.read(Absurd(), [0], ())
    assert continuation.most_probable(logprobs, 1) == [(0, 1.0)]


OF_L = ["--lr-linear", 0.1, "--init-linear", "uniform"]
OF_SAMPLING = ["-hs", 1, "--ns-exponent", 0.5, "--shift", -1]
GRAD = ["--cbow-grad", "exact"]


def without(reason, *names):
    return "".join(f"{name} has no effect {reason}\n" for name in names)


@pytest.mark.parametrize("options, told", [
    ([*OF_L, "--tie"], without("without --tie-linear", *OF_L[::2])), ([*OF_L, "--tie-linear"], ""),
    (["-init-linear=uniform"], without("without --tie-linear", "--init-linear")),
    (["--tie-linear", "--precision=float32", "--exact"],
     without("with separate negatives per target", "--precision")),
    (["--negated", 0.5, "--tie-linear"], without("without --tie-signs", "--negated")),
    (["--negated", 0.5, "--tie-signs", "--shift", -1], ""), ([*GRAD, "--shift", -1], ""),
    ([*GRAD, "--cbow-sum"], without("with --cbow-sum", "--cbow-grad")),
    ([*GRAD, "-cbow", 0, "--cbow-sum"], without("with --cbow 0", "--cbow-grad", "--cbow-sum")),
    (["--cbow-sum", "--fit-pmi", "--fixed-window", "--min-alpha", 0.001], ""), (OF_SAMPLING, ""),
    (
        [*OF_SAMPLING, "--fit-pmi", "-negative", 0],
        without("with --negative 0", "--fit-pmi", "--shift", "--ns-exponent"),
    ),
    (["--batch", 1, 8, 8, "--exact"], without("with separate negatives per target", "--shared-negatives")),
], ids=str)  # fmt: skip
def test_options_without_effect_are_reported(run, tmp_path, options, told):
    (tmp_path / "text").write_text("the cat sat on the mat\n" * 20)
    result = run("w2v", "-size", 4, "-iter", 1, "-debug", 0, *options, tmp_path / "text")
    assert (result.exit_code, result.stderr) == (0, told)


def configured(*args):
    config, training, _ = LanguageModel("lstm", **settings_of(context_of("lstm", *args))).configured
    return config, training


@pytest.mark.parametrize("options, lr", [
    ([], 20.0), (["--optimizer", "nt-asgd"], 20.0), (["--optimizer", "adam"], 0.001),
    (["--optimizer", "adadelta"], 1.0), (["--optimizer", "adam", "--lr", 0.01], 0.01),
    (["--preset", "zaremba-small", "--optimizer", "adam"], 0.001),
    (["--preset", "zaremba-small", "--optimizer", "sgd"], 1.0), (["--preset", "awd-ptb"], 30.0),
    (["--preset", "awd-ptb", "--optimizer", "adam"], 0.001),
], ids=str)  # fmt: skip
def test_the_default_learning_rate_depends_on_the_optimizer(options, lr):
    assert configured(*options)[1].lr == lr


@pytest.mark.parametrize("options, schedule", [
    (["--optimizer", "nt-asgd"], "constant"), (["--optimizer", "asgd", "--preset", "zaremba-small"], "constant"),
    (["--optimizer", "asgd", "--schedule", "plateau"], "plateau"),
    (["--optimizer", "adam", "--preset", "zaremba-small"], "decay"), (["--optimizer", "adam"], "plateau"),
], ids=str)  # fmt: skip
def test_averaging_implies_a_constant_learning_rate(options, schedule):
    assert configured(*options)[1].schedule == schedule


def test_a_preset_with_other_widths():
    small, _ = configured("--preset", "awd-ptb", "--tie", "--size", 20, "--layer-widths", "30,20")
    assert (small.units, small.layers, small.drop_weights, small.random_steps) == ([30, 20], 2, 0.5, True)
    assert configured("--preset", "awd-wt2", "--subwords", "morphs")[0].reuse == "all"


@pytest.mark.parametrize("options, told", [
    (["--nonmono", 3], {"nonmono": "without --optimizer nt-asgd"}),
    (["--nonmono", 3, "--average-after", 9, "--optimizer", "nt-asgd"], {}),
    ([*"--average-after 9 --epochs 9 --optimizer nt-asgd".split()], {"average_after": "without more --epochs"}),
    (["--average-after", 9, "--optimizer", "asgd"], {"average_after": "without --optimizer nt-asgd"}),
    (["--schedule", "constant", "--decay", 2], {"decay": "with --schedule constant"}),
    ([*"--dropout-kind locked --dropout 0 --mask-sharing batch".split()], {"mask_sharing": "without masks to share"}),
    (["--decay-after", 2], {"decay_after": "with --schedule plateau"}),
    (["--min-gain", 1, "--schedule", "decay"], {"min_gain": "with --schedule decay"}),
    (["--schedule", "decay", "--decay", 2, "--decay-after", 2], {}), (["--decay", 2, "--min-gain", 0.5], {}),
    (["--init-by-width", "--init-lstm", 0.1], {"init_lstm": "with --init-by-width"}),
    (["--init-by-width", "--init-lstm", 0.1, "--tie-linear"], {}), (["--tau", 5], {"tau": "without --augment"}),
    (["--mask-sharing", "batch"], {"mask_sharing": "with --dropout-kind standard"}),
    (["--restart", "last"], {"restart": "with one session"}),
    (["--layers", 1, "--drop-layer", 0.1], {"drop_layer": "with one layer"}),
], ids=str)  # fmt: skip
def test_options_without_effect(options, told):
    ctx = context_of("lstm", *options)
    assert {name: why for name, why in idle(*configured(*options)).items() if name in explicit(ctx)} == told


@pytest.mark.parametrize("options, rates", [
    ("", dict(emb=0.3, layer=0.3, out=0.3)), ("--dropout 0", {}),
    ("--dropout .5 --drop-emb .1", dict(emb=0.1, layer=0.5, out=0.5)),
    ("--dropout-kind variational --dropout .2", dict(layer=0.2, state=0.2, out=0.2)),
    ("--dropout-kind variational --drop-state 0", dict(layer=0.3, out=0.3)),
    ("--dropout-kind gal --drop-word .1", dict(word=0.1, emb=0.3, layer=0.3, state=0.3, out=0.3)),
    ("--preset inan-small", dict(layer=0.3, state=0.3, out=0.3)),
    ("--preset inan-small --dropout .4", dict(layer=0.4, state=0.4, out=0.4)),
    ("--preset inan-small --dropout-kind standard", dict(emb=0.3, layer=0.3, out=0.3)),
], ids=str)  # fmt: skip
def test_dropout(options, rates):
    config, _ = configured(*options.split())
    assert {site: rate for site, rate in config.rates.items() if rate} == rates
    assert config.loss_scale == ("sum" if "inan" in options else LstmConfig().loss_scale)


def configuration(*args):
    return configure(**settings_of(context_of("rnnlm", *args)))[0]


def test_settings_of_rnnlm():
    options = dict(
        hidden=12, classes=34, doc_dim=5, doc_lr=0.2, start_doc="first", bptt=4, bptt_block=6, beta=1e-6, cutoff=9.0,
        direct_order=4, seed=7, threads=2,
    )  # fmt: skip
    names = {"classes": "class", "cutoff": "gradient-cutoff", "seed": "rand-seed"}
    given = [part for k, value in options.items() for part in (f"-{names.get(k, k).replace('_', '-')}", value)]
    flags = dict(old_classes=True, independent=True, defer=True)
    config = configuration(*given, "-direct", 2.5, "-old-classes", "-independent", "-defer", "--no-sentences")
    assert config == RnnlmConfig(**options, **flags, direct=2_500_000)
    assert configuration() == RnnlmConfig()
    paper = dict(sentences=True, learn_start=True, shuffle=True)
    assert configuration("--doc-dim", 20) == RnnlmConfig(hidden=100, doc_dim=20, **paper)
    assert configuration("--sentences") == RnnlmConfig(**paper)
    assert configuration("--doc-dim", 20, "--no-sentences") == RnnlmConfig(hidden=100, doc_dim=20)


@pytest.mark.parametrize("command, message, expected", [
    ("lstm", "lower `size` or `hidden=5`", "lower --size or --hidden 5"),
    ("lstm", "set `dropout_kind=variational or gal`", "set --dropout-kind variational or gal"),
    ("lstm", "`tying='tied'`, `tying=untied`", "--tie, --no-tie"),
    ("lstm", "created with `output_bias=False`", "created with --no-output-bias"),
    ("rnnlm", "with `defer=False`; has `defer=True`", "with no --defer; has --defer"),
    ("w2v", "lower `lr`; `epochs=3`", "lower --lr; --epochs 3"),
    ("rnnlm", "`classes` and `cutoff`", "--class and --gradient-cutoff"),
    ("ppl", "rerun with `resume` `save_model=FILE`", "rerun with --resume --save-model FILE"),
    ("check", "read it with `errors='replace'`", "read it with --errors replace"),
    ("analogy", "`<unk>`, `</s>`, `tiedtools vocab`, `emb`", "`<unk>`, `</s>`, `tiedtools vocab`, `emb`"),
])  # fmt: skip
def test_settings_are_spelled_as_options_of_the_command(command, message, expected):
    assert spelled(message, cli.get_command(click.Context(cli), command)) == expected


def test_errors_and_messages_are_spelled(run, tmp_path):
    assert "make --size and --hidden equal, or use --tie-linear (see" in run("lstm", "--tie", "-hidden", 7, "x").stderr
    (tmp_path / "text").write_text("a b\n")
    assert "lower --min-count, give more text, or use another" in run("w2v", tmp_path / "text").stderr
    (tmp_path / "vocab").write_text("</s> 5\na 9\nb 3\n")
    result = run("w2v", "-read-vocab", tmp_path / "vocab", tmp_path / "text")
    assert "--min-count 5 dropped 1 of 3 words" in result.stderr
