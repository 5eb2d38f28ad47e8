"""word2vec with untied and tied embeddings: configuration and parameters."""

import dataclasses
import math
import tempfile
from typing import Any, ClassVar

import numpy as np

from tiedtools.base.errors import Contradiction
from tiedtools.base.processor import available_cores
from tiedtools.base.settings import SEEDS, THREADS, Checked, Range
from tiedtools.files import modelfile
from tiedtools.kernels.base.arrays import aligned, imagining
from tiedtools.kernels.base.features import FAST_BFLOAT16
from tiedtools.kernels.base.tiles import ROWS
from tiedtools.kernels.word2vec.w2vtypes import Rules
from tiedtools.models.word2vec import tables, workspaces
from tiedtools.models.word2vec.run import Run
from tiedtools.text.encoding import EncodedText
from tiedtools.text.vocab import Vocab
from tiedtools.training.trainer import refuse_twice
from tiedtools.vectors.vectors import Vectors

INIT_ROWS = 4096  # rows initialized at a time
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
        if self.exact or self.tying != "linear":
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


def require_vectors(config, which):
    """Raise Contradiction unless the vectors `which` are worth writing; see Word2Vec.vectors."""
    if which != "in" and not config.negative:
        raise Contradiction(f"`write={which}`: hierarchical softmax has no output word vectors; use `write=in`")
    refuse_twice(which, config.tying == "tied")
    if which in ("sum", "concat") and config.tying == "signs":
        raise Contradiction(
            f"`write={which}`: input and output vectors differ only in signs, so that their sum cancels dimensions and"
            " their concatenation repeats them; use `write=in`"
        )


