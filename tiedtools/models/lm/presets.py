"""Presets of `tiedtools lm`: settings of rows in the papers' tables. Imports nothing heavy.

Except for `rhn-ptb` and `day`, a preset does not set tying, augmented loss, or projection regularization, since the
tables have rows with and without them. Values that a paper does not give are marked "ours". `decay_after` counts full
epochs at the initial learning rate: Zaremba's code, in Torch and in TensorFlow, reduces it one epoch later than the
paper says, and so do Press & Wolf and Gal, whose code is based on it. They test the model of the last epoch.
"""

import math
from typing import Any

ZAREMBA = dict(loss_scale="sum", schedule="decay", lr=1.0, batch=20, steps=35, dropout_kind="standard", keep="last")
ZAREMBA_SMALL = dict(
    **{**ZAREMBA, "steps": 20}, size=200, hidden=200, init=0.1, clip=5.0, epochs=13, decay=2.0, decay_after=5
)
ZAREMBA_MEDIUM = dict(**ZAREMBA, size=650, hidden=650, init=0.05, clip=5.0, epochs=39, decay=1.2, decay_after=7)
ZAREMBA_LARGE = dict(**ZAREMBA, size=1500, hidden=1500, init=0.04, clip=10.0, epochs=55, decay=1.15, decay_after=15)


def standard(p: float) -> dict[str, Any]:
    return dict(drop_emb=p, drop_layer=p, drop_out=p)


def variational(p: float) -> dict[str, Any]:
    return dict(dropout_kind="variational", drop_layer=p, drop_state=p, drop_out=p)


def gal(size: dict[str, Any], **training: Any) -> dict[str, Any]:
    rates = dict(dropout_kind="gal", drop_word=0.3, drop_emb=0.5, drop_layer=0.5, drop_state=0.3, drop_out=0.5)
    return {**size, **rates, "weight_decay": 1e-7, **training}


def gulordava(hidden: int, emb: int, p: float, **data: Any) -> dict[str, Any]:
    """Return the settings of PyTorch's word_language_model (spring 2018), which Gulordava et al. extend.

    Its LSTM has two bias vectors, ours one.
    """
    start = dict(init=0.1, init_lstm=round(1 / math.sqrt(hidden), 6), init_bias="lstm")
    recipe = dict(loss_scale="mean", schedule="plateau", lr=20.0, clip=0.25, decay=4.0, epochs=40, batch=20, steps=35)
    return {"hidden": hidden, "size": emb, **start, "dropout_kind": "standard", **standard(p), **recipe, **data}


def inan(size: dict[str, Any], p: float, decay: float, decay_after: int, clip: float) -> dict[str, Any]:
    """Return settings with the dropout of Inan et al., appendix A (they give keep probabilities).

    Epochs, batch, and init are ours.
    """
    training = dict(decay=decay, decay_after=decay_after, clip=clip, epochs=70, steps=35, keep="best", restart="last")
    return {**size, **variational(p), **training}


def assylbekov(size: dict[str, Any], p: float, lr: float, decay_after: int) -> dict[str, Any]:
    """Return the word-level settings of Assylbekov & Takhanov 2018, appendix A, with their code's masks and biases."""
    start = dict(init_bias="zero", forget_bias=1.0, mask_sharing="batch")
    training = dict(lr=lr, decay=1 / 0.9, decay_after=decay_after, clip=5.0, epochs=70, steps=35, keep="best")
    return {**size, **variational(p), **start, **training}


MORPHS = dict(subwords="morphs", reuse="all", highways=2)
# The clip is ours: the gradient norm that the authors clip at 5 includes the vectors of padding, which are never
# updated and at first dominate the norm. Without padding, a threshold of 5 clips too little, except with --reuse plain.
SYLLABLES = dict(subwords="syllables", reuse="all", highways=2, subword_dim=50, highway_dim=200, clip=2.0)
CHARS = dict(subwords="chars", reuse="all", highways=2, subword_dim=15, filters="25,50,75,100,125,150", clip=2.0)
REUSING_SMALL, REUSING_MEDIUM = assylbekov(ZAREMBA_SMALL, 0.3, 0.7, 10), assylbekov(ZAREMBA_MEDIUM, 0.5, 0.7, 10)
REUSE = "RE+RW; add --reuse plain for the original, emb for RE, "


