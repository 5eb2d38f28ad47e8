"""A training run of word2vec: pieces of text for threads, and for each the kernel with its scratch space."""

import contextlib
import dataclasses

import numpy as np

from tiedtools import checkpoints, hogwild, interrupts
from tiedtools.errors import Diverged, TiedtoolsError
from tiedtools.kernels import sampling, w2v, w2vtiles
from tiedtools.kernels.scalar import mix
from tiedtools.kernels.tiles import ROWS, aligned
from tiedtools.models.word2vectables import huffman_tree, keep_thresholds, noise_probabilities, noise_table
from tiedtools.report import compiling

CHUNK = 10_000  # tokens between two looks at the learning rate, as in word2vec.c
LOWEST_LR = 1e-4  # of alpha
ROUND = 6144  # centres that threads in step train on between two waits, all together
BATCH = 128  # centres of the exact kernel to one product with L
WIDE = 64  # windows beyond which the band of a run would be mostly empty


def layout(config, share=0.0):
    """(strips, run, negatives of a run) of w2vtiles, `share` being the largest probability of a negative.

    The more centres share the more negatives, the faster; the tied models need more negatives to fewer centres, since
    what pushes a word away from all the centres of a run moves the words of other runs with it. docs/results.md has
    what other choices are worth. Runs are shorter where, with few words, many negatives, wide windows or a high rate, a
    batch would push the most frequent negative further than by the vectors it is pushed from.
    """
    if config.batch:
        return config.batch
    table = {"untied": (1, 32, 3.2), "tied": (1, 8, 6.4), "linear": (4, 16, 3.2 if config.cbow else 12.8)}
    strips, longest, ratio = table[config.sharing]
    run = int(1 / max(push(config, share, strips), 1e-9)) // ROWS * ROWS
    run = min(max(run, ROWS), longest)
    return strips, run, rounded(ratio * config.negative * run / longest)


def push(config, share, centres):
    """How far `centres` move the most frequent negative in one step, in lengths of u, while every sigma is 1."""
    targets = 1 if config.cbow else config.window + 1
    return centres * share * config.negative * targets * config.alpha


