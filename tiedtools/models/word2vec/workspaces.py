"""Workspaces of the threads that train word2vec: each has a kernel, scratch arrays, and a piece of text."""

from typing import Any

import numpy as np

from tiedtools.kernels.base.arrays import aligned, lines
from tiedtools.kernels.base.features import FAST_DOTS
from tiedtools.kernels.base.scalar import mix
from tiedtools.kernels.base.tiles import ROWS
from tiedtools.kernels.word2vec import w2v, w2vtiles, w2vtypes
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.tables import noise_probabilities

ROUND = 6144  # centers, over all threads in lockstep, between two synchronizations
BATCH = 128  # centers with separate negatives per product with L
NONE_FROZEN = np.zeros(0, np.uint8)
STEP = 3  # longest step of a negative that the centers of a run share, in lengths of u
WIDE = 64  # window size above which the band of a run would be mostly empty


def rules(c: Any) -> w2vtypes.Rules:
    """Return the Rules of the kernels for a Config."""
    return w2vtypes.Rules(
        c.window, 1 if c.fixed_window else c.window, c.negative, c.cbow, not c.cbow_sum,
        c.cbow_grad == "exact" and not c.cbow_sum, c.skip_input, c.negations, c.shift
    )  # fmt: skip


def own_negatives(model: Any) -> bool:
    """Return whether each target has separate negatives: as configured, or because sharing would be unstable.

    model  an object with `config` and `occurrences`, such as a Word2Vec
    """
    config = model.config
    top = noise_probabilities(model.occurrences, config.ns_exponent).max()
    strips, *_ = layout(config, top)
    unstable = config.window > WIDE or push(config, top, strips * ROWS) > 1
    in_step = config.deterministic and config.threads > 1
    return config.exact or unstable and not in_step


def layout(config: Any, top: float = 0.0) -> tuple[int, int, int]:
    """Return (strips, run, negatives per run) of w2vtiles; `top` is the largest probability of a negative.

    Training is faster when more centers share more negatives. Vectors composed from rows need twice as many. Models
    tied without a negative shift need more negatives for fewer centers, because pushing a word away from all centers of
    a run also moves the words of other runs. docs/results.md compares other choices. Runs are shortened if, with a
    small vocabulary, many negatives, wide windows, or a high learning rate, a batch would move the most frequent
    negative further than the length of the vectors it is pushed from. They get more negatives if one, which stands for
    many, would move further than STEP.
    """
    if config.shared_negatives:
        return config.shared_negatives
    table = {
        "untied": (1, 32, 6.4 if config.subwords else 3.2),
        "tied": (1, 32, 6.4) if config.shift < 0 else (1, 8, 12.8),
        "signs": (1, 32, 6.4),
        "linear": (4, 16, 3.2 if config.cbow else 6.4),
    }
    strips, longest, ratio = table[config.tying]
    run = int(1 / max(push(config, top, strips), 1e-9)) // ROWS * ROWS
    run = min(max(run, ROWS), longest)
    return strips, run, rounded(max(ratio * config.negative * run / longest, push(config, 1 / STEP, run)))


def push(config: Any, share: float, centers: int) -> float:
    """Return the shift by `centers` of a word that is this share of negatives, in lengths of u, if every sigma is 1."""
    targets = 1 if config.cbow else 2 * config.window if config.fixed_window else config.window + 1
    return centers * share * config.negative * targets * config.lr


