"""Test configurations, parameter counts against the papers' tables, and presets."""

import dataclasses

import pytest
from common import refused
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

# Zaremba et al. 2014, section 4.1. Their code (main.lua, max_epoch 4, 6, 14) keeps the initial learning rate one epoch
# longer than the section says, tests the parameters of the last epoch, and initializes biases like weights.
ZAREMBA = dict(
    loss_scale="sum", schedule="decay", lr=1.0, batch=20, dropout_kind="standard", keep="last", sessions=1, layers=2,
    init_bias="uniform", init_lstm=None, forget_bias=0.0, weight_decay=0.0, mc_samples=0, mask_sharing="example",
    output_bias=True,
)  # fmt: skip
SMALL = dict(size=200, hidden=200, steps=20, init=0.1, clip=5.0, epochs=13, decay=2.0, decay_after=5)
MEDIUM = dict(size=650, hidden=650, steps=35, init=0.05, clip=5.0, epochs=39, decay=1.2, decay_after=7)
LARGE = dict(size=1500, hidden=1500, steps=35, init=0.04, clip=10.0, epochs=55, decay=1.15, decay_after=15)
NONE, HALF, MOST = (dict(drop_emb=p, drop_layer=p, drop_out=p) for p in (0.0, 0.5, 0.65))

# Gal & Ghahramani 2016: their code (main.lua) for the large model; dropout of the model with untied
# masks: words and states .3, layer inputs and output .5; lr decay 1.15 after epoch 10, weight decay 1e-7 per step.
GAL = dict(
    dropout_kind="gal", drop_word=0.3, drop_emb=0.5, drop_layer=0.5, drop_state=0.3, drop_out=0.5, weight_decay=1e-7
)  # fmt: skip

# Inan et al. 2017, appendix A: keep probabilities .7, .5, .35 (PTB), .8, .6 (WikiText-2); decay .9, .9, .97 after
# epochs 5, 10, 1; clip 5, 5, 6; 35 steps. Not in the paper: epochs, batch size, initialization. Footnote 4: each
# session starts from the end of the previous one.
INAN = dict(dropout_kind="variational", steps=35, epochs=70, batch=20, keep="best", restart="last")
DROP = {p: dict(drop_layer=p, drop_state=p, drop_out=p) for p in (0.2, 0.3, 0.4, 0.5, 0.65)}

# Assylbekov & Takhanov 2018, appendix A; morph-sum.py: biases 0, but 1 for forget gates; masks shared by the batch.
WORD = dict(
    dropout_kind="variational", steps=35, epochs=70, batch=20, keep="best", decay=1 / 0.9, clip=5.0, init_bias="zero",
    forget_bias=1.0, mask_sharing="batch",
)  # fmt: skip

# The same, section 5 and appendix A, and morph-sum.py, VD-LSTM-*.py: two highway layers; everything reused (RE+RW).
# Medium-sized CharCNN: min(200, 50 w) filters of widths w up to 7 (Kim et al. 2016, large).
MORPHS = dict(subwords="morphs", reuse="all", highways=2, lr=0.7, decay_after=10)
# Ours: clip 2 instead of 5, which in their code includes the gradient of the padding.
SYLLABLES = dict(subwords="syllables", reuse="all", highways=2, lr=0.7, decay_after=10, clip=2.0)
NARROW, WIDE = dict(subword_dim=50, highway_dim=200), dict(subword_dim=200, highway_dim=800)
CHARS = dict(subwords="chars", reuse="all", highways=2, subword_dim=15, lr=0.5, decay_after=12, clip=2.0)
FEW, MANY = dict(filters="25,50,75,100,125,150"), dict(filters="50,100,150,200,200,200,200")

# Kim et al. 2016, section 4 and table 2, small: a softmax over words, one highway layer, 25 epochs, dropout between
# layers and before the softmax. They halve the learning rate if the perplexity falls by less than 1. Their code
# (util/BatchLoaderUnk.lua) spells `<unk>` as one symbol.
KIM = dict(
    subwords="chars", reuse="plain", highways=1, subword_dim=15, size=300, hidden=300, init=0.05, clip=5.0, lr=1.0,
    epochs=25, decay=2.0, schedule="plateau", min_gain=1.0, keep="best", steps=35,
    drop_emb=0.0, drop_layer=0.5, drop_out=0.5, atomic_unk=True,
)  # fmt: skip

