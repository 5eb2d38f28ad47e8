"""Parts of network configurations: dataclasses whose constructors validate their fields. Imports nothing heavy.

A model's configuration inherits from the parts it needs and adds its own fields. All fields are at one level, with the
names used in files and on command lines.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from tiedtools.base.errors import Contradiction, brief
from tiedtools.base.processor import available_cores
from tiedtools.base.settings import SEEDS, THREADS, Checked, Mistake, Range, checked, one_of, setting

OPTIMIZERS = "sgd", "asgd", "nt-asgd", "adadelta", "adam"
CELLS = {name: f"tiedtools.network.cells:{name.upper()}" for name in ("lstm", "gru", "rhn")}  # name -> module:class
AVERAGING = "asgd", "nt-asgd"
PROBABILITY = Range(0, 1, max_open=True)
# Sites at which each kind of dropout is applied; see Dropout.
SITES = {
    "standard": ("emb", "layer", "out"),
    "variational": ("layer", "state", "out"),
    "gal": ("word", "emb", "layer", "state", "out"),
    "locked": ("word", "emb", "layer", "out"),
}
RATES = {"adadelta": 1.0, "adam": 0.001}  # learning rates of optimizers that hardly depend on the loss scale
DROPOUT = 0.3  # probability at all sites where neither a preset nor the caller says otherwise


def numbers(text: object) -> list[int] | None:
    """Return the numbers, 1 to 100,000, in a text that separates them by commas; None for any other text, or None."""
    parts = str(text).split(",")
    valid = all(part.isdecimal() and len(part) < 7 and 1 <= int(part) <= 10**5 for part in parts)
    return [int(part) for part in parts] if valid else None


def dropout(site: str) -> Any:
    """Declare the setting of the dropout probability of a site."""
    return setting(0.0, PROBABILITY, metavar="P")(f"Dropout probability {site}")


@dataclasses.dataclass(frozen=True)
class Tying(Checked):
    """Weight tying: how the output embeddings depend on the input embeddings.

    With L [n, m] between the top layer and emb_in ("linear"), m and n may differ; "tied" needs m = n. With a projection
    P [n, n], scores are computed from h P + p, and lambda / 2 |P|^2 is added to a window's sum of nats before any
    averaging, as in Press & Wolf's code.
    """

    tying: str = setting("untied", choices=("untied", "tied", "linear"))(
        {
            "tied": "Tie input and output embeddings (Press & Wolf 2017, Inan et al. 2017).",
            "linear": "Tie embeddings, with a linear map L before the output (tied+L; Gulordava et al. 2018).",
        }
    )
    linear_bias: bool = setting(False)("Add a bias to L (with `tying=linear`).")
    linear_dropout: str = setting("before", choices=("before", "after", "both"))(
        "With `tying=linear`, apply output dropout before L, after it, or both."
    )
    projection: float = setting(0.0, Range(0), metavar="LAMBDA")(
        "Add Press & Wolf's projection P before the softmax, and LAMBDA/2 |P|^2 to the summed loss of each batch; 0"
        " disables. Their code has LAMBDA .154, their paper the penalty .15 |P|."
    )
    unit_embeddings: bool = setting(False)("Constrain input embeddings to unit norm (Inan et al., section 6.2).")

    def mistakes(self) -> Iterator[Mistake]:
        linear = self.tying == "linear"
        yield "`linear_bias` is the bias of L: add `tying='linear'`", self.linear_bias and not linear
        problem = "`linear_dropout` is dropout before or after L: add `tying='linear'`"
        yield problem, self.linear_dropout != "before" and not linear
        problem = "`projection` and L of `tying='linear'`, which embeddings of another size than `hidden` imply"
        yield f"{problem}, map the same layer: choose one", self.projection and linear


@dataclasses.dataclass(frozen=True)
class Composition(Checked):
    """Word vectors composed from subwords, at input and output (Kim et al. 2016, Assylbekov & Takhanov 2018)."""

    subwords: str | None = setting(None, choices=(None, "morphs", "syllables", "chars"))(
        "Compose word vectors from subwords: sums of morph embeddings (MorphSum), projections of concatenated syllable"
        " embeddings (SylConcat), or convolutions over characters (CharCNN), and highway layers."
    )
    reuse: str = setting("all", metavar="plain|none|all|LIST")(
        "Output embeddings with `subwords`: a vector per word (plain), or composed like the input embeddings, sharing"
        " no parameters with them (none), all (all), or the layers in LIST, comma-separated, such as emb,hw1."
    )
    subword_dim: int | None = setting(None, Range(1, 10**5))(
        "Dimension of subword embeddings.  [default: `size` for morphs, 50 for syllables, 15 for chars]"
    )
    highway_dim: int | None = setting(None, Range(1, 10**5))(
        "Dimension of composed word vectors.  [default: `size`; for chars, the number of filters]"
    )
    highways: int = setting(2, Range(0, 100))("Number of highway layers.")
    filters: str = setting("25,50,75,100,125,150", metavar="LIST")(
        "Numbers of convolution filters of widths 1, 2, ... (chars)."
    )
    language: str = setting("en_US")("Language of the hyphenation patterns (syllables).")
    segmentation: str | None = setting(None, metavar="FILE")(
        "Read the morphs or syllables of words from FILE: `word subword subword` per line, or Morfessor's text format."
    )
    atomic_unk: bool = setting(False, off=True)("Read `<unk>` as one subword (Kim et al.), not split like other words.")

    @property
    def reusable(self) -> list[str]:
        """Names of the layers that compose a word vector, from the bottom up."""
        project = self.subwords == "syllables" or self.subwords == "morphs" and self.subword_dim != self.highway_dim
        middle = ["cnn"] if self.subwords == "chars" else ["proj"] * project
        return ["emb", *middle, *(f"hw{k + 1}" for k in range(self.highways))] if self.subwords else []

    @property
    def reused(self) -> list[str]:
        """Names of the layers that share their parameters between input and output."""
        return {"all": self.reusable, "none": [], "plain": []}.get(self.reuse, self.reuse.split(","))

    @property
    def widths(self) -> list[int] | None:
        """The numbers of filters."""
        return numbers(self.filters)

    def mistakes(self) -> Iterator[Mistake]:
        for field in dataclasses.fields(Composition)[1:]:
            changed = getattr(self, field.name) != field.default
            yield f"`{field.name}` describes composed word vectors: add `subwords`", changed and not self.subwords
        problem = "`segmentation` has no effect on characters; use morphs or syllables"
        yield problem, self.segmentation and self.subwords == "chars"
        unknown = [name for name in self.reused if name not in self.reusable]
        layers = f"the layers of {self.subwords} are {', '.join(self.reusable)}"
        problem = f"`reuse={self.reuse}` names `{unknown and unknown[0]}`, but {layers}"
        yield f"{problem}; choose from them, or plain, none, or all", unknown and self.subwords
        wrong = not self.widths or len(self.widths) > 50
        yield f"`filters={brief(self.filters)}` must be numbers of filters, separated by commas", wrong
        problem = "`highway_dim` of chars is the number of filters; change `filters`"
        yield problem, self.subwords == "chars" and self.highway_dim != sum(self.widths or [])


@dataclasses.dataclass(frozen=True)
class Dropout(Checked):
    """Dropout: kind, sites, and probabilities.

    SITES lists the sites of each kind. "gal" (Gal & Ghahramani 2016) has separate masks for the state, and drops word
    types. "variational" (Inan) uses the same mask for layers and the state, so drop_state equals the others, or is 0:
    no dropout there. drop_weights combines with all kinds.
    """

    dropout_kind: str = setting("standard", choices=SITES)(
        "standard: a new dropout mask for each token; variational: one per layer, fixed over time (Inan et al.); gal:"
        " one per gate, fixed over time (Gal & Ghahramani); locked: like standard, but fixed over time, with words"
        " dropped for the whole batch (Merity et al.)."
    )
    drop_word: float = dropout("of word types (gal, locked).  [default: `dropout`]")
    drop_emb: float = dropout("of embeddings (standard, gal, locked).  [default: `dropout`]")
    drop_layer: float = dropout("between layers.  [default: `dropout`]")
    drop_state: float = dropout("of the recurrent state (variational, gal).  [default: `dropout`]")
    drop_out: float = dropout("of the top layer's output.  [default: `dropout`]")
    drop_weights: float = dropout("of recurrent weights, one mask per window (weight drop; Merity et al.).")
    mask_sharing: str = setting("example", choices=("example", "batch"))(
        "Masks fixed over time: one for each parallel stream (example), or one for the whole batch (batch)."
    )
    mc_samples: int = setting(0, Range(0), metavar="N")(
        "Monte Carlo dropout (not standard): average test probabilities over N samples of the dropout masks, except"
        " word dropout; 0 disables."
    )

    def mistakes(self) -> Iterator[Mistake]:
        rates = self.rates
        sampled = [self.drop_weights, *(rate for site, rate in rates.items() if site != "word")]
        for site, rate in rates.items():
            kinds = [kind for kind in SITES if site in SITES[kind]]
            problem = f"`drop_{site}` does not apply to {self.dropout_kind} dropout"
            remedy = f"set `dropout_kind={' or '.join(kinds)}`"
            yield f"{problem}: {remedy}", rate and self.dropout_kind not in kinds
        needed = "`dropout_kind=variational, gal, or locked` and a rate other than `drop_word`"
        problem = f"`mc_samples` averages over masks constant over time, so it needs {needed}"
        wrong = self.mc_samples and (self.dropout_kind == "standard" or not any(sampled))
        yield f"{problem}; set it to 0 otherwise", wrong

    @property
    def rates(self) -> dict[str, float]:
        """The dropout probability of each site."""
        return {site: getattr(self, f"drop_{site}") for site in SITES["gal"]}


@dataclasses.dataclass(frozen=True)
class Loss(Checked):
    """The training objective.

    The augmented loss of Inan et al. adds gamma tau KL(softmax(E e_t / tau) || softmax(z / tau)). Sampled softmax draws
    log-uniformly, and corrects for it. `ar` and `tar` are on the scale "mean".
    """

    output_bias: bool = setting(True)(
        {False: "Omit the bias of the softmax layer (with `tying=tied`: model RE of Inan et al.)."}
    )
    augment: float = setting(0.0, Range(0), metavar="GAMMA")(
        "Weight of the augmented loss of Inan et al. (their values: .5 to 1.5); 0 disables."
    )
    augment_share: float = setting(0.0, Range(0, 1), metavar="BETA")(
        "Alternative to `augment`: minimize BETA tau^2 V KL + (1 - BETA) cross entropy (Inan et al., equation 6.1); 0"
        " disables."
    )
    tau: float = setting(20.0, Range(0, min_open=True))("Softmax temperature tau of the augmented loss.")
    detach: bool = setting(False)("Stop gradients through the soft target of the augmented loss.")
    sampled: int = setting(0, Range(0), metavar="N")(
        "Train with sampled softmax over the target and N sampled words; 0: full softmax."
    )
    loss_scale: str = setting("mean", choices=("mean", "sum"))(
        "Mean over tokens, or sum over time of the mean over streams. sum is `steps` times as large: choose `lr` and"
        " `clip` to match."
    )
    ar: float = setting(0.0, Range(0))(
        "Weight of activation regularization: mean square of the top layer's output, after dropout (Merity et al.: 2)."
    )
    tar: float = setting(0.0, Range(0))(
        "Weight of temporal activation regularization: mean square of the output's change from step to step, before"
        " dropout (Merity et al.: 1)."
    )

    def mistakes(self) -> Iterator[Mistake]:
        augmented = self.augment or self.augment_share
        yield "`sampled` computes some scores, but `augment` needs all of them: choose one", self.sampled and augmented
        yield "`augment` and `augment_share` weight the same loss: choose one", self.augment and self.augment_share


@dataclasses.dataclass(frozen=True)
class Optimization(Checked):
    """Optimizer (asgd, nt-asgd: Merity et al. 2018; adadelta: Zeiler 2012; adam: Kingma & Ba 2015) and weight decay.

    Weight decay applies to all parameters, including parameters without a gradient in this step. Learning rate and
    clipping are training settings.
    """

    optimizer: str = setting("sgd", choices=OPTIMIZERS)(
        "asgd: SGD that scores and saves the average of the parameters after each step; nt-asgd: asgd once validation"
        " stops improving (see `nonmono`). Both imply `schedule=constant`."
    )
    nonmono: int = setting(5, Range(1, 10**6), metavar="N")(
        "With `optimizer=nt-asgd`, begin to average after an epoch whose validation loss exceeds the lowest loss"
        " of the epochs more than N before."
    )
    average_after: int = setting(0, Range(0, 10**6), metavar="N")(
        "With `optimizer=nt-asgd`, begin to average after N epochs at the latest; 0: see `nonmono`."
    )
    l2: float = setting(0.0, Range(0), metavar="L")(
        "Weight decay in the loss: add L/2 |parameters|^2 to the objective, before clipping (Zilly et al.)."
    )
    lr_weight_decay: float = setting(0.0, Range(0))(
        "Weight decay times `lr`: fraction of the learning rate by which weights shrink per step, after clipping (as in"
        " PyTorch's SGD and AdamW; Merity et al.: 1.2e-6)."
    )
    weight_decay: float = setting(0.0, Range(0, 1))(
        "Fraction by which weights shrink per step, independent of `lr` (Gal & Ghahramani)."
    )

    @property
    def averages(self) -> bool:
        """Whether the optimizer averages parameters."""
        return self.optimizer in AVERAGING


@dataclasses.dataclass(frozen=True)
class Computation(Checked):
    """How a model is computed. With precision "bfloat16", sums, parameters, and scoring stay float32."""

    seed: int = setting(1, SEEDS)("Random seed.")
    threads: int = setting(1, THREADS)("Number of training threads.  [default: all cores]")
    precision: str | None = setting("float32", choices=(None, "float32", "bfloat16"))(
        "Precision of matrix products in training.  [default: bfloat16 on AMD CPUs since Zen 4 and Intel Xeon since"
        " Sapphire Rapids, float32 on others; when resuming, that of the checkpoint]"
    )
    dtype: str = setting("float32", choices=("float32", "float64"), hidden=True)(
        "Type of everything but these products."
    )

    def mistakes(self) -> Iterator[Mistake]:
        wrong = self.precision == "bfloat16" and self.dtype != "float32"
        yield "`precision='bfloat16'` requires `dtype='float32'`", wrong


@dataclasses.dataclass(frozen=True)
class Shorthands(Checked):
    """Settings that stand for several others."""

    preset: str | None = setting(None, metavar="NAME")(
        "Use a paper's settings; options given explicitly override them. `help` lists the presets."
    )
    dropout: float | None = setting(None, PROBABILITY, metavar="P")(
        "Dropout probability at all sites, not of weights; `drop_emb`, `drop_out`, and others set it for one site."
    )


def documented_defaults(sites: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return defaults that `chosen` sets, by name, for documentation; None: they depend on others, or the computer."""
    computed = ["threads", "precision", *(f"drop_{site}" for names in sites.values() for site in names)]
    return {**dict.fromkeys(computed), "dropout": DROPOUT}


