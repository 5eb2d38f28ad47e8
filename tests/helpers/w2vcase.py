"""A small random model for testing the word2vec kernels, and a text with topics for testing training."""

import copy
import tempfile

import numpy as np
import reference

from tiedtools.kernels.base.arrays import aligned
from tiedtools.kernels.word2vec import w2v
from tiedtools.kernels.word2vec.w2vtypes import ExactSpace, Matrices, Text, Tree
from tiedtools.models.word2vec import workspaces
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.tables import huffman_tree, noise_table
from tiedtools.text.encoding import EncodedText
from tiedtools.text.vocab import Vocab

V, M = 12, 7
TYINGS = {"untied": {}, "tied": dict(tying="tied"), "signs": dict(tying="signs"), "linear": dict(tying="linear")}
# Of CBOW: means or sums; of both: fixed or random windows.
RULES = [
    *(dict(cbow=True, cbow_sum=True, cbow_grad=grad, scale=0.3) for grad in ("ctool", "exact")),
    *(dict(cbow=True, fixed_window=True, cbow_grad=grad) for grad in ("ctool", "exact")),
    dict(cbow=True, cbow_sum=True, fixed_window=True, cbow_grad="exact", scale=0.3),
    dict(cbow=False, fixed_window=True, cbow_sum=True, cbow_grad="exact"),  # no effect of the last two
]
EACH_INPUT = [dict(cbow=True), dict(cbow=True, cbow_sum=True), dict(cbow=False), dict(cbow=False, fixed_window=True)]
TOPICS, WORDS = 8, 6


def label(options):
    """Return options as the name of a test case."""
    return "-".join(name if value is True else str(value) for name, value in options.items())


def has_gradient(options):
    """Return whether the update is the gradient of the loss, unlike word2vec.c's for means."""
    return options["cbow_grad"] == "exact" or not options["cbow"] or options.get("cbow_sum", False)


def sentences(*lists):
    """Return (tokens, begins, ends) in the format of sampling.subsample."""
    ends = np.cumsum([len(s) for s in lists])
    spans = [(end - len(s), end) for s, end in zip(lists, ends) for _ in s]
    return tuple(np.array(a, np.int32) for a in (np.concatenate(lists), *zip(*spans)))


class Case:
    """Kernel arguments with zero-padded rows; `parameters` are views without the padding.

    tying  key of TYINGS. Scores are shifted, and fixed signs negate 3 of the M dimensions, unless `options` differ.
    """

    text = sentences([3, 5, 3, 8, 1], [2], [7, 11, 4, 9, 6, 10, 2])  # a word twice in a window; a one-word sentence

    def __init__(self, batch=1, dtype=np.float64, scale=0.5, seed=3, cbow=True, tying="untied", **options):
        given = dict(architecture="cbow" if cbow else "skipgram", window=3, negated=0.4, shift=-0.7)
        self.config = Config(size=M, **given | TYINGS[tying] | options)
        rng = np.random.default_rng(seed)
        counts = np.sort(rng.integers(5, 100, V))[::-1].astype(np.int64)
        exponent, none = self.config.ns_exponent, np.zeros((0, 2), np.uint32)
        self.noise = noise_table(counts, exponent) if self.config.negative else none
        empty = np.zeros(0, np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int64)
        self.tree = huffman_tree(counts) if self.config.hs else empty
        self.first_node = V if self.config.negative else 0
        self.batch, self.dtype = batch, dtype

        def draw(rows, used):
            matrix = aligned(rows, M, dtype)
            matrix[:used, :M] = rng.normal(0, scale, (used, M))
            return matrix

        self.emb_in = draw(V, V)
        rows = self.first_node + (V - 1 if self.config.hs else 0)
        self.emb_out = draw(rows, rows) if self.config.tying == "untied" else self.emb_in
        self.proj = draw(self.emb_in.shape[1], M) if self.config.tying == "linear" else np.zeros((0, 0), dtype)

    @property
    def rules(self):
        return workspaces.rules(self.config)

    @property
    def signs(self):
        """Diagonal of the matrix of signs; all 1 in other models."""
        return reference.signs(M, self.config)

    @property
    def text_lists(self):
        return [array.tolist() for array in self.text]

    @property
    def padded(self):
        named = dict(emb_in=self.emb_in, proj=self.proj)
        return named | ({} if self.emb_out is self.emb_in else dict(emb_out=self.emb_out))

    @property
    def parameters(self):
        return {name: array[: M if name == "proj" else None, :M] for name, array in self.padded.items()}

    def copy(self, dtype=None):
        twin = copy.copy(self)
        twin.dtype = dtype or self.dtype
        twin.emb_in, twin.proj = self.emb_in.astype(twin.dtype), self.proj.astype(twin.dtype)
        twin.emb_out = twin.emb_in if self.emb_out is self.emb_in else self.emb_out.astype(twin.dtype)
        return twin

    def assert_close(self, expected, atol):
        """Check that the parameters are as expected and that the padding is still zero."""
        for name, array in self.parameters.items():
            np.testing.assert_allclose(array, expected.parameters[name], atol=atol, err_msg=name)
            assert np.count_nonzero(self.padded[name]) == np.count_nonzero(array), name


