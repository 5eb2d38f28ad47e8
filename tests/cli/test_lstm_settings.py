"""Test how options of `tiedtools lstm` for optimizers and AWD-LSTM become settings, and their contradictions."""

import pytest
from parsing import context

from tiedtools.api.language import LanguageModel
from tiedtools.cli.networks import idle_in_lm as idle
from tiedtools.cli.options import explicit
from tiedtools.cli.training import settings_of
from tiedtools.models.lm.config import LstmConfig
from tiedtools.training.schedules import Training


def configured(*args):
    config, training, _ = LanguageModel("lstm", **settings_of(context("lstm", *args))).configured
    return config, training


def test_options_of_awd_lstm_reach_the_configuration():
    options = dict(
        size=12, layer_widths="9,8,12", dropout_kind="locked", drop_word=0.1, drop_emb=0.2, drop_layer=0.25,
        drop_out=0.4, drop_weights=0.5, ar=2.0, tar=1.0, optimizer="nt-asgd", nonmono=3, average_after=9,
        l2=1e-6, lr_weight_decay=1.2e-6, weight_decay=1e-7, threads=1,
    )  # fmt: skip
    arguments = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    flags = dict(tying="tied", random_steps=True, init_by_width=True)
    expected = LstmConfig(**options, **flags, precision=None), Training(schedule="constant")
    flags = "--random-steps", "--init-by-width", "--tie", "--schedule", "constant"
    assert configured(*arguments, *flags) == expected
    assert not configured(*arguments, *flags, "--no-random-steps")[0].random_steps


@pytest.mark.parametrize(
    "options, lr",
    [
        ([], 20.0),
        (["--optimizer", "nt-asgd"], 20.0),
        (["--optimizer", "adam"], 0.001),
        (["--optimizer", "adadelta"], 1.0),
        (["--optimizer", "adam", "--lr", 0.01], 0.01),
        (["--preset", "zaremba-small", "--optimizer", "adam"], 0.001),
        (["--preset", "zaremba-small", "--optimizer", "sgd"], 1.0),
        (["--preset", "awd-ptb"], 30.0),
        (["--preset", "awd-ptb", "--optimizer", "adam"], 0.001),
    ],
    ids=str,
)
def test_the_default_learning_rate_depends_on_the_optimizer(options, lr):
    assert configured(*options)[1].lr == lr


@pytest.mark.parametrize(
    "options, schedule",
    [
        (["--optimizer", "nt-asgd"], "constant"),
        (["--optimizer", "asgd", "--preset", "zaremba-small"], "constant"),
        (["--optimizer", "asgd", "--schedule", "plateau"], "plateau"),
        (["--optimizer", "adam", "--preset", "zaremba-small"], "decay"),
        (["--optimizer", "adam"], "plateau"),
    ],
    ids=str,
)
def test_averaging_implies_a_constant_learning_rate(options, schedule):
    assert configured(*options)[1].schedule == schedule


def test_a_preset_with_other_widths():
    small, _ = configured("--preset", "awd-ptb", "--tie", "--size", 20, "--layer-widths", "30,20")
    assert (small.units, small.layers, small.drop_weights, small.random_steps) == ([30, 20], 2, 0.5, True)
    assert configured("--preset", "awd-wt2", "--subwords", "morphs")[0].reuse == "all"


@pytest.mark.parametrize(
    "options, told",
    [
        (["--nonmono", 3], {"nonmono": "without --optimizer nt-asgd"}),
        (["--nonmono", 3, "--average-after", 9, "--optimizer", "nt-asgd"], {}),
        (["--average-after", 9, "--optimizer", "asgd"], {"average_after": "without --optimizer nt-asgd"}),
        (["--schedule", "constant", "--decay", 2], {"decay": "with --schedule constant"}),
        (["--schedule", "constant", "--decay-after", 2], {"decay_after": "with --schedule constant"}),
        (["--schedule", "decay", "--decay", 2, "--decay-after", 2], {}),
        (["--decay", 2, "--min-gain", 0.5], {}),
        (["--init-by-width", "--init-lstm", 0.1], {"init_lstm": "with --init-by-width"}),
        (["--init-by-width", "--init-lstm", 0.1, "--tie-linear"], {}),
    ],
    ids=str,
)
def test_options_without_effect(options, told):
    ctx = context("lstm", *options)
    assert {name: why for name, why in idle(*configured(*options)).items() if name in explicit(ctx)} == told


@pytest.mark.parametrize(
    "options, message",
    [
        ("--layer-widths 9,8 --hidden 9", "omit --layers and --hidden, or change --layer-widths"),
        ("--preset awd-ptb --hidden 9", "omit --layers and --hidden, or change --layer-widths"),
        ("--layer-widths 9,,8", "--layer-widths 9,,8 must be numbers of units, 1 to 100,000, separated by commas"),
        ("--tie --layer-widths 9,8", "equal size, not 200 and 8; make --size and --hidden equal"),
        ("--optimizer asgd --sessions 2", "omit --sessions, or choose another --optimizer"),
        ("--optimizer nt-asgd --unit-embeddings", "choose another --optimizer"),
        ("--dropout-kind locked --drop-state .1", "set --dropout-kind variational or gal"),
        ("--mc-samples 2", "it needs --dropout-kind variational, gal, or locked"),
        ("--lr-weight-decay -1", "--lr-weight-decay"),
        ("--drop-weights 1", "--drop-weights"),
    ],
)
def test_contradictions_are_one_line(run, options, message):
    result = run("lstm", *options.split(), "/nonexistent/text")
    assert result.exit_code == 2 and message in result.stderr and result.stderr.count("\n") == 1, result.stderr


@pytest.mark.parametrize("vectors", ["--tie", "--subwords chars --filters 4,4"])
@pytest.mark.parametrize("more", ["", "--precision bfloat16 --optimizer adam --lr .01", "--optimizer asgd --threads 2"])
def test_awd_lstm_trains(run, tmp_path, vectors, more):
    (tmp_path / "text").write_text("the cat sat on the mat\nthe dog lay on the log\n" * 50)
    small = "--preset awd-ptb --size 8 --layer-widths 12,8 --steps 9 --batch 4 --epochs 2 --lr 1 --threads 1"
    out = tmp_path / "vectors"
    result = run("lstm", *small.split(), *vectors.split(), *more.split(), tmp_path / "text", "-output", out)
    assert result.exit_code == 0 and "model: LSTM" in result.stderr, result.stderr
    assert out.read_text().startswith("9 8\n") and result.stderr.count("valid ppl") == 2