def chosen(
    options: dict[str, Any], defaults: Mapping[str, Any], presets: Mapping[str, tuple[str, Mapping[str, Any]]],
    rates: dict[str, float], sites: Mapping[str, tuple[str, ...]],
) -> dict[str, Any]:  # fmt: skip
    """Return the settings of a run that differ from the defaults of fields.

    Precedence, from lowest to highest: defaults of the family, preset, implications of a chosen setting, caller.

    options   the settings that the caller chose, by name
    defaults  the model family's defaults, where they differ from the defaults of the fields
    presets   name -> (source, settings); dropout sites that a preset omits are 0
    rates     learning rates that optimizers imply
    sites     dropout kind -> its sites
    """
    preset, dropout = options.get("preset"), options.get("dropout")
    if preset is not None:
        one_of("preset", preset, list(presets))
    checked("dropout", dropout, float | None, PROBABILITY)
    values = {"precision": None, **defaults, **(presets[preset][1] if preset else {})}
    sited = {f"drop_{site}" for names in sites.values() for site in names}  # None: computed below
    computed = {"preset", "dropout", *(name for name in sited if options.get(name) is None)}
    caller = {name: value for name, value in options.items() if name not in computed}
    if caller.get("threads") is None:
        caller["threads"] = available_cores()

    implied: dict[str, Any] = {}
    optimizer = checked("optimizer", caller.get("optimizer", values.get("optimizer")), str | None)
    if optimizer != values.get("optimizer"):
        implied |= {"lr": rates[optimizer]} if optimizer in rates else {}
        # With a falling rate, the parameters to average would hardly move.
        implied |= {"schedule": "constant"} if optimizer in AVERAGING else {}

    before = values.get("dropout_kind", "standard")
    kind = checked("dropout_kind", caller.get("dropout_kind", before), str)
    for name in sited:
        if name.removeprefix("drop_") not in sites.get(kind, ()):
            implied[name] = 0.0
        elif dropout is not None:
            implied[name] = dropout
        elif kind == before:
            implied[name] = values.get(name, 0.0 if preset else DROPOUT)
        else:
            implied[name] = values.get("drop_out", DROPOUT)
    return values | implied | caller


def check_averages(config: Any, training: Any) -> None:
    """Raise Contradiction for an average of parameters over several sessions, or to which training would return."""
    halving = training.schedule == "halving"
    for remedy, conflict in ("set `sessions=1`", training.sessions > 1), ("omit `schedule=halving`", halving):
        if config.averages and conflict:
            problem = f"`optimizer={config.optimizer}` averages the parameters of a single training"
            raise Contradiction(f"{problem}: {remedy}, or choose another `optimizer`")
