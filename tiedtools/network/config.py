"""Parts of network configurations: dataclasses whose constructors validate their fields. Imports nothing heavy.

A model's configuration inherits from the parts it needs and adds its own fields. All fields are at one level, with the
names used in files and on command lines.
"""

import dataclasses
from typing import Any, ClassVar

from tiedtools.base.errors import Contradiction, brief
from tiedtools.base.processor import available_cores
from tiedtools.base.settings import SEEDS, THREADS, Checked, Range, checked

OPTIMIZERS = "sgd", "asgd", "nt-asgd", "adadelta", "adam"
AVERAGING = "asgd", "nt-asgd"
PROBABILITY = Range(0, 1, max_open=True)
# Sites at which each kind of dropout is applied; see Dropout.
SITES = {
    "standard": ("emb", "layer", "out"),
    "variational": ("layer", "state", "out"),
    "gal": ("word", "emb", "layer", "state", "out"),
    "locked": ("word", "emb", "layer", "out"),
}


def numbers(text):
    """Return the numbers, 1 to 100,000, in a text that separates them by commas; None for any other text, or None."""
    parts = str(text).split(",")
    valid = all(part.isdecimal() and len(part) < 7 and 1 <= int(part) <= 10**5 for part in parts)
    return [int(part) for part in parts] if valid else None


@dataclasses.dataclass(frozen=True)
class Tying(Checked):
    """Weight tying: how the output embeddings depend on the input embeddings.

    tying           "untied"; "tied" (Press & Wolf 2017, Inan et al. 2017): emb_out is emb_in, m = n; or "linear"
                    (tied+L, Gulordava et al. 2018): L [n, m] between the top layer and emb_in, any m and n
    linear_bias     L has a bias; linear_dropout: dropout "before" L, "after" it, or at "both" sites
    projection      lambda of Press & Wolf's projection regularization: scores are computed from h P + p, P [n, n], and
                    lambda / 2 |P|^2 is added to a window's sum of nats before any averaging, as in their code (.154;
                    their paper has .15 |P|); 0: no P
    unit_embeddings rows of emb_in have norm 1, at the start and after each step (Inan et al., section 6.2)
    """

    tying: str = "untied"
    linear_bias: bool = False
    linear_dropout: str = "before"
    projection: float = 0.0
    unit_embeddings: bool = False

    choices: ClassVar[dict] = {"tying": ("untied", "tied", "linear"), "linear_dropout": ("before", "after", "both")}
    ranges: ClassVar[dict] = {"projection": Range(0)}

    def mistakes(self):
        """See Checked."""
        linear = self.tying == "linear"
        yield "`linear_bias` is the bias of L: add `tying='linear'`", self.linear_bias and not linear
        yield (
            "`linear_dropout` is dropout before or after L: add `tying='linear'`",
            self.linear_dropout != "before" and not linear,
        )
        yield "`projection` and `tying='linear'` map the same layer: choose one", self.projection and linear


@dataclasses.dataclass(frozen=True)
class Composition(Checked):
    """Word vectors composed from subwords, at input and output (Kim et al. 2016, Assylbekov & Takhanov 2018).

    subwords        "morphs": sums of morph embeddings; "syllables": projections of concatenated syllable embeddings;
                    "chars": convolutions over characters; each followed by highway layers. None: a vector per word
    reuse           "plain": the output embeddings are a vector per word; "none": composed like the input embeddings,
                    with parameters of their own; "all": by the same parameters; or the layers whose parameters are the
                    same, separated by commas: those of `reusable`
    subword_dim     dimension of subword embeddings; None: `size` for morphs, 50 for syllables, 15 for chars
    highway_dim     dimension of composed vectors; None: `size`, and for chars the number of filters
    highways        number of highway layers
    filters         numbers of filters of widths 1, 2, ... (chars), separated by commas
    language        language of the syllabification
    segmentation    file with the segmentation of words; None: learned from the vocabulary
    atomic_unk      `<unk>` is one subword, as in Kim et al.'s code; otherwise it is split like any word
    """

    subwords: str | None = None
    reuse: str = "all"
    subword_dim: int | None = None
    highway_dim: int | None = None
    highways: int = 2
    filters: str = "25,50,75,100,125,150"
    language: str = "en_US"
    segmentation: str | None = None
    atomic_unk: bool = False

    choices: ClassVar[dict] = {"subwords": (None, "morphs", "syllables", "chars")}
    ranges: ClassVar[dict] = {
        "subword_dim": Range(1, 10**5),
        "highway_dim": Range(1, 10**5),
        "highways": Range(0, 100),
    }

    @property
    def reusable(self):
        """Names of the layers that compose a word vector, from the bottom up."""
        project = self.subwords == "syllables" or self.subwords == "morphs" and self.subword_dim != self.highway_dim
        middle = ["cnn"] if self.subwords == "chars" else ["proj"] * project
        return ["emb", *middle, *(f"hw{k + 1}" for k in range(self.highways))] if self.subwords else []

    @property
    def reused(self):
        """Names of the layers whose parameters are the same at input and output."""
        return {"all": self.reusable, "none": [], "plain": []}.get(self.reuse, self.reuse.split(","))

    @property
    def widths(self):
        """The numbers of filters as a list."""
        return numbers(self.filters)

    def mistakes(self):
        """See Checked."""
        for field in dataclasses.fields(Composition)[1:]:
            given = getattr(self, field.name) != field.default
            yield f"`{field.name}` describes composed word vectors: add `subwords`", given and not self.subwords
        unknown = [name for name in self.reused if name not in self.reusable]
        yield (
            f"`reuse={self.reuse}` names `{unknown and unknown[0]}`, but the layers of {self.subwords} are"
            f" {', '.join(self.reusable)}; choose from them, or plain, none, or all",
            unknown and self.subwords,
        )
        wrong = not self.widths or len(self.widths) > 50
        yield f"`filters={brief(self.filters)}` must be numbers of filters, separated by commas", wrong
        yield (
            "`highway_dim` of chars is the number of filters; change `filters`",
            self.subwords == "chars" and self.highway_dim != sum(self.widths),
        )