def merity(**data: Any) -> dict[str, Any]:
    """Return the settings of AWD-LSTM, Merity et al. 2018, as in their code (2018), whose LSTM has two bias vectors."""
    sizes = dict(size=400, layer_widths="1150,1150,400", init=0.1, init_by_width=True, init_bias="lstm")
    rates = dict(dropout_kind="locked", drop_word=0.1, drop_out=0.4, drop_weights=0.5, ar=2.0, tar=1.0)
    optimizer = dict(optimizer="nt-asgd", nonmono=5, lr=30.0, clip=0.25, lr_weight_decay=1.2e-6, loss_scale="mean")
    training = dict(schedule="constant", decay=4.0, steps=70, random_steps=True, keep="best", eval_batch=10)
    return {**sizes, **rates, **optimizer, **training, **data}


# Ours, for a working day (8 hours) on two cores of an Intel Xeon with matrix units. Trials: docs/results/day.json.
DAY = dict(
    merity(drop_emb=0.35, drop_layer=0.2, batch=20, epochs=250),
    tying="tied", layer_widths="768,768,400", drop_weights=0.4
)  # fmt: skip

# Kim et al. 2016, section 4; their code has one symbol for `<unk>`.
KIM = dict(schedule="plateau", min_gain=1.0, keep="best", clip=5.0, epochs=25, decay=2.0, init=0.05)
DROPOUT = dict(drop_emb=0.0, drop_layer=0.5, drop_out=0.5)
KIM_CHARS = {**CHARS, "reuse": "plain", "highways": 1, "atomic_unk": True}
KIM_SMALL = {**ZAREMBA, **KIM_CHARS, **KIM, "size": 300, "hidden": 300, **DROPOUT}

# Zilly et al. 2017: ptb_sota of their TensorFlow code.
RHN_PTB = dict(
    cell="rhn", depth=10, layers=1, size=830, hidden=830, tying="tied", init=0.04, transform_bias=-2.0,
    dropout_kind="gal", drop_word=0.25, drop_emb=0.75, drop_layer=0.75, drop_state=0.25, drop_out=0.75,
    loss_scale="sum", schedule="decay", lr=0.2, decay=1.02, decay_after=20, clip=10.0, l2=1e-7, epochs=500,
    batch=20, steps=35, keep="best"
)  # fmt: skip