def rounded(n: float) -> int:
    """Return the smallest multiple of ROWS that is at least n."""
    return -int(-n // ROWS) * ROWS


class Workspace:
    """Scratch arrays of one thread for its piece of text, and the kernel it runs."""

    def __init__(self, config: Config, longest: int) -> None:
        self.config, self.ids = config, np.empty(longest, np.int32)
        self.text = w2vtypes.Text(*(lines(longest + 1, np.int32) for _ in range(3)))

    def train(self, run: Any, totals: np.ndarray, n: int, lr: float, seed: np.uint64) -> None:
        """Train on the `n` words of `text`, or compute only the loss if `lr` is 0, and add to the totals of `run`."""
        raise NotImplementedError

    def compile(self, run: Any, totals: np.ndarray) -> None:
        """Compile the kernels of `train`; the run is marked as stopped, so that no thread waits for others."""
        self.train(run, totals, 0, 1.0, np.uint64(0))

    def options(self, lr: float, seed: np.uint64) -> tuple[Any, ...]:
        """Return the last arguments, which are common to both kernels."""
        c: Any = self.config
        return rules(c), lr, lr * c.lr_linear, np.uint64(mix(seed))


class OwnNegatives(Workspace):
    """Workspace of w2v.train, with separate negatives per target."""

    def __init__(self, config: Config, longest: int, path: int) -> None:
        super().__init__(config, longest)
        linear = config.tying == "linear"
        # Without L, each center sees the update of the previous one, as in word2vec.c.
        batch = BATCH if linear else 1
        hidden, grad = aligned(batch, config.size), aligned(batch, config.size)
        mapped, back = (aligned(batch, config.size), aligned(batch, config.size)) if linear else (hidden, grad)
        inputs, targets = np.zeros((2, batch, 1 + 2 * config.window), np.int32)
        rows = np.zeros(path + 1 + config.negative, np.int32)
        self.space = w2vtypes.ExactSpace(hidden, mapped, grad, back, inputs, targets, rows)

    def train(self, run: Any, totals: np.ndarray, n: int, lr: float, seed: np.uint64) -> None:
        matrices = w2vtypes.Matrices._make([*run.model.padded, *run.model.frozen, run.model.sizes])
        tree = w2vtypes.Tree._make([*run.tree, run.model.first_node])
        arrays = matrices, totals, run.stop, self.space, self.text, run.noise, tree
        w2v.train(*arrays, n, *self.options(lr, seed))


class Common:
    """Data that threads in lockstep share; otherwise each thread has one Common, and threads share the parameters."""

    def __init__(self, model: Any, layout: tuple[int, int, int], threads: int) -> None:
        strips, run, negatives = self.layout = layout
        batch, span = strips * run, strips * (run + rounded(2 * model.config.window))
        emb_in, emb_out, proj = model.padded
        self.round = max(1, ROUND // (threads * batch))
        uses = (span, batch + strips * negatives) if model.config.cbow else (batch, span + strips * negatives)
        frozen_in, frozen_out = model.frozen
        if model.tied:
            store_in = store_out = store(emb_in, threads, sum(uses) * self.round, frozen_in)
        else:
            store_in = store(emb_in, threads, uses[0] * self.round, frozen_in)
            store_out = store(emb_out, threads, uses[1] * self.round, frozen_out)
        self.stores = w2vtypes.Stores(store_in, store_out, model.tied, model.sizes, model.numbers)
        self.linear = None
        if proj.size:
            local = aligned(threads * len(proj), len(proj)).reshape(threads, *proj.shape) if threads > 1 else proj[None]
            local[:] = proj
            self.linear = proj, local
        barrier = lines(16, np.int64), lines((threads, 8), np.int64), self.round
        self.in_step = w2vtypes.InStep(*barrier) if threads > 1 else None
        self.racing = model.config.threads if threads == 1 else 1


def store(matrix: np.ndarray, threads: int, most: int, frozen: np.ndarray = NONE_FROZEN) -> tuple[Any, ...]:
    """Return a store as described in kernels/word2vec/store.py, for at most `most` changes per round."""
    if threads == 1:
        return matrix, None, frozen
    V, P = matrix.shape
    most = min(V, most)
    slots, changed = lines((threads, V), np.int32), lines((threads, most), np.int32)
    slots[:] = -1
    pending = aligned(threads * most, P, matrix.dtype).reshape(threads, most, P)
    return matrix, (slots, pending, changed, lines((threads, 8), np.int64)), frozen


def banded(rows: int, span: int, step: int, dtype: Any = np.float32) -> tuple[np.ndarray, np.ndarray]:
    """Return (a matrix [rows, span], its cells), where each row starts only `step` cells after the one above."""
    cells = lines(rows * step + span - step, dtype)
    return np.lib.stride_tricks.as_strided(cells, (rows, span), (step * cells.itemsize, cells.itemsize)), cells


def packed(vectors: Any, batch: int, negatives: int, span: int, step: int) -> w2vtypes.Pairs:
    """Return arrays for packed copies of `vectors`, the first fields of a SharedSpace, and of its scores."""
    _, mapped, _, _, around, _, drawn, _ = vectors
    both = [
        aligned(*shape, np.uint32)
        for rows, P in (X.shape for X in (mapped, drawn, around))
        for shape in ((rows, P // 2), (rows // 2, P))
    ]
    far, far_down = (lines(shape, np.uint32) for shape in ((batch, negatives // 2), (batch // 2, negatives)))
    near_down, _ = banded(batch // 2, span, step, np.uint32)
    near = banded(batch, span // 2, step // 2, np.uint32)
    return w2vtypes.Pairs._make([*both, far, far.reshape(-1), far_down, *near, near_down])


class SharedNegatives(Workspace):
    """Workspace of w2vtiles.train, with negatives shared by the centers of a run."""

    def __init__(self, config: Config, longest: int, common: Common, thread: int) -> None:
        super().__init__(config, longest)
        strips, length, negatives = common.layout
        batch, span = strips * length, length + rounded(2 * config.window)
        rows = lambda n: aligned(n, config.size)
        hidden, grad = rows(batch), rows(batch)
        mapped, back = (rows(batch),) * 2 if config.tying == "linear" else (hidden, grad)
        around, d_around, drawn, d_drawn = (
            rows(n) for n in (strips * span, strips * span, strips * negatives, strips * negatives)
        )
        self.targets = None
        if config.cbow:
            column = (batch, 1), np.float32
            self.targets = w2vtypes.Targets(rows(batch), rows(batch), lines(*column), lines(*column))
        sizes = (batch, negatives), (batch, negatives), batch
        rows_in = strips * span if config.cbow else batch
        words = batch, batch, batch, strips * span, rows_in, strips * negatives, strips * negatives
        self.linear = None
        half = config.precision == "bfloat16"
        if common.linear:
            (proj, local_proj), P = common.linear, hidden.shape[1]
            steps = aligned(P, P) if common.racing > 1 else local_proj[thread]
            shapes = *[(batch, P // 2)] * 2, (P, P // 2), *[(P // 2, P)] * 2, *[(batch // 2, P)] * 2
            bf16 = tuple(aligned(*shape, np.uint32) if half else None for shape in shapes)
            self.linear = w2vtypes.Linear(proj, local_proj, steps, None if half else aligned(P, P), bf16)
        self.common, self.thread = common, thread
        floats, ids = [lines(size, np.float32) for size in sizes], [lines(n, np.int32) for n in words]
        vectors = hidden, mapped, grad, back, around, d_around, drawn, d_drawn
        bands = [lines((rows // ROWS, 2), np.int32) for rows in (batch, strips * span)]
        all_half = half and (FAST_DOTS or config.tying != "linear")  # matrix units are faster only with L
        # With one strip, rows may overlap outside the band of the windows.
        step = span - length + ROWS if strips == 1 else span
        views, cells = zip(*(banded(batch, span, step) for _ in range(2)))
        pairs = packed(vectors, batch, negatives, span, step) if all_half else w2vtypes.Pairs(*[None] * 12)
        self.space = w2vtypes.SharedSpace._make(
            [*vectors, *views, *cells, *bands, *floats, *ids, lines(strips, np.int64), pairs]
        )

    def train(self, run: Any, totals: np.ndarray, n: int, lr: float, seed: np.uint64) -> None:
        common = self.common
        w2vtiles.train(
            common.stores, self.linear, self.targets, common.in_step, totals, run.stop, self.space, self.thread,
            common.racing, self.text, run.noise, n, *self.options(lr, seed),
        )  # fmt: skip
