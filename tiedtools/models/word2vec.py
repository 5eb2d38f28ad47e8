"""word2vec with untied, tied and tied+L embeddings: configuration, parameters, training loop."""

import dataclasses

import numpy as np
import scipy.linalg  # noqa: F401 - the BLAS behind compiled np.dot; threadpool_limits sees only what is loaded
from threadpoolctl import threadpool_limits

from tiedtools import hogwild, modelfile
from tiedtools.errors import TiedtoolsError
from tiedtools.kernels import huffman, sampling, w2v
from tiedtools.kernels.scalar import mix
from tiedtools.report import announced
from tiedtools.vectors import Vectors

CHUNK = 10_000  # tokens between two looks at the learning rate, as in word2vec.c
BATCH = 128  # centres to one product with L
LOWEST_LR = 1e-4  # of alpha


@dataclasses.dataclass(frozen=True)
class Config:
    """word2vec.c's options under its own names, and those of tying. None: the default for the architecture.

    alpha        initial learning rate; .05 CBOW, .025 skip-gram
    sharing      "untied", "tied" or "linear" (tied+L)
    lr_linear    L's learning rate as a fraction of alpha; .005 CBOW, .003 skip-gram
    init_range   emb_in starts uniform in +-init_range; word2vec.c's is .5 / size
    init_linear  L starts as the "identity", random "orthogonal" or "uniform" in +-1/sqrt(size)
    cbow_grad    "ctool": every context word gets the whole gradient of their mean, as in word2vec.c; or "exact"
    skip_input   a word is never target or negative for itself as input; on for tied and tied+L

    Raises TiedtoolsError for combinations that make no sense.
    """

    size: int = 100
    window: int = 5
    sample: float = 1e-3
    hs: bool = False
    negative: int = 5
    iter: int = 5
    cbow: bool = True
    alpha: float | None = None
    sharing: str = "untied"
    lr_linear: float | None = None
    init_range: float = 0.05
    init_linear: str = "identity"
    cbow_grad: str = "ctool"
    skip_input: bool | None = None
    seed: int = 1
    threads: int = 1

    def __post_init__(self):
        tied = self.sharing != "untied"
        defaults = dict(
            alpha=0.05 if self.cbow else 0.025,
            lr_linear=0.005 if self.cbow else 0.003,
            skip_input=tied,
        )
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        if self.hs and tied:
            raise TiedtoolsError(
                "hierarchical softmax has no output word vectors to tie: use -negative with --tie or --tie-linear"
            )
        if not self.hs and not self.negative:
            raise TiedtoolsError("-hs 0 with -negative 0 leaves nothing to predict: set one of them")


class Diverged(TiedtoolsError):
    """Training broke down; the parameters are those of the moment before."""