# paper -> {name: (what it is in the paper, options)}
PAPERS = {
    "Zaremba et al. 2014": {
        "zaremba-small": (", small", ZAREMBA_SMALL | standard(0.0)),
        "zaremba-medium": (", medium", ZAREMBA_MEDIUM | standard(0.5)),
        "zaremba-large": (", large", ZAREMBA_LARGE | standard(0.65)),
    },
    "Gal & Ghahramani 2016": {
        "gal-medium": (" at Zaremba's medium size; dropout as in their large model (ours)", gal(ZAREMBA_MEDIUM)),
        "gal-large": (
            ", large, as in their code; add --mc-samples 1000 for Monte Carlo dropout",
            gal(ZAREMBA_LARGE, decay_after=11),
        ),
    },
    "Press & Wolf 2017, table": {
        "press-wolf-small": (" 6, small; add --tie and/or --projection .154", ZAREMBA_SMALL | standard(0.0)),
        "press-wolf-large": (" 5, large; add --tie", ZAREMBA_LARGE | standard(0.65)),
    },
    "Inan et al. 2017, ": {
        "inan-small": (
            "table 1, small; add --augment .65, --tie (also --no-output-bias in the paper), --sessions 2",
            inan(ZAREMBA_SMALL, 0.3, 1 / 0.9, 5, 5.0),
        ),
        "inan-medium": ("table 1, medium", inan(ZAREMBA_MEDIUM, 0.5, 1 / 0.9, 10, 5.0)),
        "inan-large": ("table 1, large", inan(ZAREMBA_LARGE, 0.65, 1 / 0.97, 1, 6.0)),
        "inan-small-wt2": (
            "Wikitext-2, small; add --augment 1.25, --tie, --no-output-bias",
            inan(ZAREMBA_SMALL, 0.2, 1 / 0.9, 5, 5.0),
        ),
        "inan-medium-wt2": ("Wikitext-2, medium", inan(ZAREMBA_MEDIUM, 0.4, 1 / 0.9, 10, 5.0)),
    },
    "Assylbekov & Takhanov 2018, table 2, ": {
        "assylbekov-word-small": ("Word, small; add --tie for Word+RE", assylbekov(ZAREMBA_SMALL, 0.3, 1.0, 5)),
        "assylbekov-word-medium": ("Word, medium; add --tie for Word+RE", assylbekov(ZAREMBA_MEDIUM, 0.5, 0.7, 10)),
        "assylbekov-morphs-small": (f"MorphSum, small, {REUSE}hw1,hw2 for RW", REUSING_SMALL | MORPHS),
        "assylbekov-morphs-medium": ("MorphSum, medium, RE+RW", REUSING_MEDIUM | MORPHS),
        "assylbekov-syllables-small": (
            f"SylConcat, small, {REUSE.replace('plain', 'plain --clip 5')}hw1,hw2 for RW",
            REUSING_SMALL | SYLLABLES,
        ),
        "assylbekov-syllables-medium": (
            "SylConcat, medium, RE+RW; add --lr .5 with --reuse none or hw1,hw2",
            REUSING_MEDIUM | SYLLABLES | dict(subword_dim=200, highway_dim=800),
        ),
        "assylbekov-chars-small": (
            f"CharCNN, small, {REUSE}cnn,hw1,hw2 for RW",
            assylbekov(ZAREMBA_SMALL, 0.3, 0.5, 12) | CHARS,
        ),
        "assylbekov-chars-medium": (
            "CharCNN, medium, RE+RW",
            assylbekov(ZAREMBA_MEDIUM, 0.5, 0.5, 12) | CHARS | dict(filters="50,100,150,200,200,200,200"),
        ),
    },
    "Kim et al. 2016, table 2, LSTM-Char-Small": {"kim-small": ("", KIM_SMALL)},
    "Merity et al. 2018, table ": {
        "awd-ptb": (
            "1, AWD-LSTM; add --tie, or --subwords morphs --drop-word 0 for Assylbekov & Takhanov's MorphSum",
            merity(drop_emb=0.4, drop_layer=0.25, batch=20, epochs=500),
        ),
        "awd-wt2": (
            "2, AWD-LSTM on WikiText-2; add --tie",
            merity(drop_emb=0.65, drop_layer=0.2, batch=80, epochs=750),
        ),
    },
    "ours": {
        "day": (": AWD-LSTM for 8 hours on two cores with matrix units, tied; 14.2M parameters on Penn Treebank", DAY)
    },
    "Zilly et al. 2017": {"rhn-ptb": (", table 1, Variational RHN + WT, depth 10, as in their code", RHN_PTB)},
    "Gulordava et al. 2018": {
        f"gulordava-{n}-{m}": (f", table 1, PTB, {n}/{m}; dropout: ours", gulordava(n, m, p))
        for n, m, p in [(200, 200, 0.3), (400, 200, 0.4), (400, 400, 0.4), (600, 400, 0.5), (600, 600, 0.5)]
    }
    | {
        f"gulordava-wiki-{n}-{m}": (
            f", table 2, Wikipedia, {n}/{m}; dropout, batch: ours",
            gulordava(n, m, 0.2, batch=128, max_vocab=50_000),
        )
        for n, m in [(600, 300), (600, 600)]
    },
}
# name -> (source, options)
PRESETS = {name: (paper + what, options) for paper, rows in PAPERS.items() for name, (what, options) in rows.items()}
