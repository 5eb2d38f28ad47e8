"""Training loop of word2vec on several ranks, each with its share of the text."""

import itertools
import math
import os
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from tiedtools.base import interrupts
from tiedtools.base.errors import Diverged
from tiedtools.files.modelfile import Arrays
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.exchange import Exchange
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.run import FIGURES, Run
from tiedtools.parallel.ranks import Ranks
from tiedtools.runs import checkpoints
from tiedtools.runs.checkpoints import Checkpoint
from tiedtools.text.encoding import EncodedText
from tiedtools.training import hogwild

POLL = 0.002  # seconds between two checks for a due exchange
STEP = 0.0002  # seconds between two steps of an exchange; MPI makes progress only then
PROGRESS = 0.1  # seconds between two reports
DELAY = "TIEDTOOLS_EXCHANGE_DELAY"  # variable: minimum duration of an exchange in seconds; simulates a slow network
POSITION = dict(positions=list, history=list, elapsed=float)
EXCHANGE_WORDS = 1_200_000  # see `default_period`


def default_period(ranks: int, words: float) -> float:
    """Return the words of all ranks between two exchanges, for a run of `words` words in all epochs.

    With more ranks, each trains from older parameters; in a longer run, their age matters less.
    """
    return EXCHANGE_WORDS / max(1, ranks - 1) * math.sqrt(max(1, words / 75e6))


def lr_factor(ranks: int, config: Config) -> float:
    """Return the factor of the learning rate on several ranks: see docs/mpi.md."""
    return ranks ** (1 / 6 if config.cbow and (config.fit_pmi or config.tying == "linear") else 1 / 2)