class Word2Vec:
    """Parameters of a word2vec model over a Vocab of V words, with m = config.size.

    emb_in   float32 [V, m], input embeddings
    emb_out  float32 [rows, m], output embeddings: emb_in itself if tied; otherwise, as far as used, V rows of words for
             negative sampling followed by V - 1 inner nodes of the Huffman tree for hierarchical softmax
    proj     float32 [m, m], L of tied+L, between h and the output rows; [0, 0] in other models

    Kernels work on `padded`, the same three arrays with zero-padded rows, as tiles.aligned makes them.
    """

    kind = "word2vec"
    KERNELS = 35
    settings: dict | None = None  # those of training, for the model file; see Trainer.settings

    def __init__(self, vocab, config, drawn=True):
        """Create the parameters, random if `drawn` is true, otherwise all 0."""
        self.vocab, self.config = vocab, config
        V, m = len(vocab), config.size
        emb_in = aligned(V, m)
        self.first_node = V if config.negative else 0
        emb_out = emb_in if self.tied else aligned(self.first_node + (V - 1 if config.hs else 0), m)
        proj = aligned(emb_in.shape[1], m) if config.tying == "linear" else np.zeros((0, 0), np.float32)
        self.padded = emb_in, emb_out, proj
        self.emb_in, self.emb_out, self.proj = emb_in[:, :m], emb_out[:, :m], proj[:m, :m]
        if drawn:
            self.draw()

    def draw(self):
        rng, reach = np.random.default_rng(self.config.seed), np.float32(2 * self.config.init_range)
        for rows in np.split(self.emb_in, range(INIT_ROWS, len(self.emb_in), INIT_ROWS)):
            rows[:] = (rng.random(rows.shape, np.float32) - np.float32(0.5)) * reach
        if self.proj.size:
            self.proj[:] = self.start_of_proj(rng)

    @classmethod
    def warm_up(cls, config):
        """Compile the kernels with a small model, so that later memory checks include the memory compilation takes."""
        with tempfile.TemporaryFile(buffering=0) as file:
            file.write(bytes(4))
            config = dataclasses.replace(config, size=16, shared_negatives=None, threads=min(config.threads, 2))
            small = cls(Vocab.made_up(), config)
            Run(small, EncodedText(small.vocab, file, 1, 1)).compile()

    @classmethod
    def memory(cls, vocab, config):
        """Return the bytes needed for a model and its training."""
        with imagining() as sizes:
            workspaces.workspaces(cls(vocab, config, drawn=False), longest=0, path=0)
        return sum(sizes) + tables.memory(len(vocab), config)

    def start_of_proj(self, rng):
        m, start = self.config.size, self.config.init_linear
        if start == "identity":
            return np.eye(m)
        if start == "orthogonal":
            return np.linalg.qr(rng.standard_normal((m, m)))[0]
        return rng.uniform(-1, 1, (m, m)) / np.sqrt(m)

    @property
    def uniform_loss(self):
        """Loss of one prediction, in nats, if all vectors are 0; for a Huffman path, that of a balanced tree."""
        c = self.config
        sampling = math.log1p(math.exp(-c.shift)) + c.negative * math.log1p(math.exp(c.shift))
        return sampling * (c.negative > 0) + math.log(len(self.vocab)) * c.hs

    @property
    def tied(self):
        return self.config.tying != "untied"

    @property
    def n_params(self):
        """Number of trained parameters; a shared matrix counts once."""
        return self.emb_in.size + self.proj.size + (0 if self.tied else self.emb_out.size)

    def vectors(self, which="in"):
        """Return the word Vectors to write.

        which  "in": emb_in; "out": the words' rows of emb_out; "sum" or "concat": their sum or concatenation, of
               emb_in L and emb_out if there is an L

        Raises Contradiction for vectors that the model does not have, and those that repeat or cancel its dimensions.
        """
        require_vectors(self.config, which)
        if which == "in":
            return Vectors(self.vocab.words, self.emb_in)
        mapped = self.emb_in if which == "out" or self.linear is None else self.emb_in @ self.linear
        return Vectors.of(self.vocab.words, which, mapped, self.emb_out[: len(self.vocab)])

    @property
    def linear(self):
        """L or the diagonal matrix of signs, float32 [m, m]; None without one."""
        if self.config.negations:
            return np.diag(np.where(np.arange(self.config.size) < self.config.negations, -1, 1).astype(np.float32))
        return self.proj if self.proj.size else None

    @property
    def arrays(self):
        """Dict of all parameters by name; a shared matrix appears once."""
        arrays = dict(emb_in=self.emb_in)
        if not self.tied:
            arrays["emb_out"] = self.emb_out
        if self.proj.size:
            arrays["proj"] = self.proj
        return arrays

    def save(self, file):
        """Write all parameters, the vocabulary, and the configuration as a model file."""
        arrays = dict(self.arrays, counts=self.vocab.counts)
        if self.linear is not None:
            arrays["proj"] = self.linear  # fixed signs, too: for readers of vectors
        modelfile.save(file, self.kind, dataclasses.asdict(self.config), self.vocab.words, arrays, self.settings)

    @classmethod
    def load(cls, path, threads=None):
        """Read a model file. threads: number of threads to use; None: all cores, however many training used.

        Raises TiedtoolsError if the file is not a model of this kind.
        """

        def make(config, words, arrays):
            config = dict(config, threads=threads or available_cores())
            if config["shared_negatives"] is not None:
                config["shared_negatives"] = tuple(config["shared_negatives"])  # JSON has lists
            vocab = Vocab(words, arrays.pop("counts")).check()
            return cls.of(vocab, modelfile.configured(Config, config), arrays)

        return modelfile.rebuild(path, cls.kind, make)

    @classmethod
    def of(cls, vocab, config, arrays):
        """Return the model with these parameters, as in `arrays`. Raises KeyError or ValueError if they do not fit."""
        with imagining():  # a false size must not allocate memory
            shapes = {name: array.shape for name, array in cls(vocab, config, drawn=False).arrays.items()}
        for name, shape in shapes.items():
            if arrays[name].shape != shape or arrays[name].dtype != np.float32:
                raise ValueError(f"{name} is {arrays[name].dtype} {arrays[name].shape}, expected {shape}")
            if not np.isfinite(arrays[name]).all():
                raise ValueError(f"{name} has values that are nan or infinite")
        model = cls(vocab, config, drawn=False)
        for name, array in model.arrays.items():
            array[:] = arrays[name]
        return model

    def __reduce__(self):
        return type(self).of, (self.vocab, self.config, self.arrays), {"settings": self.settings}

    def train(self, text, progress=None):
        """Train for config.epochs epochs on an EncodedText, reporting to a Progress. Raises as Run.go."""
        Run(self, text).go(progress)
