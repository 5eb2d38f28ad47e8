"""Test the presets of `lstm` against values copied independently from each paper or its code."""

import dataclasses

import pytest

from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.presets import PRESETS
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

# Gulordava et al. 2018, section 4, on PyTorch's examples/word_language_model (2018): embeddings in +-.1, decoder
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


def test_every_preset_has_a_source():
    assert PAPERS.keys() == PRESETS.keys()


@pytest.mark.parametrize("name", PRESETS)
def test_presets_match_the_papers(name):
    values, paper = PRESETS[name][1], PAPERS[name]
    assert values.keys() <= paper.keys(), "values without a source"
    for option, expected in paper.items():
        found = values[option] if option in values else defaults()[option]
        close = pytest.approx(expected, rel=1e-4) if isinstance(expected, float) else expected
        assert found == close, f"{option} is {found}, but {expected} in the paper"