class RanksRun(Run):
    """One rank's part of a training run; all ranks end with equal parameters.

    text       the EncodedText of this rank's share
    ranks      the Ranks
    words      words of all ranks between two exchanges; None: default_period
    precision  of the changes that are exchanged: "float32" or "bfloat16"

    The period of exchanges is a part of an epoch, the same for all ranks, so that each exchange needs no negotiation.
    Rank 0 alone has a checkpoint. It may be resumed with another number of ranks; each then starts its share of the
    epoch at the mean position.
    """

    def __init__(
        self, model: Word2Vec, text: EncodedText, ranks: Ranks, checkpoint: str | None = None, minutes: float = 0.0,
        resume: bool = False, valid: EncodedText | None = None, words: int | None = None, precision: str = "float32",
    ) -> None:  # fmt: skip
        self.ranks, config = ranks, model.config
        self.factor = lr_factor(ranks.size, config)
        self.earlier = np.zeros((config.epochs, 3))  # nats, predictions, and tokens of all ranks before resuming
        self.totals_of_all = self.earlier
        self.positions = [0.0] * ranks.size  # of all ranks in the epoch, at the last pause
        self.bytes = self.waits = [0] * ranks.size
        self.loaded: Any = None
        self.words_of_all = sum(ranks.exchange(text.size))
        super().__init__(model, text, checkpoint, minutes, resume, valid)
        self.words = self.words_of_all
        if resume:
            self.resume_from(*ranks.broadcast(self.loaded))
            self.loaded = None
        period = words or default_period(ranks.size, self.words * config.epochs)
        pieces = min(ranks.exchange(len(self.cuts) - 1))
        self.periods = min(max(1, round(self.words / period)), pieces)  # in an epoch
        # Exchanges since the start of the epoch. Even if all pieces began before a pause, the last exchange remains.
        self.number = min(int(min(self.positions) * self.periods), self.periods - 1)
        delay = float(os.environ.get(DELAY, 0))
        half = precision == "bfloat16"
        self.exchange = Exchange(model, self.thresholds, ranks, self.factor, half, delay, self.trained)
        self.failed: str | None = None
        self.late, self.waited, self.progress_due = False, 0.0, 0.0

    def identity(self) -> dict[str, Any]:
        """Return the values that must match to resume a checkpoint; no rank has the whole text, only its length."""
        return checkpoints.identity({**self.options(), "mpi": True, "words": self.words_of_all})

    def seed(self, job: int) -> np.uint64:
        return super().seed(job * self.ranks.size + self.ranks.rank)

    def lr(self, done: float) -> float:
        return super().lr(done) * self.factor

    defers = True

    @property
    def predictions(self) -> int:
        return self.totals_of_all[:, 1].sum()

    @property
    def epoch(self) -> int:
        """Number of the epoch, from 0."""
        return len(self.history)

    @property
    def position(self) -> float:
        """Fraction of this rank's text that threads have begun to train on in this epoch."""
        pieces = len(self.cuts) - 1
        return self.cuts[min(max(self.next - self.epoch * pieces, 0), pieces)] / self.text.size

    @property
    def done(self) -> int:
        """Estimate of the tokens that all ranks have trained on."""
        return int((self.epoch + self.position) * self.words)

    def train(self) -> None:
        """Train to the end, with a pause after each epoch and when a rank requests one."""
        self.save_checkpoint()
        while self.epoch < self.model.config.epochs:
            self.pausing = False
            try:
                hogwild.run(self.work, self.pieces(), self.model.config.threads, self.ask_to_stop, self.tick, POLL)
            except Diverged as error:
                self.failed = str(error)
                self.exchange.restore()
                self.next = (self.epoch + 1) * (len(self.cuts) - 1)
            before = time.monotonic()
            while not self.pausing:
                time.sleep(STEP)
                self.tick()
            self.synchronize(before)
        self.ranks.part()

    def pieces(self) -> Iterator[int]:
        end = (self.epoch + 1) * (len(self.cuts) - 1)
        while self.next < end and not self.pausing:
            before = time.monotonic()
            while self.late and not self.stop[0]:
                time.sleep(POLL)
            self.waited += time.monotonic() - before
            self.next += 1
            yield self.next - 1

    def tick(self) -> None:
        """Continue or start an exchange, or pause: at the end of the epoch or two exchanges after a rank's request."""
        exchange, until = self.exchange, time.monotonic() + POLL
        while not exchange.poll() and exchange.busy and time.monotonic() < until:
            time.sleep(STEP)
        position = self.position
        following = self.number + 1
        due = position >= following / self.periods
        if not exchange.busy and due and not self.pausing:  # threads may still train after the decision to pause
            if following == self.periods or exchange.flags:
                self.pausing, self.number = True, following
            else:
                self.number = following
                exchange.start(self.wants_pause, self.trained)
        self.late = exchange.busy and position >= (self.number + 2) / self.periods
        if time.monotonic() < self.progress_due:
            return
        self.progress_due = time.monotonic() + PROGRESS
        nats, predictions, _ = self.totals[:, self.epoch].sum(0)[:3]
        self.progress.update(self.done, nats / max(predictions, 1), self.lr((self.epoch + position) * self.text.size))

    @property
    def wants_pause(self) -> bool:
        return bool(self.failed or interrupts.pending() or self.checkpoint and self.checkpoint.due)

    @property
    def trained(self) -> int:
        """Tokens of all ranks up to this exchange, equal on all of them."""
        return int((self.epoch + self.number / self.periods) * self.words)

    def synchronize(self, since: float) -> None:
        """Make the parameters of all ranks equal, report a finished epoch, write a checkpoint, and stop if asked.

        since  time when this rank began to wait
        Raises Diverged or KeyboardInterrupt on all ranks alike.
        """
        self.exchange.start(False, self.trained, everything=True)
        while not self.exchange.poll():
            time.sleep(0)
        self.exchange.restore()
        self.waited += time.monotonic() - since
        signals = interrupts.received[:1] or [2] * interrupts.pending()
        state = self.failed, signals, self.totals.sum(0)[:, :3], self.position, self.exchange.sent, self.waited
        failed, asked, totals, *others = zip(*self.ranks.exchange(state))
        self.totals_of_all = self.earlier + sum(totals)
        self.positions, self.bytes, self.waits = map(list, others)
        if failures := [f"rank {rank}: {why}" for rank, why in enumerate(failed) if why]:
            self.stop_all(Diverged(failures[0]))
        if self.number == self.periods:
            self.number = 0
            figures = self.ranks.broadcast(self.epoch_figures() if self.ranks.rank == 0 else None)
            if isinstance(figures, Diverged):
                self.stop_all(figures)
            self.history.append(figures)
            self.progress.epoch(**figures)
            self.positions = [0.0] * self.ranks.size
        self.save_checkpoint(attempt=True)
        for number in itertools.chain(*asked):
            self.stop_all(KeyboardInterrupt(number))

    def stop_all(self, error: BaseException) -> NoReturn:
        """Raise an error that all ranks raise."""
        self.ranks.part()
        raise error

    def epoch_figures(self) -> dict[str, Any] | Diverged:
        """Return the figures of the epoch that has ended, or a Diverged."""
        nats, predictions, _ = self.totals_of_all[self.epoch]
        try:
            return self.compute_figures(nats, predictions, (self.epoch + 1) * self.words)
        except Diverged as error:
            return error

    def save_checkpoint(self, attempt: bool = False) -> None:
        """Write a checkpoint, on the rank that has one."""
        if self.checkpoint:
            (self.checkpoint.attempt if attempt else self.checkpoint.write)(*self.contents())

    def contents(self) -> tuple[dict[str, Any], Arrays]:
        progress = dict(positions=self.positions, history=self.history, elapsed=self.seconds)
        return progress, dict(self.model.arrays, totals=self.totals_of_all)

    def check(self, progress: dict[str, Any], arrays: Arrays) -> None:
        checkpoints.check_progress(progress, POSITION, self.model.config.epochs, FIGURES)
        checkpoints.check_arrays(arrays, dict(self.model.arrays, totals=self.earlier))
        if not progress["positions"] or not all(isinstance(x, float) and 0 <= x <= 1 for x in progress["positions"]):
            raise ValueError("inconsistent positions")

    def load(self, checkpoint: Checkpoint) -> None:
        self.loaded = checkpoint.read(self.check)
        self.resume_from(*self.loaded)

    def resume_from(self, progress: dict[str, Any], arrays: Arrays) -> None:
        """Continue from a checkpoint."""
        self.history, self.elapsed = progress["history"], progress["elapsed"]
        self.totals_of_all = self.earlier = arrays["totals"]
        self.positions = progress["positions"]
        for name, array in self.model.arrays.items():
            array[:] = arrays[name]
        if len(self.positions) != self.ranks.size:
            self.positions = [sum(self.positions) / len(self.positions)] * self.ranks.size
        start = self.positions[self.ranks.rank]
        self.next = self.epoch * (len(self.cuts) - 1) + int(np.searchsorted(self.cuts, round(start * self.text.size)))

    @property
    def standing(self) -> str:
        return f"{self.epoch + self.position:.2f} epochs done"

    @property
    def traffic(self) -> dict[str, Any]:
        """Figures of the exchanges so far: their number, megabytes sent by all ranks, and share of time waited."""
        waited = sum(self.waits) / self.ranks.size
        return dict(
            exchanges=self.exchange.count,
            exchanged_mb=round(sum(self.bytes) / 1e6, 3),
            waiting_share=round(waited / max(self.seconds, 1e-9), 4),
        )
