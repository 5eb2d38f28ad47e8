"""Workspaces of threads that train vectors composed from rows: each piece of text has a matrix of its words' vectors.

See kernels/word2vec/composed.py. The local matrix is trained by the same kernels as that of a model with a vector per
word. Threads of an untied model share its output matrix as usual. If the model is tied, draws separate negatives per
target, or has several threads in lockstep, output vectors are local as well, and so are the numbers of words; negatives
are then drawn from a sample of the vocabulary.
"""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from tiedtools.kernels.base.arrays import CACHE_LINE, aligned, lines
from tiedtools.kernels.base.barrier import wait_for_all
from tiedtools.kernels.base.scalar import mix
from tiedtools.kernels.word2vec import composed, store, windows
from tiedtools.models.word2vec import workspaces
from tiedtools.models.word2vec.tables import noise_probabilities
from tiedtools.models.word2vec.workspaces import OwnNegatives, SharedNegatives, Workspace

SHARED, OWN = 1000, 200  # tokens of a piece of composed vectors, with shared and with separate negatives per target
# Occurrences of a row's words, times the learning rate, whose changes are added in full: a fraction of those that move
# a row 1 - 1/e of the way to its optimum (exchange.SATURATION). Rows of a tied model change on both sides; in CBOW, a
# word shares its changes with the other words of the contexts.
SATURATION = {"tied": 0.5, "CBOW": 2.0, "skip-gram": 1.0}
SAMPLED = 1.0  # words sampled for the negatives of a piece, per token
LINE = CACHE_LINE // 4  # columns of a cache line
LARGEST = 1 << 14  # most words sampled for the negatives of a piece


