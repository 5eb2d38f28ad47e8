"""Training loop of word2vec: distribution of the text to threads, progress, and checkpoints."""

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tiedtools.base import interrupts
from tiedtools.base.errors import Diverged, TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.files.modelfile import Arrays
from tiedtools.kernels.base.arrays import lines
from tiedtools.kernels.base.scalar import mix
from tiedtools.kernels.word2vec import sampling, w2v
from tiedtools.models.word2vec.pieces import piece_length, threads_of
from tiedtools.models.word2vec.tables import huffman_tree, noise_table, subsampling_thresholds
from tiedtools.runs import checkpoints
from tiedtools.runs.checkpoints import Checkpoint
from tiedtools.runs.compiling import compiling
from tiedtools.runs.progress import Listener
from tiedtools.runs.session import LARGEST, WORST_LOSS, Session, beyond, is_sane
from tiedtools.text.encoding import EncodedText
from tiedtools.training import hogwild

CHUNK = 10_000  # tokens between two updates of the learning rate, as in word2vec.c
STRIDE = 25  # composed vectors: from each piece to the next one trained, which is on another topic
LOWEST_LR = 1e-4  # as a fraction of `lr`
FIGURES = dict(epoch=int, loss=float | None, seconds=float, lr=float, words_per_s=int)
OPTIONAL = dict(valid_loss=float | None)