class Exact(Case):
    """A case trained by w2v.train or by its reference."""

    frozen = np.zeros((2, 0), np.uint8)

    def kernel(self, lr, lr_proj, seed=99, stop=0):
        """Train with the kernel; returns (nats, predictions, stop flag)."""
        rows = lambda: aligned(self.batch, M, self.dtype)
        hidden, grad = rows(), rows()
        mapped, back = (rows(), rows()) if self.proj.size else (hidden, grad)
        totals, flag = np.zeros(2), np.full(1, stop, np.uint8)
        inputs, targets = np.zeros((2, self.batch, 1 + 2 * self.config.window), np.int32)
        space = ExactSpace(hidden, mapped, grad, back, inputs, targets, np.zeros(100, np.int32))
        w2v.train(
            Matrices(self.emb_in, self.emb_out, self.proj, *self.frozen), totals, flag, space, Text(*self.text),
            self.noise, Tree(*self.tree, self.first_node), len(self.text[0]), self.rules, lr, lr_proj, np.uint64(seed),
        )  # fmt: skip
        return *totals, flag[0]

    def reference(self, lr, lr_proj, seed=99):
        return reference.word2vec(
            self.emb_in, self.emb_out, self.proj, self.text_lists, self.noise.tolist(), self.tree,
            self.first_node, self.config, self.batch, lr, lr_proj, seed,
        )  # fmt: skip


def assert_tied_update_is_the_sum_of_both_roles(kind, tying, **options):
    """Check dS = dU + dV (Press and Wolf 2017, section 3): the tied gradient is the sum of the two untied ones.

    With fixed signs L, U = S L and V = S in the untied model, and dS = dU L + dV.
    """
    rate = 1e-9
    tied = kind(tying=tying, skip_input=False, cbow_grad="exact", **options)
    untied, L, start = kind(cbow_grad="exact", **options), tied.signs, tied.emb_in[:, :M].copy()
    untied.emb_in[:, :M], untied.emb_out[:, :M] = start * L, start
    tied.kernel(rate, rate)
    untied.kernel(rate, rate)
    roles = (untied.emb_in[:, :M] * L - start) + (untied.emb_out[:, :M] - start)
    np.testing.assert_allclose((tied.emb_in[:, :M] - start) / rate, roles / rate, atol=1e-5)
    assert np.abs(roles).max() > 0 and (tying == "tied") == (L > 0).all()


def assert_tied_l_at_rate_0_equals_fixed_signs(kind, tying, **options):
    """Check that training tied vectors, or with fixed signs, is bit for bit tied+L with the same matrix as L."""
    fixed, linear = (kind(tying=t, cbow_grad="exact", dtype=np.float32, **options) for t in (tying, "linear"))
    linear.emb_in[:] = fixed.emb_in
    linear.proj[:M, :M] = np.diag(fixed.signs)
    start = fixed.emb_in.copy()
    assert fixed.kernel(0.1, 0) == linear.kernel(0.1, 0)
    assert (fixed.emb_in == linear.emb_in).all() and (fixed.emb_in != start).any()


def encoded(ids, vocab=None):
    file = tempfile.TemporaryFile(buffering=0)
    file.write(ids)
    return EncodedText(vocab, file, ids.size, ids.size)


def topic_text(lines=3000, seed=0):
    """Lines of ten words, each line on one topic: words of a topic should get similar vectors."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(TOPICS, size=(lines, 1))
    ids = np.zeros((lines, 11), np.int32)
    ids[:, :10] = 1 + topic * WORDS + rng.integers(WORDS, size=(lines, 10))
    counts = np.bincount(ids.ravel(), minlength=1 + TOPICS * WORDS)
    vocab = Vocab(["</s>"] + [f"t{t}w{w}" for t in range(TOPICS) for w in range(WORDS)], counts)
    return vocab, encoded(ids.ravel(), vocab)


VARIANTS = {
    "cbow": dict(), "cbow-signs": dict(tying="signs"), "cbow-linear": dict(tying="linear"),
    "cbow-sum-fixed": dict(cbow_sum=True, fixed_window=True, ns_exponent=0.5, lr=0.01),
    "skipgram": dict(architecture="skipgram"), "skipgram-tied": dict(architecture="skipgram", tying="tied"),
    "skipgram-tied-pmi": dict(architecture="skipgram", tying="tied", fit_pmi=True, min_alpha=0.01),
    "skipgram-signs": dict(architecture="skipgram", tying="signs"),
    "skipgram-linear": dict(architecture="skipgram", tying="linear"), "cbow-hs": dict(hs=True, negative=0),
    "skipgram-hs-negative": dict(architecture="skipgram", hs=True), "cbow-exact": dict(exact=True),
    "cbow-ngrams": dict(subwords="ngrams", buckets=500, lr=0.005, deterministic=True),
    "skipgram-linear-ngrams": dict(architecture="skipgram", tying="linear", subwords="ngrams"),
    "skipgram-tied-ngrams-exact": dict(architecture="skipgram", tying="tied", subwords="ngrams", exact=True),
    "cbow-signs-exact": dict(tying="signs", exact=True),
    "cbow-tied-sum-exact": dict(tying="tied", cbow_sum=True, exact=True),
    "skipgram-linear-exact": dict(architecture="skipgram", tying="linear", exact=True, fixed_window=True),
}  # fmt: skip
