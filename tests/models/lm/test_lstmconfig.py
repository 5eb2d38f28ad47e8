"""Test LSTM configurations, parameter counts against the papers' tables, and presets."""

import dataclasses

import pytest
from modelsizes import lstm_params

from tiedtools.base.errors import Contradiction
from tiedtools.kernels.base.arrays import imagining
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.lm.presets import PRESETS
from tiedtools.network.config import SITES
from tiedtools.network.threads import idle
from tiedtools.text.vocab import Vocab
from tiedtools.training.schedules import Training


@pytest.mark.parametrize("hidden, emb, tying, millions", [
    (200, 200, "untied", "4.65"), (200, 200, "tied", "2.65"), (650, 650, "untied", "19.8"), (650, 650, "tied", "13.3"),
    (1500, 1500, "untied", "66.0"), (1500, 1500, "tied", "51.0"),
])  # fmt: skip
def test_parameter_counts_of_zaremba_and_press_wolf(hidden, emb, tying, millions):
    n = lstm_params(LstmConfig(size=emb, hidden=hidden, tying=tying), 10_000)
    assert f"{n / 1e6:.{len(millions.split('.')[1])}f}" == millions


@pytest.mark.parametrize("hidden, emb, V, millions", [
    (200, 200, 10_000, "2.69"), (400, 200, 10_000, "4.34"), (600, 400, 10_000, "9.5"), (600, 600, 10_000, "12.1"),
    (600, 300, 50_000, "20.3"),
])  # fmt: skip
def test_parameter_counts_of_gulordava(hidden, emb, V, millions):
    """The paper counts PyTorch's two bias vectors per layer; tiedtools has one."""
    config = LstmConfig(size=emb, hidden=hidden, tying="linear")
    n = lstm_params(config, V) + config.layers * 4 * hidden
    assert f"{n / 1e6:.{len(millions.split('.')[1])}f}" == millions


@pytest.mark.parametrize("preset, millions", [("awd-ptb", "24.2"), ("day", "14.2")])
def test_parameter_count_of_awd_lstm(preset, millions):
    """Merity et al. 2018, table 1: 24M; with one bias per layer instead of PyTorch's two, 24.2M. `day`: below 15M."""
    fields = {field.name for field in dataclasses.fields(LstmConfig)}
    settings = {name: value for name, value in PRESETS[preset][1].items() if name in fields}
    config = LstmConfig(**settings | {"tying": "tied"})
    with imagining():
        n = idle(LstmLM)(Vocab.made_up(10_000), config).n_params
    assert n == lstm_params(config, 10_000) and f"{n / 1e6:.1f}" == millions


def test_parameter_counts_of_the_parts():
    count = lambda **options: lstm_params(LstmConfig(size=3, hidden=5, **options), 11)
    base = 11 * 3 + 4 * 5 * (3 + 5 + 1) + 4 * 5 * (5 + 5 + 1) + 11 * 5 + 11
    assert count() == base and count(layers=1) == base - 220 and count(output_bias=False) == base - 11
    assert count(tying="linear") == base - 55 + 15 and count(tying="linear", linear_bias=True) == base - 55 + 18
    assert count(projection=0.1) == base + 25 + 5
    assert lstm_params(LstmConfig(size=4, tying="tied"), 11) == 11 * 4 + 2 * 16 * 9 + 11


def test_layer_widths_set_the_number_of_layers_and_the_width_of_the_last():
    config = LstmConfig(size=7, layer_widths="5,6,7,8")
    assert (config.layers, config.hidden, config.units) == (4, 8, [5, 6, 7, 8])
    assert dataclasses.replace(config, seed=2).units == config.units and LstmConfig(hidden=9).units == [9, 9]


def test_defaults_derived_from_other_options():
    config = LstmConfig(size=30, init=0.2)
    assert (config.hidden, config.init_lstm) == (30, 0.2)
    assert dataclasses.replace(config, size=40).hidden == 30  # set when first constructed


CONTRADICTIONS = [  # settings, and the setting or value that the message proposes or names
    (dict(tying="tied", hidden=400), "tying='linear'"), (dict(linear_bias=True), "tying='linear'"),
    (dict(linear_dropout="after"), "tying='linear'"), (dict(tying="linear", projection=0.1), "projection"),
    (dict(drop_word=0.1), "dropout_kind=gal or locked"), (dict(drop_state=0.1), "dropout_kind=variational or gal"),
    (dict(dropout_kind="variational", drop_emb=0.1), "dropout_kind=standard or gal or locked"),
    (dict(dropout_kind="variational", drop_state=0.1, drop_out=0.1), "drop_state"),
    (dict(mc_samples=3, drop_out=0.5), "mc_samples"), (dict(mc_samples=3, dropout_kind="gal"), "mc_samples"),
    (dict(mc_samples=3, dropout_kind="locked", drop_word=0.5), "drop_word"),
    (dict(sampled=10, augment=0.5), "sampled"), (dict(sampled=10, augment_share=0.5), "sampled"),
    (dict(augment=0.5, augment_share=0.5), "augment_share"),
    (dict(precision="bfloat16", dtype="float64"), "precision='bfloat16'"),
    *((dict(layer_widths=wrong), f"layer_widths={wrong}") for wrong in ("3,x", "0,3", "")),
    (dict(layer_widths="9" * 5000), f"layer_widths={'9' * 197}..."), (dict(layer_widths="3,4,5", layers=2), "layers"),
    (dict(layer_widths="3,4", hidden=5), "layer_widths"), (dict(layer_widths="3,4,5", layers=4), "layers"),
    (dict(layer_widths="3,4", tying="tied"), "tying"), (dict(optimizer="asgd", unit_embeddings=True), "optimizer"),
    (dict(random_steps=True, steps=5), "steps"),
    (dict(dropout_kind="locked", drop_state=0.1), "dropout_kind=variational or gal"),
]  # fmt: skip


@pytest.mark.parametrize("options, named", CONTRADICTIONS, ids=str)
def test_invalid_combinations_are_rejected(options, named):
    with pytest.raises(Contradiction) as error:
        LstmConfig(**options)
    assert f"`{named}" in str(error.value)


def test_variational_dropout_rates():
    single_layer = LstmConfig(dropout_kind="variational", drop_state=0.3, drop_out=0.3, layers=1)
    assert single_layer.rates == dict(word=0, emb=0, layer=0, state=0.3, out=0.3)
    no_state_dropout = LstmConfig(dropout_kind="variational", drop_layer=0.2, drop_out=0.3)
    assert no_state_dropout.rates == dict(word=0, emb=0, layer=0.2, state=0, out=0.3)


@pytest.mark.parametrize("name", PRESETS)
def test_presets(name):
    source, values = PRESETS[name]
    fields = {kind: {f.name for f in dataclasses.fields(kind)} for kind in (LstmConfig, Training)}
    assert set(values) - {"max_vocab"} <= fields[LstmConfig] | fields[Training]
    config = LstmConfig(**{k: v for k, v in values.items() if k in fields[LstmConfig]})
    Training(**{k: v for k, v in values.items() if k in fields[Training]})
    assert {site for site in SITES["gal"] if f"drop_{site}" in values} == set(SITES[config.dropout_kind])
    # Presets set every option in which they differ, so that a changed default does not affect them.
    always = {"size", "dropout_kind", "init", "loss_scale", "lr", "clip", "schedule", "decay", "epochs"}
    assert always <= set(values) and ("hidden" in values) != ("layer_widths" in values)
    assert name.endswith(f"-{config.hidden}-{config.size}") == name.startswith("gulordava")