class Word2Vec:
    """The parameters of a model over a Vocab of V words, m = config.size.

    emb_in   float32 [V, m]
    emb_out  float32 [rows, m]: emb_in itself where tied; otherwise V rows of words for negative sampling, then
             V - 1 inner nodes of the Huffman tree for hierarchical softmax, as far as they are used
    proj     float32 [m, m], L between h and the output rows; [0, 0] without
    """

    def __init__(self, vocab, config):
        self.vocab, self.config = vocab, config
        V, m = len(vocab), config.size
        rng = np.random.default_rng(config.seed)
        self.emb_in = rng.random((V, m), np.float32)
        self.emb_in -= np.float32(0.5)
        self.emb_in *= np.float32(2 * config.init_range)
        self.first_node = V if config.negative else 0
        if config.sharing == "untied":
            self.emb_out = np.zeros((self.first_node + (V - 1 if config.hs else 0), m), np.float32)
        else:
            self.emb_out = self.emb_in
        if config.sharing != "linear":
            self.proj = np.zeros((0, 0), np.float32)
        elif config.init_linear == "identity":
            self.proj = np.eye(m, dtype=np.float32)
        elif config.init_linear == "orthogonal":
            self.proj = np.linalg.qr(rng.standard_normal((m, m)))[0].astype(np.float32)
        else:
            self.proj = (rng.uniform(-1, 1, (m, m)) / np.sqrt(m)).astype(np.float32)

    @property
    def n_params(self):
        """Trained numbers; a shared matrix counts once."""
        return self.emb_in.size + self.proj.size + (self.emb_out is not self.emb_in) * self.emb_out.size

    def vectors(self, which="in"):
        """The word vectors to write: emb_in, the words' rows of emb_out, their sum, or both side by side."""
        if which == "in":
            return Vectors(self.vocab.words, self.emb_in)
        if not self.config.negative:
            raise TiedtoolsError(f"--write {which}: hierarchical softmax has no output word vectors; use --write in")
        out = self.emb_out[: len(self.vocab)]
        matrix = {"out": lambda: out, "sum": lambda: self.emb_in + out, "concat": lambda: np.hstack([self.emb_in, out])}
        return Vectors(self.vocab.words, matrix[which]())

    def save(self, file):
        """Write all parameters, the vocabulary and the configuration as a model file."""
        arrays = dict(emb_in=self.emb_in, counts=self.vocab.counts)
        if self.emb_out is not self.emb_in:
            arrays["emb_out"] = self.emb_out
        if self.proj.size:
            arrays["proj"] = self.proj
        modelfile.save(file, "word2vec", dataclasses.asdict(self.config), self.vocab.words, arrays)

    def train(self, text, report):
        """Train for config.iter epochs on an EncodedText, telling a Report how it goes.

        Raises Diverged, or KeyboardInterrupt on Ctrl-C; the parameters are then those at that moment, all finite.
        Raises TiedtoolsError where the text gives nothing to predict.
        """
        run = Run(self, text, report)
        # Every worker calls BLAS for itself; threads of its own would only fight over the cores.
        with threadpool_limits(1, user_api="blas"):
            run.compile()
            hogwild.run(run.work, range(run.jobs), self.config.threads, run.ask_to_stop, run.tick)
        run.tick()
        if not run.totals[:, :, 1].any():
            raise TiedtoolsError(
                "no word has another one beside it to predict; give longer lines, or thin the text out less (-sample 0)"
            )


class Run:
    """One training run: constant tables, each thread's scratch space, and the count of what is done."""

    def __init__(self, model, text, report):
        config = model.config
        self.model, self.text, self.report = model, text, report
        self.cuts = chunk_bounds(text)
        self.jobs = config.iter * (len(self.cuts) - 1)
        self.total = config.iter * text.size
        counts = model.vocab.counts
        self.keep = keep_thresholds(counts, config.sample)
        self.noise = noise_table(counts) if config.negative else np.zeros((0, 2), np.uint32)
        self.tree = huffman_tree(counts) if config.hs else tuple(np.zeros(0, t) for t in (np.int32, np.uint8, np.int64))
        self.stop = np.zeros(1, np.uint8)
        # For each thread and epoch: nats, predictions, tokens. A cache line apart, so that threads share none.
        self.totals = np.zeros((config.threads, config.iter, 8))
        self.epochs_told = 0
        self.scratch = [self.make_scratch() for _ in range(config.threads)]

    def make_scratch(self):
        config = self.model.config
        linear = self.model.proj.size > 0
        # Without L each centre sees the update of the one before, as in word2vec.c.
        batch = BATCH if linear else 1
        hidden, grad = np.zeros((2, batch, config.size), np.float32)
        mapped, back = np.zeros((2, batch, config.size), np.float32) if linear else (hidden, grad)
        inputs, targets = np.zeros((2, batch, 1 + 2 * config.window), np.int32)
        path = int(np.diff(self.tree[2]).max()) if config.hs else 0
        rows = np.zeros(path + 1 + config.negative, np.int32)
        longest = int(np.diff(self.cuts).max())
        tokens, ids = np.zeros(2 + 2 * longest, np.int32), np.empty(longest, np.int32)
        return tokens, ids, (hidden, mapped, grad, back, np.zeros_like(self.model.proj), inputs, targets, rows)

    def lr(self, done):
        return self.model.config.alpha * max(1 - done / (self.total + 1), LOWEST_LR)

    def work(self, thread, job):
        """Train on one piece of one epoch. What happens depends on the job's number, not on the thread."""
        epoch, piece = divmod(job, len(self.cuts) - 1)
        start, end = self.cuts[piece : piece + 2]
        tokens, ids, _ = self.scratch[thread]
        seed = np.uint64(mix(np.uint64(self.model.config.seed << 32 ^ job)))
        n = sampling.thin(tokens, self.text.read(start, ids[: end - start]), self.keep, seed)
        self.train(thread, epoch, n, self.lr(epoch * self.text.size + start), seed)
        self.totals[thread, epoch, 2] += end - start
        if self.stop[0] == w2v.NAN:
            raise Diverged(
                f"training diverged at {self.done / self.total:.1%} (a score beyond {w2v.DIVERGED:g});"
                " lower -alpha or --lr-linear. What is written is the state before"
            )

    def train(self, thread, epoch, n, lr, seed):
        model, config = self.model, self.model.config
        tokens, _, scratch = self.scratch[thread]
        w2v.train(
            model.emb_in, model.emb_out, model.proj, self.totals[thread, epoch], self.stop, *scratch,
            tokens, self.noise, *self.tree, n, model.first_node, config.window, config.negative, config.cbow,
            config.cbow_grad == "exact", config.skip_input, lr, lr * config.lr_linear, np.uint64(mix(seed)),
        )  # fmt: skip

    def compile(self):
        """Have the kernels compiled, in this thread, where Ctrl-C is heard."""
        with announced("compiling for this processor; only the first run has to", after=1):
            sampling.thin(self.scratch[0][0], self.scratch[0][1][:0], self.keep, np.uint64(0))
            self.train(0, 0, 0, 1.0, np.uint64(0))

    def ask_to_stop(self):
        self.stop[0] = max(self.stop[0], w2v.STOP)

    @property
    def done(self):
        return int(self.totals[:, :, 2].sum())

    def tick(self):
        """Tell the progress, and each epoch once when its last piece is done."""
        nats, predictions, tokens = self.totals.sum(0)[:, :3].T
        loss = nats / np.maximum(predictions, 1)
        done = int(tokens.sum())
        epoch = min(np.count_nonzero(tokens), len(tokens)) - 1
        self.report.update(done, loss[epoch], self.lr(done))
        while self.epochs_told < len(tokens) and tokens[self.epochs_told] == self.text.size:
            e = self.epochs_told
            self.report.epoch(
                e + 1,
                loss[e] if predictions[e] else None,
                lr=self.lr((e + 1) * self.text.size),
                words_per_s=round(done / self.report.seconds),
            )
            self.epochs_told += 1