class Run(Session):
    """One training run of a Word2Vec on an EncodedText.

    checkpoint  path of the checkpoint, written at the start, near the end of each epoch, every `minutes` (0: never),
                when a signal stops the run, and at the end
    resume      resume from `checkpoint`; the result is then bit-identical to that of an uninterrupted run, with one
                thread or with several in lockstep
    valid       EncodedText to compute the loss on after each epoch, with the same vocabulary; or None

    Raises TiedtoolsError if the checkpoint belongs to another run.
    """

    def __init__(
        self, model: Any, text: EncodedText, checkpoint: str | None = None, minutes: float = 0.0,
        resume: bool = False, valid: EncodedText | None = None,
    ) -> None:  # fmt: skip
        super().__init__(model)
        config, self.text = model.config, text
        model.occurrences = text.occurrences
        self.cuts = chunk_bounds(text, piece_length(model))
        pieces = len(self.cuts) - 1
        step = STRIDE if model.ngrams else 1
        self.order = np.concatenate([np.arange(first, pieces, step) for first in range(step)])
        # This many threads take their pieces together; in the last round, threads without a piece run empty jobs.
        self.team = config.threads if config.deterministic else 1
        self.jobs = -(-config.epochs * pieces // self.team) * self.team
        self.words, self.total = text.size, config.epochs * text.size
        counts = text.occurrences
        self.thresholds = subsampling_thresholds(counts, config.sample)
        no_noise = np.zeros((0, 2), np.uint32)
        self.noise = noise_table(counts, config.ns_exponent) if config.negative else no_noise
        no_tree = tuple(np.zeros(0, kind) for kind in (np.int32, np.uint8, np.int64))
        self.tree = huffman_tree(model.vocab.counts) if config.hs else no_tree
        self.stop = np.zeros(1, np.uint8)
        # Nats, predictions, and tokens of each thread and epoch, a cache line apart to avoid false sharing.
        self.totals = lines((config.threads, config.epochs, 8), np.float64)
        self.valid_text = valid
        self.next, self.pausing = 0, False  # the next job; whether no new job may begin
        if checkpoint is not None:
            self.checkpoint = checkpoints.Checkpoint(checkpoint, self.identity(), model.vocab, minutes, [model.config])
            if resume:
                self.load(self.checkpoint)
        self.longest_path = int(np.diff(self.tree[2]).max()) if config.hs else 0
        self.workspaces = threads_of(model, int(np.diff(self.cuts).max()), self.longest_path)
        self.valid = valid and HeldOut(self, valid, chunk_bounds(valid, piece_length(model, scoring=True)))

    def options(self) -> dict[str, Any]:
        """Return the options that must match for the run to resume.

        The number of threads is omitted unless they run in lockstep: otherwise the result is not reproducible anyway.
        The number of signs is omitted for a model without signs.
        """
        config = self.model.config
        options = {"kind": self.model.kind, **dataclasses.asdict(config), **self.model.continued}
        for name in ["threads"] * (self.team == 1) + ["negated"] * (config.tying != "signs"):
            del options[name]
        return options

    def identity(self) -> dict[str, Any]:
        """Return the values that must match for a checkpoint to be resumed."""
        valid = self.valid_text and self.valid_text.parts()
        return checkpoints.identity(self.options(), text=self.text.parts(), validation_text=valid)

    def go(self, progress: Listener | None = None) -> None:
        """Train, reporting to a Progress.

        Raises KeyboardInterrupt, with the current parameters; Diverged, with the last checkpoint's parameters; and
        TiedtoolsError if there was nothing to predict.
        """
        self.progress = progress or self.progress
        self.compile()
        self.progress.begin(self.model.config.epochs * self.words, self.done, self.history)
        with self.clock(), interrupts.deferred() if self.defers else contextlib.nullcontext():
            try:
                self.train()
            except Diverged:
                if self.checkpoint:
                    try:
                        self.load(self.checkpoint)
                    except TiedtoolsError as error:  # the file was removed or replaced
                        log.warning(str(error))
                        self.checkpoint = None
                raise
        if not self.predictions:
            remedy = "give longer lines, or disable subsampling with `sample=0`"
            raise TiedtoolsError(f"no word has a neighbor to predict it from; {remedy}")

    @property
    def defers(self) -> bool:
        """Whether signals wait until the run can save its state and stop."""
        return self.checkpoint is not None

    @property
    def predictions(self) -> int:
        """Number of predictions so far."""
        return self.totals[:, :, 1].sum()

    def train(self) -> None:
        """Train to the end, with a checkpoint after each pause."""
        if self.checkpoint:
            self.checkpoint.write(*self.contents())  # fails before training if it cannot be written
        while self.next < self.jobs:
            interrupts.check()
            self.pausing = False
            hogwild.run(self.work, self.pieces(), self.model.config.threads, self.ask_to_stop, self.tick)
            self.tick()
            self.report_epochs()
            if self.checkpoint:
                self.checkpoint.attempt(*self.contents())

    def pieces(self) -> Iterator[int]:
        """Yield jobs in order until `pausing` is set, or to the end of an epoch after which something else is called.

        A pause takes effect only between rounds of threads in lockstep, so none runs alone.
        """
        pieces = len(self.cuts) - 1
        epoch, each = self.next // pieces, self.valid or getattr(self.progress, "on_epoch", None)
        while self.next < self.jobs:
            pausing = self.pausing or each and self.next // pieces > epoch
            if pausing and self.next % self.team == 0:
                return
            self.next += 1
            yield self.next - 1

    def work(self, thread: int, job: int) -> None:
        """Train on one piece of one epoch. The result depends on the job number, not on the thread.

        Threads in lockstep each get one job per round, since no job ends before all have begun. Thread k then does job
        k of the round, whichever job it gets.
        """
        if self.team > 1:
            job += thread - job % self.team
        epoch, place = divmod(job, len(self.order))
        piece = self.order[place]
        start, end = self.cuts[piece : piece + 2]
        if epoch >= self.model.config.epochs:
            epoch, start, end = self.model.config.epochs - 1, 0, 0
        seed = self.seed(job)
        space = self.workspaces[thread]
        n = sampling.subsample(*space.text, self.text.read(start, space.ids[: end - start]), self.thresholds, seed)
        space.train(self, self.totals[thread, epoch], n, self.lr(epoch * self.text.size + self.cuts[place]), seed)
        self.totals[thread, epoch, 2] += end - start
        if self.stop[0] == w2v.NAN:
            raise self.diverged(f"a score exceeds {w2v.DIVERGED:g} in magnitude")

    def seed(self, job: int) -> np.uint64:
        """Return the random seed of a job, uint64."""
        return np.uint64(mix(np.uint64(self.model.config.seed << 32 ^ job)))

    def diverged(self, why: str) -> Diverged:
        rates = "`lr` or `lr_linear`" if self.model.config.tying == "linear" else "`lr`"
        return Diverged(f"training diverged after {self.done / self.words:.2f} epochs: {why}; lower {rates}")

    def lr(self, done: float) -> float:
        """Return the learning rate after `done` tokens: as in word2vec.c, or as in gensim with `min_alpha`."""
        initial, final, remaining = self.model.config.lr, self.model.config.min_alpha, 1 - done / (self.total + 1)
        return initial * max(remaining, LOWEST_LR) if final is None else final + (initial - final) * remaining

    def compile(self) -> None:
        """Compile the kernels in this thread, which receives Ctrl-C."""
        with compiling(self.progress, self.model.KERNELS):
            before, self.stop[0] = self.stop[0], w2v.STOP  # a stopped kernel returns without waiting for other threads
            for space in self.workspaces[:1] + (self.valid.workspaces[:1] if self.valid else []):
                sampling.subsample(*space.text, space.ids[:0], self.thresholds, np.uint64(0))
                space.compile(self, self.totals[0, 0])
            self.stop[0] = before

    def ask_to_stop(self) -> None:
        self.stop[0] = max(self.stop[0], w2v.STOP)

    @property
    def done(self) -> int:
        return int(self.totals[:, :, 2].sum())

    def tick(self) -> None:
        """Report progress, and epochs that are done unless validation comes first; pause if a checkpoint is due."""
        if not self.checkpoint:
            interrupts.check()
        elif self.checkpoint.due:
            self.pausing = True
        nats, predictions, tokens = self.totals.sum(0)[:, :3].T
        loss = nats / np.maximum(predictions, 1)
        done = int(tokens.sum())
        epoch = int(np.count_nonzero(tokens)) - 1
        self.progress.update(done, loss[epoch], self.lr(done))
        if not self.valid:
            self.report_epochs()

    def report_epochs(self) -> None:
        """Report each epoch once when its last piece is done."""
        if self.stop[0] == w2v.NAN:
            return  # the totals include the piece that diverged
        nats, predictions, tokens = self.totals.sum(0)[:, :3].T
        while (e := len(self.history)) < len(tokens) and tokens[e] == self.text.size:
            figures = self.compute_figures(nats[e], predictions[e], tokens.sum())
            self.pausing = self.checkpoint is not None
            self.history.append(figures)
            self.progress.epoch(**figures)

    def compute_figures(self, nats: float, predictions: int, done: int) -> dict[str, Any]:
        """Return the figures of the epoch that has ended; `done`: tokens of all epochs so far. Raises Diverged."""
        epoch, loss, seconds = len(self.history) + 1, nats / max(predictions, 1), self.seconds
        if loss > (limit := WORST_LOSS * self.model.uniform_loss):
            raise self.diverged(beyond(limit))
        if not is_sane(*self.model.arrays.values()):
            raise self.diverged(f"a parameter exceeds {LARGEST:g} in magnitude")
        figures = dict(
            epoch=epoch,
            loss=float(loss) if predictions else None,
            seconds=round(seconds, 3),
            lr=self.lr(epoch * self.text.size),
            words_per_s=round(done / seconds),
        )
        return figures | (dict(valid_loss=self.valid.loss()) if self.valid else {})

    @property
    def figures(self) -> dict[str, Any]:
        """Results so far: epochs done, and the losses of the last one; None where unknown."""
        last = self.history[-1] if self.history else dict(loss=None)
        return dict(epochs=len(self.history), **{name: last[name] for name in ("loss", "valid_loss") if name in last})

    @property
    def standing(self) -> str:
        return f"{self.next:,} of {self.jobs:,} pieces of text done, over all epochs"

    @property
    def reached(self) -> str:
        return f"after {self.done / self.words:.4g} of {self.model.config.epochs:,} epochs"

    def worthwhile(self, stopped: BaseException | None = None) -> bool:
        """Return whether the vectors are worth writing: they have been trained and are sane."""
        restored = not isinstance(stopped, Diverged) or self.checkpoint
        return bool(restored) and self.done > 0 and is_sane(*self.model.arrays.values())

    def contents(self) -> tuple[dict[str, Any], Arrays]:
        progress = dict(next=self.next, history=self.history, elapsed=self.seconds)
        return progress, dict(self.model.arrays, totals=self.totals.sum(0)[:, :3])

    def check(self, progress: dict[str, Any], arrays: Arrays) -> None:
        types = dict(next=int, history=list, elapsed=float)
        checkpoints.check_progress(progress, types, self.model.config.epochs, FIGURES, OPTIONAL)
        if progress["next"] > self.jobs:
            raise ValueError("inconsistent number of text pieces")
        checkpoints.check_arrays(arrays, dict(self.model.arrays, totals=self.totals[0, :, :3]))
        _, predictions, tokens = arrays["totals"].T
        if (predictions < 0).any() or (tokens < 0).any() or (tokens > self.text.size).any():
            raise ValueError("inconsistent word counts")

    def load(self, checkpoint: Checkpoint) -> None:
        progress, arrays = checkpoint.read(self.check)
        for name, value in progress.items():
            setattr(self, name, value)
        self.totals[:] = 0
        self.totals[0, :, :3] = arrays["totals"]
        for name, array in self.model.arrays.items():
            array[:] = arrays[name]


def chunk_bounds(text: EncodedText, longest: float = math.inf) -> np.ndarray:
    """Return bounds of pieces of about CHUNK IDs, or `longest`, cut after a line end if near; int64 [pieces + 1]."""
    length = int(min(CHUNK, longest))
    cuts = np.arange(0, text.size, length)
    near = np.empty(length // 10, np.int32)
    for i in range(1, cuts.size):
        ends = np.flatnonzero(text.read(cuts[i], near) == 0)
        if ends.size:
            cuts[i] += ends[0] + 1
    return np.unique(np.append(cuts, text.size))


class HeldOut:
    """Scores the model of a Run on an EncodedText with the run's vocabulary.

    cuts  bounds of the pieces that threads take, int64 [pieces + 1]

    Subsampling, windows, and negatives are drawn as in training, separately for each target and with the same seeds at
    every call. Losses of different epochs thus differ only by the model, and do not depend on the number of threads.
    """

    def __init__(self, run: Run, text: EncodedText, cuts: np.ndarray) -> None:
        self.run, self.text, self.cuts = run, text, cuts
        self.workspaces = threads_of(run.model, int(np.diff(cuts).max()), run.longest_path, scoring=True)

    def loss(self) -> float | None:
        """Return the mean loss in nats per prediction; None without predictions."""
        totals = np.zeros((len(self.cuts) - 1, 2))

        def work(thread: int, piece: int) -> None:
            start, end = self.cuts[piece : piece + 2]
            space, seed = self.workspaces[thread], np.uint64(mix(np.uint64(piece)))
            ids = self.text.read(start, space.ids[: end - start])
            n = sampling.subsample(*space.text, ids, self.run.thresholds, seed)
            space.train(self.run, totals[piece], n, 0.0, seed)

        tick = (lambda: None) if self.run.defers else interrupts.check
        hogwild.run(work, range(len(totals)), len(self.workspaces), self.run.ask_to_stop, tick)
        if self.run.stop[0] == w2v.NAN:
            raise self.run.diverged(f"a score in the validation text exceeds {w2v.DIVERGED:g} in magnitude")
        nats, predictions = totals.sum(0)
        return float(nats / predictions) if predictions else None
