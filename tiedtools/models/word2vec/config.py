"""Configuration of word2vec models, and their settings under the public names of `tiedtools w2v`."""

import dataclasses
import math
from typing import Any, ClassVar

from tiedtools.base.processor import available_cores
from tiedtools.base.settings import SEEDS, THREADS, Checked, Range, Reading, with_reading
from tiedtools.kernels.base.features import FAST_BFLOAT16
from tiedtools.kernels.base.tiles import ROWS
from tiedtools.kernels.word2vec.w2vtypes import Rules

LEAST, MOST = (1, ROWS, ROWS), (2**10, 2**12, 2**16)  # limits of `shared_negatives`
LR = {"cbow": (0.05, 0.2), "skipgram": (0.025, 0.035)}  # default learning rates: word2vec.c's, with fit_pmi


@dataclasses.dataclass(frozen=True)
class Config(Checked):
    """Configuration of a word2vec model: word2vec.c's options under their own names, and those of tying.

    None selects the default for the architecture.

    architecture   "cbow" or "skipgram"
    lr             initial learning rate; default: LR
    min_alpha      final learning rate, reached linearly as in gensim; None: lr / 10,000, as in word2vec.c
    ns_exponent    negatives are drawn with probability ~ count**ns_exponent
    fixed_window   every window has the maximum radius, instead of a random one
    tying          "untied"; "tied"; "signs": tied, with some dimensions of the input negated; or "linear": tied+L
    fit_pmi        let scores approximate PMI: sets the defaults of shift, cbow_grad, and lr; default: only with "signs"
    shift          constant added to the scores of negative sampling; default 0; with fit_pmi -log(negative)
    cbow_grad      "ctool": every context word gets the whole gradient of their mean, as in word2vec.c; or "exact", the
                   default with fit_pmi
    cbow_sum       CBOW: sum the context vectors instead of averaging them
    negated        fraction of the dimensions that "signs" negates
    lr_linear      learning rate of L as a fraction of lr; default .005 (CBOW), .001 (skip-gram)
    init_linear    L starts as the "identity", random "orthogonal", or "uniform" in +-1/sqrt(size)
    init_range     emb_in starts uniform in +-init_range; word2vec.c uses .5 / size
    skip_input     never use a word as target or negative for itself as input; default: only if tied
    exact          draw separate negatives per target, as in word2vec.c, instead of sharing them among neighboring
                   targets. Always on with hierarchical softmax and, unless several threads run in lockstep, when a
                   tiny vocabulary or hundreds of negatives make sharing unstable or the window exceeds 64
    shared_negatives  (runs, centers per run, negatives per run); None: by tying and architecture; see
                   w2vtiles.py
    deterministic  run threads in lockstep, so that the result does not depend on their speed
    precision      of the products with L: "float32", or "bfloat16" with float32 sums; default "bfloat16" on CPUs with
                   fast bfloat16 products. Always "float32" without L and with `exact`

    Raises TiedtoolsError for invalid combinations.
    """

    size: int = 100
    window: int = 5
    sample: float = 1e-3
    hs: bool = False
    negative: int = 5
    epochs: int = 5
    architecture: str = "cbow"
    lr: float | None = None
    min_alpha: float | None = None
    ns_exponent: float = 0.75
    fixed_window: bool = False
    tying: str = "untied"
    fit_pmi: bool | None = None
    shift: float | None = None
    cbow_grad: str | None = None
    cbow_sum: bool = False
    negated: float = 0.25
    lr_linear: float | None = None
    init_linear: str = "identity"
    init_range: float = 0.05
    skip_input: bool | None = None
    exact: bool = False
    shared_negatives: tuple | None = None
    deterministic: bool = False
    precision: str | None = None
    seed: int = 1
    threads: int = 1

    dtype = "float32"  # of all parameters

    choices: ClassVar[dict] = {
        "architecture": ("cbow", "skipgram"),
        "tying": ("untied", "tied", "signs", "linear"),
        "init_linear": ("identity", "orthogonal", "uniform"),
        "cbow_grad": ("ctool", "exact"),
        "precision": ("float32", "bfloat16"),
    }
    ranges: ClassVar[dict] = {
        "size": Range(1, 10**5),
        "window": Range(1, 10**4),
        "sample": Range(0),
        "negative": Range(0, 10**4),
        "epochs": Range(1, 10**4),
        "lr": Range(0, 10**4, min_open=True),
        "min_alpha": Range(0, 10**4),
        "ns_exponent": Range(-10, 10),
        "lr_linear": Range(0),
        "negated": Range(0, 1),
        "shift": Range(-100, 100),
        "init_range": Range(0, min_open=True),
        "seed": SEEDS,
        "threads": THREADS,
    }

    def __post_init__(self):
        pmi = self.tying == "signs" if self.fit_pmi is None else self.fit_pmi
        defaults = dict(
            fit_pmi=pmi,
            lr=LR[self.architecture][pmi and not (self.cbow and self.cbow_sum)] if self.architecture in LR else None,
            shift=-math.log(self.negative) if pmi and self.negative > 0 else 0.0,
            cbow_grad="exact" if pmi else "ctool",
            lr_linear=0.005 if self.cbow else 0.001,
            skip_input=self.tying != "untied",
            precision="bfloat16" if FAST_BFLOAT16 else "float32",
        )
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.hs:
            object.__setattr__(self, "exact", True)
        if self.precision == "bfloat16" and (self.exact or self.tying != "linear"):
            object.__setattr__(self, "precision", "float32")
        super().__post_init__()

    @property
    def cbow(self):
        """Whether the architecture is CBOW."""
        return self.architecture == "cbow"

    @property
    def negations(self):
        """Number of leading dimensions of the input that are negated."""
        return round(self.negated * self.size) if self.tying == "signs" else 0

    @property
    def rules(self):
        """The Rules of the kernels."""
        c: Any = self  # without the None of settings that have their defaults by now
        return Rules(
            c.window, 1 if c.fixed_window else c.window, c.negative, c.cbow, not c.cbow_sum,
            c.cbow_grad == "exact" and not c.cbow_sum, c.skip_input, c.negations, c.shift,
        )  # fmt: skip

    def mistakes(self):
        """Yield contradictions between settings; see Checked."""
        shape = self.shared_negatives
        yield (
            "hierarchical softmax has no output word vectors to tie;"
            " use `negative` with `tying='tied'`, `tying='signs'`, or `tying='linear'`",
            self.hs and self.tying != "untied",
        )
        lowest, rate = self.min_alpha or 0, self.lr or 0
        yield f"`min_alpha={lowest}` is above `lr={rate}`; lower it", lowest > rate
        yield "`hs=0` with `negative=0` leaves nothing to predict; set one of them", not (self.hs or self.negative)
        yield (
            f"`shared_negatives={shape}` is not three integers, from {LEAST} to {MOST}",
            shape is not None and not (len(shape) == 3 and all(map(is_between, LEAST, shape, MOST))),
        )
        yield (
            f"`shared_negatives={' '.join(map(str, shape or ()))}`: the last two numbers must be multiples of {ROWS}",
            shape and (shape[1] % ROWS or shape[2] % ROWS),
        )
        yield (
            "`deterministic` with `exact` or `hs=1` requires a single thread; add `threads=1`",
            self.deterministic and self.exact and self.threads > 1,
        )


def is_between(least, n, most):
    """Return whether n is an integer from `least` to `most`."""
    return isinstance(n, int) and least <= n <= most


def configure(**given: Any) -> list[Any]:
    """Return [Config, dict of settings for reading texts]; `threads` defaults to all cores."""
    threads = given.get("threads")
    given["threads"] = available_cores() if threads is None else threads
    return with_reading(given, (Config,), Reading)


def written(config: Config) -> str:
    """Return which vectors are written by default: "sum" for skip-gram tied+L, which docs/results.md finds best."""
    return "sum" if config.tying == "linear" and not config.cbow else "in"