def chunk_bounds(text):
    """Cut a text into pieces of about CHUNK ids, after the end of a line where one is near; int64 [pieces + 1]."""
    cuts = np.arange(0, text.size, CHUNK)
    near = np.empty(CHUNK // 10, np.int32)
    for i in range(1, cuts.size):
        ends = np.flatnonzero(text.read(cuts[i], near) == 0)
        if ends.size:
            cuts[i] += ends[0] + 1
    return np.unique(np.append(cuts, text.size))


def keep_thresholds(counts, sample):
    """Probability of keeping each word in subsampling, times 2**32 - 1; uint32 [V].

    word2vec.c's sqrt(t/f) + t/f for a word of frequency f and t = sample, where Mikolov et al. 2013 print sqrt(t/f).
    """
    if not sample:
        return np.full(counts.size, 0xFFFFFFFF, np.uint32)
    ratio = sample * counts.sum() / np.maximum(counts, 1)
    return (np.minimum(np.sqrt(ratio) + ratio, 1) * 0xFFFFFFFF).astype(np.uint32)


def noise_probabilities(counts):
    """P(k) ~ counts[k]**.75, float64 [V]; `</s>` is never drawn, its share falls to all others, as in word2vec.c."""
    p = counts.astype(np.float64) ** 0.75
    p /= p.sum()
    p[1:] += p[0] / (p.size - 1)
    p[0] = 0
    return p


def noise_table(counts):
    """The noise distribution as an alias table, uint32 [V, 2]."""
    table = np.empty((counts.size, 2), np.uint32)
    scratch = np.empty((2, counts.size), np.int64)
    sampling.alias(table, noise_probabilities(counts) * counts.size, *scratch)
    return table


def huffman_tree(counts):
    """(nodes, codes, starts) of huffman.paths for the words of a vocabulary."""
    parent = np.empty(2 * counts.size - 1, np.int32)
    bit = np.empty(2 * counts.size - 1, np.uint8)
    huffman.tree(parent, bit, np.append(counts, np.zeros(counts.size - 1, np.int64)))
    starts = np.zeros(counts.size + 1, np.int64)
    nodes, codes = np.empty(0, np.int32), np.empty(0, np.uint8)
    huffman.paths(nodes, codes, starts, parent, bit)
    nodes, codes = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint8)
    huffman.paths(nodes, codes, starts, parent, bit)
    return nodes, codes, starts