def rounded(n):
    """The first multiple of ROWS from n on."""
    return -int(-n // ROWS) * ROWS


def lines(shape, dtype):
    """Zeros on cache lines of their own: what one thread writes must not lie beside what another one reads."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return aligned(1, -(-size // 128) * 128, np.uint8)[0, :size].view(dtype).reshape(shape)


FIGURES = dict(epoch=int, loss=float | None, seconds=float, lr=float, words_per_s=int)


class Run:
    """One training run of a Word2Vec on an EncodedText. `go` may take hours; making one tells mistakes at once.

    checkpoint  path of a file to which the run is written at the beginning, about each epoch's end, every `minutes` (0:
                not), when a signal stops it and at the end
    resume      go on from `checkpoint`: the same parameters, to the bit, as of a run that was never stopped, with one
                thread or with several in step

    Raises TiedtoolsError for a checkpoint of another run.
    """

    def __init__(self, model, text, checkpoint=None, minutes=0.0, resume=False):
        config = model.config
        self.model, self.text = model, text
        self.cuts = chunk_bounds(text)
        # So many threads take their pieces together; those that are left without one go with the others to the end.
        self.team = config.threads if config.deterministic else 1
        self.jobs = -(-config.iter * (len(self.cuts) - 1) // self.team) * self.team
        self.total = config.iter * text.size
        self.keep = keep_thresholds(model.vocab.counts, config.sample)
        self.noise = noise_table(model.vocab.counts) if config.negative else np.zeros((0, 2), np.uint32)
        no_tree = tuple(np.zeros(0, kind) for kind in (np.int32, np.uint8, np.int64))
        self.tree = huffman_tree(model.vocab.counts) if config.hs else no_tree
        self.stop = np.zeros(1, np.uint8)
        # For each thread and epoch: nats, predictions, tokens. A cache line apart, so that threads share none.
        self.totals = lines((config.threads, config.iter, 8), np.float64)
        self.next, self.pausing = 0, False  # the job to be done next; whether none may begin now
        self.history, self.elapsed = [], 0.0
        self.checkpoint = None
        if checkpoint is not None:
            same = checkpoints.identity(self.options(), text=text.parts())
            self.checkpoint = checkpoints.Checkpoint(checkpoint, same, model.vocab, minutes)
            if resume:
                self.load(self.checkpoint)
        share = noise_probabilities(model.vocab.counts).max()
        self.layout = layout(config, share)
        too_much = config.window > WIDE or push(config, share, self.layout[0] * ROWS) > 1
        self.exact = config.exact or too_much and self.team == 1
        threads = range(config.threads)
        if self.team > 1:
            shared = InStep(model, self.layout, config.threads)
            self.places = [Tiles(self, shared, t) for t in threads]
        else:
            self.places = [self.place_alone() for _ in threads]

    def place_alone(self):
        return Exact(self) if self.exact else Tiles(self, InStep(self.model, self.layout, 1), 0)

    def options(self):
        """What must be the same for the numbers to be: those of threads that race never are."""
        options = {"kind": self.model.kind, **dataclasses.asdict(self.model.config)}
        if self.team == 1:
            del options["threads"]
        return options

    def go(self, report):
        """Train. Raises Diverged or KeyboardInterrupt, the parameters being those of that moment, all finite.

        Raises TiedtoolsError where there is nothing to predict.
        """
        self.report = report
        for figures in self.history:
            report.write(**figures)
        self.compile(report.verbosity)
        with interrupts.deferred() if self.checkpoint else contextlib.nullcontext():
            if self.checkpoint:
                self.checkpoint.write(*self.contents())  # tells at once where nothing can be written
            while self.next < self.jobs:
                interrupts.check()
                self.pausing = False
                hogwild.run(self.work, self.pieces(), self.model.config.threads, self.ask_to_stop, self.tick)
                self.tick()
                if self.checkpoint:
                    self.checkpoint.attempt(report, *self.contents())
        if not self.totals[:, :, 1].any():
            raise TiedtoolsError(
                "no word has another one beside it to predict; give longer lines, or thin the text out less (-sample 0)"
            )

    def pieces(self):
        """Jobs in order. It pauses where each that has begun can be done: none of threads in step goes alone."""
        while self.next < self.jobs and not (self.pausing and self.next % self.team == 0):
            self.next += 1
            yield self.next - 1

    def work(self, thread, job):
        """Train on one piece of one epoch. What happens depends on the job's number, not on the thread.

        Threads in step have one each of as many jobs as they are, since none is done before all have begun: whichever
        it was given, a thread takes its own.
        """
        if self.team > 1:
            job += thread - job % self.team
        epoch, piece = divmod(job, len(self.cuts) - 1)
        start, end = self.cuts[piece : piece + 2]
        if epoch >= self.model.config.iter:
            epoch, start, end = self.model.config.iter - 1, 0, 0
        seed = np.uint64(mix(np.uint64(self.model.config.seed << 32 ^ job)))
        place = self.places[thread]
        n = sampling.thin(*place.tokens, self.text.read(start, place.ids[: end - start]), self.keep, seed)
        place.train(self.totals[thread, epoch], n, self.lr(epoch * self.text.size + start), seed)
        self.totals[thread, epoch, 2] += end - start
        if self.stop[0] == w2v.NAN:
            raise Diverged(
                f"training diverged at {self.done / self.total:.1%} (a score beyond {w2v.DIVERGED:g});"
                " lower -alpha or --lr-linear. What is written is the state before"
            )

    def lr(self, done):
        return self.model.config.alpha * max(1 - done / (self.total + 1), LOWEST_LR)

    def compile(self, verbosity=0):
        """Have the kernels compiled, in this thread, where Ctrl-C is heard."""
        with compiling(verbosity):
            place = self.place_alone()
            sampling.thin(*place.tokens, place.ids[:0], self.keep, np.uint64(0))
            place.train(self.totals[0, 0], 0, 1.0, np.uint64(0))

    def ask_to_stop(self):
        self.stop[0] = max(self.stop[0], w2v.STOP)

    @property
    def done(self):
        return int(self.totals[:, :, 2].sum())

    def tick(self):
        """Tell the progress, and each epoch once when its last piece is done; pause for a checkpoint."""
        if not self.checkpoint:
            interrupts.check()
        elif self.checkpoint.due:
            self.pausing = True
        nats, predictions, tokens = self.totals.sum(0)[:, :3].T
        loss = nats / np.maximum(predictions, 1)
        done = int(tokens.sum())
        epoch = min(int(np.count_nonzero(tokens)), len(tokens)) - 1
        self.report.update(done, loss[epoch], self.lr(done))
        while (e := len(self.history)) < len(tokens) and tokens[e] == self.text.size:
            self.pausing = self.checkpoint is not None
            seconds = self.report.seconds
            figures = dict(
                epoch=e + 1,
                loss=loss[e] if predictions[e] else None,
                seconds=round(seconds, 3),
                lr=self.lr((e + 1) * self.text.size),
                words_per_s=round(done / seconds),
            )
            self.history.append(figures)
            self.report.epoch(**figures)

    @property
    def figures(self):
        """What has come of the run so far: epochs done, and the loss of the last one, None where unknown."""
        return dict(epochs=len(self.history), loss=self.history[-1]["loss"] if self.history else None)

    def contents(self):
        """(progress, arrays) of a checkpoint."""
        progress = dict(next=self.next, history=self.history, elapsed=self.report.seconds)
        return progress, dict(self.model.arrays, totals=self.totals.sum(0)[:, :3])

    def check(self, progress, arrays):
        """Raise one of modelfile.WRONG unless a checkpoint has all that `contents` gives of such a run."""
        types = dict(next=int, history=list, elapsed=float)
        checkpoints.check_progress(progress, types, self.model.config.iter, FIGURES)
        if progress["next"] > self.jobs:
            raise ValueError("its pieces of text cannot be")
        checkpoints.check_arrays(arrays, dict(self.model.arrays, totals=self.totals[0, :, :3]))
        _, predictions, tokens = arrays["totals"].T
        if (predictions < 0).any() or (tokens < 0).any() or (tokens > self.text.size).any():
            raise ValueError("its words cannot be")

    def load(self, checkpoint):
        progress, arrays = checkpoint.read(self.check)
        for name, value in progress.items():
            setattr(self, name, value)
        self.totals[0, :, :3] = arrays["totals"]
        for name, array in self.model.arrays.items():
            array[:] = arrays[name]


def run_memory(vocab, config, row):
    """Bytes that a Run takes, `row` of them for a row of its matrices."""
    V, threads = len(vocab), config.threads
    strips, run, each = layout(config, noise_probabilities(vocab.counts).max())
    batch, span = strips * run, strips * (run + rounded(2 * config.window))
    places = threads * (row * (6 * batch + 2 * span + 2 * strips * each) + 16 * batch * span + 8 * batch * each)
    tables = V * (12 + 40 * (config.sharing != "untied"))  # the 40 for a moment, before emb_out is there
    pending = 0
    if config.deterministic and threads > 1:
        changes = 2 * (batch + span + strips * each) * max(1, ROUND // (threads * batch))
        stores = 1 if config.sharing != "untied" else 2
        pending = threads * (4 * V * stores + row * min(changes, stores * V) + row**2 // 4)
    return places + tables + pending


class Place:
    """Where one thread keeps its piece of text, and the kernel that it runs."""

    def __init__(self, run):
        longest = int(np.diff(run.cuts).max())
        self.run = run
        self.ids = np.empty(longest, np.int32)
        self.tokens = tuple(lines(longest + 1, np.int32) for _ in range(3))

    def options(self, lr, seed):
        """The last arguments of either kernel."""
        c = self.run.model.config
        return (
            c.window, c.negative, c.cbow, c.cbow_grad == "exact", c.skip_input, lr, lr * c.lr_linear,
            np.uint64(mix(seed)),
        )  # fmt: skip


class Exact(Place):
    """w2v.train"""

    def __init__(self, run):
        super().__init__(run)
        config = run.model.config
        linear = config.sharing == "linear"
        # Without L each centre sees the update of the one before, as in word2vec.c.
        batch = BATCH if linear else 1
        hidden, grad = aligned(batch, config.size), aligned(batch, config.size)
        mapped, back = (aligned(batch, config.size), aligned(batch, config.size)) if linear else (hidden, grad)
        path = int(np.diff(run.tree[2]).max()) if config.hs else 0
        inputs, targets = np.zeros((2, batch, 1 + 2 * config.window), np.int32)
        self.scratch = hidden, mapped, grad, back, inputs, targets, np.zeros(path + 1 + config.negative, np.int32)

    def train(self, totals, n, lr, seed):
        run = self.run
        w2v.train(
            *run.model.padded, totals, run.stop, *self.scratch, *self.tokens, run.noise, *run.tree, n,
            run.model.first_node, *self.options(lr, seed),
        )  # fmt: skip


class InStep:
    """What threads in step have in common; one on its own is in step with itself, and shares but the parameters."""

    def __init__(self, model, layout, threads):
        strips, run, each = self.layout = layout
        batch, span = strips * run, strips * (run + rounded(2 * model.config.window))
        emb_in, emb_out, proj = model.padded
        self.round = max(1, ROUND // (threads * batch))
        uses = (span, batch + strips * each) if model.config.cbow else (batch, span + strips * each)
        if model.tied:
            self.store_in = self.store_out = store(emb_in, threads, sum(uses) * self.round)
        else:
            self.store_in = store(emb_in, threads, uses[0] * self.round)
            self.store_out = store(emb_out, threads, uses[1] * self.round)
        self.proj, self.local_proj = proj, np.repeat(proj[None], threads, 0) if threads > 1 else proj[None]
        self.gate, self.active = lines(16, np.int64), lines((threads, 8), np.int64)


def store(matrix, threads, most):
    """A store as kernels/store.py describes it, for at most `most` changes in a round."""
    V, P = matrix.shape
    V, most = (V, min(V, most)) if threads > 1 else (0, 0)
    slots, changed = np.full((threads, V), -1, np.int32), lines((threads, most), np.int32)
    pending = aligned(threads * most, P, matrix.dtype).reshape(threads, most, P)
    return matrix, slots, pending, changed, lines((threads, 8), np.int64)


class Tiles(Place):
    """w2vtiles.train"""

    def __init__(self, run, shared, thread):
        super().__init__(run)
        config = run.model.config
        strips, length, each = shared.layout
        batch, span = strips * length, length + rounded(2 * config.window)
        rows = lambda n: aligned(n, config.size)
        hidden, grad = rows(batch), rows(batch)
        mapped, back = (rows(batch),) * 2 if config.sharing == "linear" else (hidden, grad)
        around, d_around, drawn, d_drawn = (
            rows(n) for n in (strips * span, strips * span, strips * each, strips * each)
        )
        target, d_target = rows(batch * config.cbow), rows(batch * config.cbow)
        sizes = (batch, span), (batch, span), (batch, each), (batch, each), (batch, 1), (batch, 1), batch
        words = batch, batch, strips * span, strips * each, strips * each
        self.scratch = (
            shared.store_in, shared.store_out, shared.proj, shared.local_proj,
            (hidden, mapped, grad, back, around, d_around, drawn, d_drawn, target, d_target),
            tuple(lines(size, np.float32) for size in sizes),
            tuple(lines(n, np.int32) for n in words),
            lines(strips, np.int64), thread, shared.gate, shared.active, shared.round, run.model.tied,
        )  # fmt: skip

    def train(self, totals, n, lr, seed):
        run = self.run
        stores, scratch = self.scratch[:4], self.scratch[4:]
        w2vtiles.train(*stores, totals, run.stop, *scratch, *self.tokens, run.noise, n, *self.options(lr, seed))


def chunk_bounds(text):
    """Cut a text into pieces of about CHUNK ids, after the end of a line where one is near; int64 [pieces + 1]."""
    cuts = np.arange(0, text.size, CHUNK)
    near = np.empty(CHUNK // 10, np.int32)
    for i in range(1, cuts.size):
        ends = np.flatnonzero(text.read(cuts[i], near) == 0)
        if ends.size:
            cuts[i] += ends[0] + 1
    return np.unique(np.append(cuts, text.size))