# Zilly et al. 2017: rhn_train.py, class Config of ptb_sota; --init_bias -2 of the transform gates. Tied, with an output
# bias. One input mask, one state mask, word types, and the output.
RHN = dict(
    cell="rhn", depth=10, layers=1, size=830, hidden=830, tying="tied", init=0.04, transform_bias=-2.0,
    weight_decay=0.0, drop_word=0.25, drop_emb=0.75, drop_layer=0.75, drop_state=0.25, drop_out=0.75,
    lr=0.2, decay=1.02, decay_after=20, clip=10.0, l2=1e-7, epochs=500, steps=35, keep="best",
)  # fmt: skip

# Gulordava et al. 2018, section 3.2, on PyTorch's examples/word_language_model (2018): embeddings in +-.1, decoder
# bias 0, LSTM and linear layers in +-1/sqrt(n). The paper tuned dropout (appendix A); the rates here are our choice.
GULORDAVA = dict(
    loss_scale="mean", schedule="plateau", lr=20.0, clip=0.25, decay=4.0, epochs=40, batch=20, steps=35, keep="best",
    dropout_kind="standard", init=0.1, init_bias="lstm", forget_bias=0.0, sessions=1, layers=2,
)  # fmt: skip
WIKI = dict(batch=128, max_vocab=50_000)


def gulordava(hidden, emb, p, **more):
    return {**GULORDAVA, "hidden": hidden, "size": emb, "init_lstm": hidden**-0.5, "drop_emb": p, "drop_layer": p,
            "drop_out": p, **more}  # fmt: skip


# Merity et al. 2018, section 5, and awd-lstm-lm (README, main.py): dropouti, dropouth, dropout, dropoute, wdrop, alpha,
# beta; averaging after 5 epochs without improvement; sequence lengths around 70; embeddings in +-.1, decoder bias 0,
# LSTM layers in +-1/sqrt(n).
MERITY = dict(
    size=400, layer_widths="1150,1150,400", dropout_kind="locked", drop_word=0.1, drop_out=0.4, drop_weights=0.5,
    mask_sharing="example", ar=2.0, tar=1.0, optimizer="nt-asgd", nonmono=5, lr=30.0, clip=0.25,
    lr_weight_decay=1.2e-6, weight_decay=0.0, l2=0.0, loss_scale="mean", steps=70, random_steps=True,
    schedule="constant", decay=4.0, keep="best", sessions=1, eval_batch=10, init=0.1, init_bias="lstm",
    init_by_width=True, forget_bias=0.0, output_bias=True,
)  # fmt: skip

# Ours: docs/results.md.
DAY = dict(
    layer_widths="768,768,400", drop_weights=0.4, drop_emb=0.35, drop_layer=0.2, batch=20, epochs=250, tying="tied"
)  # fmt: skip

PAPERS = {
    "zaremba-small": {**ZAREMBA, **SMALL, **NONE},
    "zaremba-medium": {**ZAREMBA, **MEDIUM, **HALF},
    "zaremba-large": {**ZAREMBA, **LARGE, **MOST},
    "press-wolf-small": {**ZAREMBA, **SMALL, **NONE},  # section 4.2: "the same hyperparameters as in Zaremba et al."
    "press-wolf-large": {**ZAREMBA, **LARGE, **MOST},
    "gal-medium": {**ZAREMBA, **MEDIUM, **GAL},
    "gal-large": {**ZAREMBA, **LARGE, **GAL, "decay_after": 11},
    "inan-small": {**ZAREMBA, **SMALL, **INAN, **DROP[0.3], "decay": 1 / 0.9, "decay_after": 5, "clip": 5.0},
    "inan-medium": {**ZAREMBA, **MEDIUM, **INAN, **DROP[0.5], "decay": 1 / 0.9, "decay_after": 10, "clip": 5.0},
    "inan-large": {**ZAREMBA, **LARGE, **INAN, **DROP[0.65], "decay": 1 / 0.97, "decay_after": 1, "clip": 6.0},
    "inan-small-wt2": {**ZAREMBA, **SMALL, **INAN, **DROP[0.2], "decay": 1 / 0.9, "decay_after": 5, "clip": 5.0},
    "inan-medium-wt2": {**ZAREMBA, **MEDIUM, **INAN, **DROP[0.4], "decay": 1 / 0.9, "decay_after": 10, "clip": 5.0},
    "assylbekov-word-small": {**ZAREMBA, **SMALL, **WORD, **DROP[0.3], "lr": 1.0, "decay_after": 5},
    "assylbekov-word-medium": {**ZAREMBA, **MEDIUM, **WORD, **DROP[0.5], "lr": 0.7, "decay_after": 10},
    "assylbekov-morphs-small": {**ZAREMBA, **SMALL, **WORD, **DROP[0.3], **MORPHS},
    "assylbekov-morphs-medium": {**ZAREMBA, **MEDIUM, **WORD, **DROP[0.5], **MORPHS},
    "assylbekov-syllables-small": {**ZAREMBA, **SMALL, **WORD, **DROP[0.3], **SYLLABLES, **NARROW},
    "assylbekov-syllables-medium": {**ZAREMBA, **MEDIUM, **WORD, **DROP[0.5], **SYLLABLES, **WIDE},
    "assylbekov-chars-small": {**ZAREMBA, **SMALL, **WORD, **DROP[0.3], **CHARS, **FEW},
    "assylbekov-chars-medium": {**ZAREMBA, **MEDIUM, **WORD, **DROP[0.5], **CHARS, **MANY},
    "kim-small": {**ZAREMBA, **KIM, **FEW},
    "awd-ptb": {**MERITY, "drop_emb": 0.4, "drop_layer": 0.25, "batch": 20, "epochs": 500},
    "awd-wt2": {**MERITY, "drop_emb": 0.65, "drop_layer": 0.2, "batch": 80, "epochs": 750},
    "day": {**MERITY, **DAY},
    "rhn-ptb": {**ZAREMBA, **GAL, **RHN},
    "gulordava-200-200": gulordava(200, 200, 0.3),
    "gulordava-400-200": gulordava(400, 200, 0.4),
    "gulordava-400-400": gulordava(400, 400, 0.4),
    "gulordava-600-400": gulordava(600, 400, 0.5),
    "gulordava-600-600": gulordava(600, 600, 0.5),
    "gulordava-wiki-600-300": gulordava(600, 300, 0.2, **WIKI),
    "gulordava-wiki-600-600": gulordava(600, 600, 0.2, **WIKI),
}