@dataclasses.dataclass(frozen=True)
class Dropout(Checked):
    """Dropout: kind, sites, and probabilities.

    dropout_kind    "standard": a new mask for each token (Zaremba); "variational": one mask per layer, constant over
                    time, for its output to the next layer and to the next time step (Inan); "gal": masks constant over
                    time, one per layer and gate, separate ones for the state, and word types (Gal & Ghahramani 2016);
                    "locked": masks constant over time at the sites of "standard", and word types, always for the whole
                    batch (Merity et al. 2018)
    drop_word, drop_emb, drop_layer, drop_state, drop_out
                    dropout probabilities of word types; the embedding; connections between layers; the recurrent
                    state; the output of the top layer. SITES lists those that each kind has. "variational" uses the
                    same mask for layers and the state, so drop_state equals the others, or is 0: no dropout there
    drop_weights    dropout probability of the elements of recurrent weight matrices, with a mask for each window
                    (weight drop, Merity et al.); combines with all kinds
    mask_sharing    masks constant over time are drawn per "example", or once for the whole "batch"
    mc_samples      number of mask samples over which testing averages probabilities (Monte Carlo dropout, Gal); 0: none
    """

    dropout_kind: str = "standard"
    drop_word: float = 0.0
    drop_emb: float = 0.0
    drop_layer: float = 0.0
    drop_state: float = 0.0
    drop_out: float = 0.0
    drop_weights: float = 0.0
    mask_sharing: str = "example"
    mc_samples: int = 0

    choices: ClassVar[dict] = {"dropout_kind": tuple(SITES), "mask_sharing": ("example", "batch")}
    ranges: ClassVar[dict] = {f"drop_{site}": PROBABILITY for site in (*SITES["gal"], "weights")} | {
        "mc_samples": Range(0)
    }

    def mistakes(self):
        """See Checked."""
        rates = self.rates
        sampled = [self.drop_weights, *(rate for site, rate in rates.items() if site != "word")]
        for site, rate in rates.items():
            kinds = [kind for kind in SITES if site in SITES[kind]]
            yield (
                f"`drop_{site}` does not apply to {self.dropout_kind} dropout: set `dropout_kind={' or '.join(kinds)}`",
                rate and self.dropout_kind not in kinds,
            )
        yield (
            "`mc_samples` averages over masks constant over time, so it needs `dropout_kind=variational, gal, or"
            " locked` and a rate other than `drop_word`",
            self.mc_samples and (self.dropout_kind == "standard" or not any(sampled)),
        )

    @property
    def rates(self):
        """The dropout probabilities, a dict: site -> probability."""
        return {site: getattr(self, f"drop_{site}") for site in SITES["gal"]}


@dataclasses.dataclass(frozen=True)
class Loss(Checked):
    """The training objective.

    output_bias     scores have a bias per word; tied and without a bias, the model is Inan's RE
    augment         gamma of Inan's augmented loss: + gamma tau KL(softmax(E e_t / tau) || softmax(z / tau)); 0: none
    augment_share   beta of their equation (6.1): the loss is instead beta tau^2 V KL(...) + (1 - beta) cross entropy
    tau, detach     temperature of both softmaxes in KL; stop gradients through the soft target of KL
    sampled         number of samples of sampled softmax in training (log-uniform, corrected); 0: full softmax
    loss_scale      the objective is the "mean" over all tokens of a window, or the "sum" over time of the mean over
                    the batch, which is `steps` times as large and needs a matching learning rate and clip
    ar, tar         activation regularization (Merity et al. 2018): + ar times the mean square of the top layer's output
                    after dropout, and + tar times that of its changes from step to step before dropout, on the scale
                    "mean"
    """

    output_bias: bool = True
    augment: float = 0.0
    augment_share: float = 0.0
    tau: float = 20.0
    detach: bool = False
    sampled: int = 0
    loss_scale: str = "mean"
    ar: float = 0.0
    tar: float = 0.0

    choices: ClassVar[dict] = {"loss_scale": ("mean", "sum")}
    ranges: ClassVar[dict] = {
        "augment": Range(0),
        "augment_share": Range(0, 1),
        "tau": Range(0, min_open=True),
        "sampled": Range(0),
        "ar": Range(0),
        "tar": Range(0),
    }

    def mistakes(self):
        """See Checked."""
        augmented = self.augment or self.augment_share
        yield "`sampled` computes some scores, but `augment` needs all of them: choose one", self.sampled and augmented
        yield "`augment` and `augment_share` weight the same loss: choose one", self.augment and self.augment_share


