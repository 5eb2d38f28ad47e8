"""Configuration of word2vec models, and their settings under the public names of `tiedtools w2v`."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

from tiedtools.base.processor import available_cores
from tiedtools.base.settings import SEEDS, THREADS, Checked, Mistake, Range, Reading, checked, setting, with_reading

ROWS = 4  # repeats kernels/base/tiles.py, so that this module does not import Numba
LEAST, MOST = (1, ROWS, ROWS), (2**10, 2**12, 2**16)  # limits of `shared_negatives`
LR = {"cbow": (0.05, 0.2), "skipgram": (0.025, 0.035)}  # default learning rates: word2vec.c's, with fit_pmi
PRESETS: dict[str, dict[str, Any]] = {
    # Bojanowski et al. 2017, and the defaults of fastText 0.9.2; `init_range` is 1 / size.
    "fasttext": dict(
        subwords="ngrams", architecture="skipgram", lr=0.05, min_alpha=0.0, size=100, window=5, epochs=5,
        min_count=5, negative=5, ns_exponent=0.5, sample=1e-4, min_n=3, max_n=6, buckets=2_000_000,
    )
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Config(Checked):
    """Configuration of a word2vec model: options of word2vec.c, under descriptive names, and of tying.

    None selects the default for the architecture.

    lr           default: LR
    tying        "untied"; "tied"; "signs": tied, with some dimensions of the input negated; or "linear": tied+L
    exact        always on with hierarchical softmax and, unless several threads run in lockstep, when a tiny vocabulary
                 or hundreds of negatives make sharing unstable or the window exceeds 64
    precision    with "bfloat16", sums are float32. None: the fast one on this CPU, set when a model is created; see
                 model.resolved. Always "float32" with `exact`
    init_linear  "uniform": in +-1/sqrt(size)

    Raises TiedtoolsError for invalid combinations.
    """

    size: int = setting(100, Range(1, 10**5))("Dimension of the vectors.")
    window: int = setting(5, Range(1, 10**4))("Context window: maximum distance between target and context word.")
    sample: float = setting(1e-3, Range(0))(
        "Subsampling threshold t: keep a word of relative frequency f with probability sqrt(t/f) + t/f; 0 disables."
    )
    hs: bool = setting(False)(
        "1: use hierarchical softmax, in addition to negative samples unless `negative=0`; untied only."
    )
    negative: int = setting(5, Range(0, 10**4))("Negative samples per target; 0 disables.")
    epochs: int = setting(5, Range(1, 10**4))("Number of epochs.")
    architecture: str = setting("cbow", choices=("cbow", "skipgram"))(
        {"cbow": "continuous bag of words.", "skipgram": "skip-gram."}
    )
    lr: float | None = setting(None, Range(0, 10**4, min_open=True))(
        "Initial learning rate.  [default: .05 for CBOW, .025 for skip-gram; with `fit_pmi` .2 (`cbow_sum`: .05), .035]"
    )
    min_alpha: float | None = setting(None, Range(0, 10**4))(
        "Final learning rate, reached linearly, as in gensim.  [default: `lr` / 10000, as in word2vec.c]"
    )
    ns_exponent: float = setting(0.75, Range(-10, 10))(
        "Draw negative samples in proportion to count ^ N. With 1, skip-gram's optimal scores are symmetric."
    )
    fixed_window: bool = setting(False)("Always use the whole window, instead of a random radius up to `window`.")
    tying: str = setting("untied", choices=("untied", "tied", "signs", "linear"))(
        {
            "tied": "Use the same vectors as input and output vectors.",
            "signs": "Tie input and output vectors, with some dimensions of the input negated: tied, fixed signs."
            " Implies `fit_pmi`.",
            "linear": "Tie input and output vectors, with a learned linear map L between them: tied+L (Gulordava et al."
            " 2018).",
        }
    )
    fit_pmi: bool | None = setting(None)(
        "Let scores approximate pointwise mutual information: the defaults of `shift`, `cbow_grad`, and `lr` become"
        " -log(`negative`), exact, and .2 (CBOW) or .035 (skip-gram).  [default: only with `tying=signs`]"
    )
    shift: float | None = setting(None, Range(-100, 100))(
        "Constant added to all scores of negative sampling. With -log(`negative`), scores approximate pointwise mutual"
        " information itself.  [default: 0; with `fit_pmi` -log(`negative`)]"
    )
    cbow_grad: str | None = setting(None, choices=("ctool", "exact"))(
        "CBOW: give each context word the full gradient of the mean (ctool, as in word2vec.c), or the gradient divided"
        " by the number of context words (exact).  [default: ctool; with `fit_pmi` exact]"
    )
    cbow_sum: bool = setting(False)("CBOW: sum the context vectors instead of averaging them, as in Gulordava et al.")
    negated: float = setting(0.25, Range(0, 1))("Fraction of the dimensions that `tying=signs` negates.")
    lr_linear: float | None = setting(None, Range(0))(
        "Learning rate of L, as a fraction of `lr`.  [default: .005 for CBOW, .001 for skip-gram]"
    )
    init_linear: str = setting("identity", choices=("identity", "orthogonal", "uniform"))("Initialization of L.")
    init_range: float = setting(0.05, Range(0, min_open=True))(
        "Initialize input vectors uniformly between minus and plus this value (word2vec.c: .5 / size)."
    )
    skip_input: bool | None = setting(None)("Never predict a word from itself, or allow it.  [default: never if tied]")
    exact: bool = setting(False)("Draw separate negatives per target, as in word2vec.c; slower.")
    shared_negatives: tuple | None = setting(None, metavar="RUNS CENTERS NEGATIVES")(  # type: ignore[type-arg]  # values are checked by it
        "Batch shape: RUNS runs of CENTERS consecutive center words; the words of a run share NEGATIVES negative"
        " samples. The last two are multiples of 4.  [default: depends on the model; see docs/methods.md]"
    )
    deterministic: bool = setting(False)(
        "Make results byte-identical from run to run with the same number of threads; slower."
    )
    precision: str | None = setting(None, choices=(None, "float32", "bfloat16"))(
        "Precision of matrix products; sums and vectors are float32.  [default: bfloat16 on AMD CPUs since Zen 4 and,"
        " with a learned L, on Intel Xeon since Sapphire Rapids]"
    )
    subwords: str | None = setting(None, choices=(None, "ngrams"))(
        "ngrams: a word's vector is the mean of its own row and the rows of its character n-grams, as in fastText;"
        " unknown words get vectors, too.  [default: one vector per word]"
    )
    min_n: int = setting(3, Range(1, 100))("With `subwords`, minimum length of n-grams of `<word>`, in characters.")
    max_n: int = setting(6, Range(0, 100))("With `subwords`, maximum length of n-grams; 0: no n-grams.")
    buckets: int = setting(2_000_000, Range(0, 2**30))(
        "With `subwords`, number of buckets that n-grams are hashed to; 0: no n-grams."
    )
    seed: int = setting(1, SEEDS)("Random seed.")
    threads: int = setting(1, THREADS)("Number of training threads.  [default: all cores]")

    dtype = "float32"  # of all parameters

    def __post_init__(self) -> None:
        pmi = self.negative > 0 and (self.tying == "signs" if self.fit_pmi is None else self.fit_pmi)
        defaults = dict(
            fit_pmi=pmi,
            lr=LR[self.architecture][pmi and not (self.cbow and self.cbow_sum)] if self.architecture in LR else None,
            shift=-math.log(self.negative) if pmi else 0.0,
            cbow_grad="exact" if pmi else "ctool",
            lr_linear=0.005 if self.cbow else 0.001,
            skip_input=self.tying != "untied",
        )
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.hs:
            object.__setattr__(self, "exact", True)
        if self.exact:
            object.__setattr__(self, "precision", "float32")
        super().__post_init__()

    @property
    def cbow(self) -> bool:
        return self.architecture == "cbow"

    @property
    def negations(self) -> int:
        """Number of leading dimensions of the input that are negated."""
        return round(self.negated * self.size) if self.tying == "signs" else 0

    def mistakes(self) -> Iterator[Mistake]:
        remedy = "use `negative` with `tying='tied'`, `tying='signs'`, or `tying='linear'`"
        problem = f"hierarchical softmax has no output word vectors to tie; {remedy}"
        yield problem, self.hs and self.tying != "untied"
        lowest, rate = self.min_alpha or 0, self.lr or 0
        yield f"`min_alpha={lowest}` is above `lr={rate}`; lower it", lowest > rate
        yield "`hs=0` with `negative=0` leaves nothing to predict; set one of them", not (self.hs or self.negative)
        shape = LEAST if self.shared_negatives is None else self.shared_negatives
        fits = len(shape) == 3 and all(isinstance(n, int) and a <= n <= b for a, n, b in zip(LEAST, shape, MOST))
        yield f"`shared_negatives={shape}` is not three integers, from {LEAST} to {MOST}", not fits
        problem = f"the last two numbers must be multiples of {ROWS}"
        yield f"`shared_negatives={' '.join(map(str, shape))}`: {problem}", shape[1] % ROWS or shape[2] % ROWS
        problem = f"`min_n={self.min_n}` is above `max_n={self.max_n}`; lower it, or set `max_n=0` for no n-grams"
        yield problem, self.subwords and self.max_n and self.min_n > self.max_n
        problem = "`subwords` composes vectors of words, which hierarchical softmax has no output vectors of"
        yield f"{problem}; use `negative`", self.hs and self.subwords
        problem = "`deterministic` with `exact` or `hs=1` requires a single thread; add `threads=1`"
        yield problem, self.deterministic and self.exact and self.threads > 1


@dataclasses.dataclass(frozen=True)
class Resampling(Checked):
    """Settings of several training runs, whose spread shows how far the vectors of one can be trusted."""

    runs: int | None = setting(None, Range(1, 10**4), metavar="N")(
        "Train N models and write the vectors of all to `output`, a file of runs, for commands that then print"
        " intervals; see docs/uncertainty.md. Each has one thread if N is not below `threads`."
    )
    resample: str = setting("documents", choices=("documents", "shuffle", "none"))(
        "With `runs`, text of each run: as many documents, drawn with replacement (bootstrap), each document once in"
        " random order, or the text as it is, so that only seeds differ (Antoniak and Mimno 2018)."
    )
    document: str | None = setting(None, choices=(None, "line", "paragraph", "record", "file"))(
        "With `runs`, unit of resampling; empty lines separate paragraphs, and `field` reads records."
        "  [default: record with `field`, file if there are several texts, otherwise line]"
    )


@dataclasses.dataclass(frozen=True)
class Shorthand(Checked):
    """A setting that stands for several others."""

    preset: str | None = setting(None, choices=(None, *PRESETS))(
        "fasttext: the model and the defaults of `fasttext skipgram`: `subwords`, sampling, and rates. Options given"
        " explicitly override them."
    )


def configure(**options: Any) -> list[Any]:
    """Return [Config, dict of settings for reading texts]; `threads` defaults to all cores."""
    threads, preset = options.get("threads"), options.get("preset")
    options["threads"] = available_cores() if threads is None else threads
    if preset in list(PRESETS):  # others, also lists, fail in Shorthand
        options = PRESETS[preset] | options
        size = checked("size", options["size"], int, Range(1))
        options.setdefault("init_range", 1 / size)
    config, _, reading = with_reading(options, Config, Shorthand, Reading)
    return [config, reading]


def default_vectors(config: Config) -> str:
    """Return which vectors are written by default: "sum" for skip-gram tied+L, which docs/results.md finds best."""
    return "sum" if config.tying == "linear" and not config.cbow else "in"