def defaults():
    fields = {f.name: f.default for kind in (LstmConfig, Training) for f in dataclasses.fields(kind)}
    return fields | {"layers": LstmConfig().layers}


def test_presets_have_sources_and_settings_derive_from_others():
    assert PAPERS.keys() == PRESETS.keys()
    config = LstmConfig(size=7, layer_widths="5,6,7,8")
    assert (config.layers, config.hidden, config.units) == (4, 8, [5, 6, 7, 8])
    assert dataclasses.replace(config, seed=2).units == config.units and LstmConfig(hidden=9).units == [9, 9]
    config = LstmConfig(size=30, init=0.2)
    assert (config.hidden, config.init_lstm) == (30, 0.2)
    assert dataclasses.replace(config, size=40).hidden == 30  # set when first constructed
    single_layer = LstmConfig(dropout_kind="variational", drop_state=0.3, drop_out=0.3, layers=1)
    assert single_layer.rates == dict(word=0, emb=0, layer=0, state=0.3, out=0.3)
    no_state_dropout = LstmConfig(dropout_kind="variational", drop_layer=0.2, drop_out=0.3)
    assert no_state_dropout.rates == dict(word=0, emb=0, layer=0.2, state=0, out=0.3)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_match_the_papers(name):
    values, paper = PRESETS[name][1], PAPERS[name]
    assert values.keys() <= paper.keys(), "values without a source"
    for option, expected in paper.items():
        found = values[option] if option in values else defaults()[option]
        close = pytest.approx(expected, rel=1e-4) if isinstance(expected, float) else expected
        assert found == close, f"{option} is {found}, but {expected} in the paper"
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


@pytest.mark.parametrize("hidden, emb, tying, V, millions", [
    (200, 200, "untied", 10_000, "4.65"), (200, 200, "tied", 10_000, "2.65"), (650, 650, "untied", 10_000, "19.8"),
    (650, 650, "tied", 10_000, "13.3"), (1500, 1500, "untied", 10_000, "66.0"), (1500, 1500, "tied", 10_000, "51.0"),
    (200, 200, "linear", 10_000, "2.69"), (400, 200, "linear", 10_000, "4.34"), (600, 400, "linear", 10_000, "9.5"),
    (600, 600, "linear", 10_000, "12.1"), (600, 300, "linear", 50_000, "20.3"),
])  # fmt: skip
def test_parameter_counts_of_the_papers(hidden, emb, tying, V, millions):
    """Gulordava et al. (tied+L) count PyTorch's two bias vectors per layer; tiedtools has one."""
    config = LstmConfig(size=emb, hidden=hidden, tying=tying)
    n = lstm_params(config, V) + (config.layers * 4 * hidden if tying == "linear" else 0)
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
    refused(lambda: LstmConfig(**options), f"`{named}", kind=Contradiction)