@dataclasses.dataclass(frozen=True)
class Optimization(Checked):
    """The optimizer, one of optimizers.OPTIMIZERS, and weight decay; learning rate and clipping are training settings.

    optimizer       "sgd"; "asgd": SGD with Polyak averaging from the start; "nt-asgd": from when validation no longer
                    improves (Merity et al. 2018); "adadelta" (Zeiler 2012); "adam" (Kingma & Ba 2015)
    nonmono         of "nt-asgd": averaging begins after an epoch whose validation loss exceeds the lowest of those
                    more than `nonmono` epochs earlier
    average_after   of "nt-asgd": averaging begins after this many epochs at the latest; 0: whenever `nonmono` says

    Three kinds of weight decay, for all parameters, including those without a gradient in this step:

    l2              in the objective: + l2 / 2 |theta|^2, so that clipping includes its gradient (Zilly et al. 2017)
    lr_weight_decay theta <- theta - lr lr_weight_decay theta, after clipping: `weight_decay` of PyTorch's SGD and AdamW
                    (Merity et al.)
    weight_decay    after each step, theta <- theta - weight_decay theta, not scaled by the learning rate (Gal &
                    Ghahramani 2016)
    """

    optimizer: str = "sgd"
    nonmono: int = 5
    average_after: int = 0
    l2: float = 0.0
    lr_weight_decay: float = 0.0
    weight_decay: float = 0.0

    choices: ClassVar[dict] = {"optimizer": OPTIMIZERS}
    ranges: ClassVar[dict] = {
        "nonmono": Range(1, 10**6),
        "average_after": Range(0, 10**6),
        "l2": Range(0),
        "lr_weight_decay": Range(0),
        "weight_decay": Range(0, 1),
    }

    @property
    def averages(self):
        """Whether the optimizer averages parameters."""
        return self.optimizer in AVERAGING


@dataclasses.dataclass(frozen=True)
class Computation(Checked):
    """How a model is computed.

    seed, threads   random seed and number of threads
    precision       of the operands of matrix products in training; with "bfloat16", sums, parameters, and scoring stay
                    float32. None: chosen when training begins; see trainer.settled
    dtype           of everything else
    """

    seed: int = 1
    threads: int = 1
    precision: str | None = "float32"
    dtype: str = "float32"

    choices: ClassVar[dict] = {"precision": (None, "float32", "bfloat16"), "dtype": ("float32", "float64")}
    ranges: ClassVar[dict] = {"seed": SEEDS, "threads": THREADS}

    def mistakes(self):
        """See Checked."""
        yield (
            "`precision='bfloat16'` requires `dtype='float32'`",
            self.precision == "bfloat16" and self.dtype != "float32",
        )


RATES = {"adadelta": 1.0, "adam": 0.001}  # learning rates of optimizers whose steps hardly depend on the loss's scale


def overridden(values: dict[str, Any], given: dict[str, Any], rates: dict[str, float]) -> dict[str, Any]:
    """Return the settings of a preset, overridden by given ones, with those that neither has.

    values, given  settings by name
    rates          learning rates by optimizer, where only the optimizer is given
    """
    threads = given.get("threads")
    optimizer = checked("optimizer", given.get("optimizer", values.get("optimizer")), str | None)
    settings = {"precision": None, **values, **given, "threads": available_cores() if threads is None else threads}
    if optimizer != values.get("optimizer"):
        if optimizer in rates and "lr" not in given:
            settings["lr"] = rates[optimizer]
        if optimizer in AVERAGING and "schedule" not in given:
            settings["schedule"] = "constant"  # with a falling rate, the parameters to average would hardly move
    return settings


def check_sessions(config: Any, training: Any) -> None:
    """Raise Contradiction for an average of parameters over several sessions."""
    if config.averages and training.sessions > 1:
        raise Contradiction(
            f"`optimizer={config.optimizer}` averages the parameters of one session: omit `sessions`, or choose another"
            " `optimizer`"
        )