class Side:
    """The local vectors of the words of each thread's piece, composed from the rows of a matrix.

    matrix        [rows, P];  frozen  uint8 [rows]: rows that are never changed; [0]: none
    starts, rows  the rows of each word, and `sizes`, how many each row stands for; see vectors.ngrams.Ngrams
    words         int32 [threads in lockstep, most]: the words of each thread's piece
    occurs        float32 [threads, most]: their occurrences
    X, before     [threads * most, P]: their vectors; and those before training, then their changes
    """

    def __init__(self, matrix: Any, frozen: Any, starts: Any, rows: Any, sizes: Any, words: Any, occurs: Any) -> None:
        self.matrix, self.frozen, self.starts, self.rows = matrix, frozen, starts, rows
        self.words, self.occurs, self.row_sizes = words, occurs, sizes.astype(np.float32)
        threads, most = words.shape
        self.X, self.before = aligned(threads * most, matrix.shape[1]), aligned(threads * most, matrix.shape[1])
        self.sizes, self.entries = np.zeros((2, threads), np.int64)
        lengths = np.diff(starts)
        self.counts = np.add.reduceat(self.row_sizes[rows], starts[:-1])
        longest = int(np.sort(lengths)[-most:].sum()) * threads
        distinct = min(longest, len(matrix)) + 1
        entries, owners, users = (longest, np.int32), (longest, np.int32), (longest, np.int32)
        shapes = entries, owners, (distinct, np.int32), (distinct, np.int64), users, (distinct, np.float32)
        self.lists = [[lines(*shape) for shape in (*shapes, (len(matrix), np.int32))] for _ in range(threads)]
        for *_, place in self.lists:
            place[:] = -1
        if frozen.size:  # which words have no other rows
            counts = np.add.reduceat(frozen[rows].astype(np.int64), starts[:-1])
            self.immobile = (counts == lengths).astype(np.uint8)

    def compose(self, thread: int, size: int) -> None:
        """Compose the vectors of the first `size` words of the thread's piece."""
        self.sizes[thread] = size
        most, (entries, owners, *_) = self.words.shape[1], self.lists[thread]
        own = slice(first := thread * most, first + size)
        table = self.starts, self.rows, self.words[thread, :size], first
        arrays = self.X[own], self.before[own], self.matrix, self.row_sizes, self.counts
        self.entries[thread] = composed.compose(*arrays, entries, owners, *table)

    def change(self, thread: int) -> None:
        """Compute the changes of the words of the thread's piece, in the place of their vectors before training."""
        piece = slice(first := thread * self.words.shape[1], first + self.sizes[thread])
        np.subtract(self.X[piece], self.before[piece], out=self.before[piece])

    def spread(self, thread: int, limit: float, racing: int) -> None:
        """Add the changes of all threads' words to this thread's columns of the matrix."""
        threads, most = self.words.shape
        n, (entries, owners, *lists) = self.entries[thread], self.lists[thread]
        if threads > 1:
            n = 0
            for t in range(threads):
                words = self.words[t, : self.sizes[t]]
                n += composed.list_rows(entries[n:], owners[n:], self.starts, self.rows, words, t * most)
        low, high = (t * self.matrix.shape[1] // LINE // threads * LINE for t in (thread, thread + 1))
        all_lists = tuple(lists), entries[:n], owners[:n], self.occurs.reshape(-1)
        composed.spread(self.matrix, self.frozen, self.before, *all_lists, low, high, limit, racing)


class Common:
    """Data that threads in lockstep share; otherwise each thread has one Common, and threads share the parameters.

    sides   the Sides of local vectors: of inputs, and of outputs unless the model is tied or `direct`
    direct  whether threads train the output matrix itself, with the words' own numbers
    """

    def __init__(self, model: Any, longest: int, own: bool, threads: int) -> None:
        c, ngrams, V = model.config, model.ngrams, len(model.vocab)
        self.direct = not (own or threads > 1 or model.tied)
        each = SAMPLED if not own else c.negative * (1 if c.cbow else c.window + 1)
        self.draws = lambda n: min(int(n * each) + 1, LARGEST)
        self.most = longest + (0 if self.direct else self.draws(longest))
        self.words, self.occurs = (lines((threads, self.most), kind) for kind in (np.int32, np.float32))
        (emb_in, emb_out, self.proj), frozen = model.padded, model.frozen
        self.sides = [Side(emb_in, frozen[0], ngrams.starts, ngrams.rows, ngrams.sizes, self.words, self.occurs)]
        if not (model.tied or self.direct):
            every, own = np.arange(V + 1), np.arange(V, dtype=np.int32)
            self.sides.append(Side(emb_out, frozen[1], every, own, np.ones(V), self.words, self.occurs))
        self.gate, self.threads = lines(16, np.int64), threads
        self.local = self.proj[None]
        if threads > 1:
            self.local = aligned(threads * len(self.proj), len(self.proj)).reshape(threads, *self.proj.shape)


class Pieces(Workspace):
    """Workspace of a thread for a model whose input vectors are composed, with a workspace for its local matrices.

    own     whether each target has separate negatives
    common  a Common; threads in lockstep share one, and `thread` is the number of this thread among them
    """

    def __init__(self, model: Any, longest: int, own: bool, common: Common, thread: int = 0) -> None:
        super().__init__(model.config, longest)
        self.common, self.thread, self.tied, c = common, thread, model.tied, model.config
        lockstep, most = common.threads > 1, common.most
        X = [side.X[thread * most : (thread + 1) * most] for side in common.sides]
        self.frozen = [np.zeros(most if side.frozen.size else 0, np.uint8) for side in common.sides]
        self.numbers = lines(len(model.vocab), np.int32)
        self.numbers[:] = -1
        # The number of rows weighs a word in CBOW's mean over the rows of all context words.
        self.sizes = np.ones(most, np.float32) if c.cbow and not c.cbow_sum else None
        self.local = SimpleNamespace(
            config=c, vocab=model.vocab, tied=model.tied, padded=(X[0], X[-1], common.local[thread]), numbers=None,
            frozen=(self.frozen[0], self.frozen[-1]), first_node=0, sizes=self.sizes,
        )  # fmt: skip
        if common.direct:
            self.local.padded, self.local.numbers = (X[0], *model.padded[1:]), self.numbers
            self.local.frozen = self.frozen[0], model.frozen[1]
            self.local.sizes = None if self.sizes is None else common.sides[0].counts
        self.inner: Any = OwnNegatives(c, longest, 0) if own else None
        if not own:
            top = noise_probabilities(model.occurrences, c.ns_exponent).max()
            inner = workspaces.Common(self.local, workspaces.layout(c, top), 1)
            inner.racing = 1 if lockstep else c.threads
            self.inner = SharedNegatives(c, longest, inner, 0)
        self.inner.text = self.text
        self.noise, self.drawn = lines((most, 2), np.uint32), lines(most, np.int32)
        self.scratch = lines(most, np.float64), lines(most, np.int64), lines(most, np.int64)

    def train(self, run: Any, totals: np.ndarray, n: int, lr: float, seed: np.uint64) -> None:
        common, thread = self.common, self.thread
        words, tokens, noise = common.words[thread], self.text.tokens[:n], run.noise
        drawn = self.drawn[: 0 if common.direct else common.draws(n)]
        tokens = tokens.copy() if common.direct else tokens  # which become local numbers
        occurs = common.occurs[thread]
        known = inputs = composed.number(words, 0, self.numbers, tokens, occurs, 1)
        if not common.direct:
            start = np.uint64(mix(np.uint64(mix(np.uint64(mix(seed))))))  # that of the negatives is mixed twice
            windows.draw(drawn, run.noise, start)
            known = composed.number(words, inputs, self.numbers, drawn, occurs, int(self.tied))
            noise = self.noise[:known]
            composed.local_noise(noise, drawn, *(array[:known] for array in self.scratch))
            if self.sizes is not None:
                self.sizes[:known] = common.sides[0].counts[words[:known]]
        for k, side in enumerate(common.sides):
            side.compose(thread, known if self.tied or k else inputs)
            if side.frozen.size:
                self.frozen[k][:known] = side.immobile[words[:known]]
        if common.threads > 1:
            common.local[thread] = common.proj
        local = SimpleNamespace(model=self.local, noise=noise, tree=run.tree, stop=run.stop)
        self.inner.train(local, totals, n, lr, seed)
        self.numbers[words[:known]] = -1
        if not lr:
            return
        stopped, gate = run.stop[0] != 0, common.gate
        for side in common.sides:
            side.change(thread)
        if stopped:
            gate = np.zeros_like(gate)  # other threads may never arrive
        if common.threads > 1 and not wait_for_all(gate, common.threads, run.stop) and not stopped:
            return
        limit = SATURATION["tied" if self.tied else "CBOW" if self.config.cbow else "skip-gram"]
        racing = 1 if common.threads > 1 else self.config.threads
        if not stopped:
            for side in common.sides:
                side.spread(thread, limit / lr, racing)
        if common.threads > 1:
            if not stopped:
                store.merge_proj(common.proj, common.local, thread)
            wait_for_all(gate, common.threads, run.stop)

    def compile(self, run: Any, totals: np.ndarray) -> None:
        super().compile(run, totals)
        for side in self.common.sides:
            side.spread(self.thread, 1.0, 1)  # changes of 0
        if self.common.threads > 1:
            self.common.local[:] = self.common.proj
            store.merge_proj(self.common.proj, self.common.local, self.thread)


def piece_length(model: Any, scoring: bool = False) -> float:
    """Return the most tokens of a piece of text; `scoring`: for the loss, with separate negatives per target."""
    if not model.ngrams:
        return math.inf
    return OWN if scoring or workspaces.own_negatives(model) else SHARED


def threads_of(model: Any, longest: int, path: int, scoring: bool = False) -> list[Workspace]:
    """Return a Workspace for each thread that trains `model` on pieces of at most `longest` tokens.

    path     largest number of inner nodes on a path of the Huffman tree; 0 without a tree
    scoring  whether they only compute the loss
    """
    c, numbers = model.config, range(model.config.threads)
    own = scoring or workspaces.own_negatives(model)
    lockstep = c.deterministic and not own
    if model.ngrams:
        longest = max(longest, int(piece_length(model, scoring)))
        if lockstep:
            common = Common(model, longest, own, c.threads)
            return [Pieces(model, longest, own, common, t) for t in numbers]
        return [Pieces(model, longest, own, Common(model, longest, own, 1)) for _ in numbers]
    if own:
        return [OwnNegatives(c, longest, path) for _ in numbers]
    shape = workspaces.layout(c, noise_probabilities(model.occurrences, c.ns_exponent).max())
    if not lockstep:
        return [SharedNegatives(c, longest, workspaces.Common(model, shape, 1), 0) for _ in numbers]
    shared = workspaces.Common(model, shape, c.threads)
    return [SharedNegatives(c, longest, shared, t) for t in numbers]
