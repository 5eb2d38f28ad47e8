"""Training loop of word2vec on several ranks, each with its share of the text."""

import itertools
import math
import os
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from tiedtools.base import interrupts
from tiedtools.base.errors import Diverged, TiedtoolsError
from tiedtools.base.settings import Range
from tiedtools.files.modelfile import Arrays
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.exchange import Exchange
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.run import FIGURES, OPTIONAL, Run
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
# Words between exchanges, see `Interval`: the shortest of two ranks, which ranks - 1 divides, and the longest, which
# were chosen by correlations on 8 ranks (docs/mpi.md).
SHORTEST, LONGEST, LONGEST_UNSTABLE = 1_200_000, 350_000, 171_000
RANKS = 8  # number of ranks on which SATURATION was chosen
LOST = 0.05, 0.1  # shares of the time: an interval is shortened below the first, and lengthened above the second
CHANGE = 1.02  # factor by which an interval changes
MEMORY = 32  # exchanges over which the share of time lost is a mean


class Interval:
    """Words of all ranks between two exchanges, lengthened while exchanges take more than a tenth of the time.

    The interval starts at its shortest. With more ranks, each trains from older parameters; in a longer run, their age
    matters less.

    ranks   number of ranks
    total   words of the run in all epochs
    stable  whether weaker averaging does not make updates overshoot: CBOW, and fixed signs
    fixed   interval in words; None: adapt it
    """

    def __init__(self, ranks: int, total: float, stable: bool, fixed: float | None = None) -> None:
        scale, self.stable = math.sqrt(max(1, total / 75e6)), stable
        self.shortest = self.words = fixed or SHORTEST / max(1, ranks - 1) * scale
        self.longest = fixed or max(self.shortest, (LONGEST if stable else LONGEST_UNSTABLE) * scale)
        self.tuned = max(SHORTEST / max(1, min(ranks, RANKS) - 1) * scale, 1)
        self.share = 0.0

    @property
    def stretch(self) -> float:
        """Factor of the saturation: intervals longer than those with which it was chosen need weaker averaging."""
        return max(1.0, self.words / self.tuned) if self.stable else 1.0

    def adapt(self, lost: float) -> None:
        """Change the interval after an exchange that took a share `lost` of the time."""
        self.share += (lost - self.share) / MEMORY
        low, high = LOST
        if self.share > high:
            self.words = min(self.words * CHANGE, self.longest)
        elif self.share < low:
            self.words = max(self.words / CHANGE, self.shortest)


def lr_factor(ranks: int, config: Config) -> float:
    """Return the factor of the learning rate on several ranks: see docs/mpi.md."""
    return ranks ** (1 / 6 if config.cbow and (config.fit_pmi or config.tying == "linear") else 1 / 2)


class RanksRun(Run):
    """One rank's part of a training run; all ranks end with equal parameters.

    text       the EncodedText of this rank's share
    ranks      the Ranks
    words      words of all ranks between two exchanges; None: adapted to the time that exchanges take, see Interval
    precision  of the changes that are exchanged: "float32" or "bfloat16"

    Each exchange also tells the time that ranks have lost by exchanges. All ranks thus compute the same next interval,
    and start each exchange at the same position of their shares, without further messages. The rank that lost least
    decides: a rank also waits for slower ones, which a longer interval does not change.
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
        stable = config.cbow or config.tying == "signs"
        self.interval = Interval(ranks.size, self.words * config.epochs, stable, words)
        self.piece = 1 / min(ranks.exchange(len(self.cuts) - 1))
        self.exchanged = min(self.positions)  # fraction of the epoch up to the last exchange
        try:
            delay = float(os.environ.get(DELAY, 0))
            Range(0).require(DELAY, delay)
        except ValueError:
            raise TiedtoolsError(f"{DELAY}={os.environ[DELAY]}: not a number of seconds; correct or unset it") from None
        half = precision == "bfloat16"
        self.exchange = Exchange(model, self.thresholds, ranks, self.factor, half, delay, self.trained)
        self.failed: str | None = None
        self.late, self.waited, self.progress_due = False, 0.0, 0.0
        self.mark = time.monotonic(), 0.0  # time of the last exchange, and time lost before

    def identity(self) -> dict[str, Any]:
        """Return the values that must match to resume a checkpoint; no rank has the whole text, only its length."""
        valid = self.valid_text and self.valid_text.parts()
        return checkpoints.identity({**self.options(), "mpi": True, "words": self.words_of_all}, validation_text=valid)

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
        if self.checkpoint:
            self.checkpoint.write(*self.contents())  # fails before training if it cannot be written
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
        position, step = self.position, max(self.interval.words / self.words, self.piece)
        following = self.exchanged + step if self.exchanged + 1.5 * step < 1 else 1.0
        if not exchange.busy and position >= following and not self.pausing:  # threads may train on after this decision
            self.exchanged = following
            if following == 1 or exchange.flags:
                self.pausing = True
            else:
                self.interval.adapt(float(min(exchange.losses)))
                wanted = bool(self.failed or interrupts.pending() or self.checkpoint and self.checkpoint.due)
                exchange.start(wanted, self.trained, self.lost_share(), self.interval.stretch)
        self.late = exchange.busy and position >= self.exchanged + 2 * step
        if time.monotonic() < self.progress_due:
            return
        self.progress_due = time.monotonic() + PROGRESS
        nats, predictions, _ = self.totals[:, self.epoch].sum(0)[:3]
        self.progress.update(self.done, nats / max(predictions, 1), self.lr((self.epoch + position) * self.text.size))

    def lost_share(self) -> float:
        """Return the share of the time since the last call that this rank has lost by exchanges."""
        lost = self.waited + self.exchange.seconds / self.model.config.threads
        now, (since, before) = time.monotonic(), self.mark
        self.mark = now, lost
        return (lost - before) / max(now - since, 1e-9)

    @property
    def trained(self) -> int:
        """Tokens of all ranks up to this exchange, equal on all of them."""
        return int((self.epoch + self.exchanged) * self.words)

    def synchronize(self, since: float) -> None:
        """Make the parameters of all ranks equal, report a finished epoch, write a checkpoint, and stop if asked.

        since  time when this rank began to wait
        Raises Diverged or KeyboardInterrupt on all ranks alike.
        """
        self.exchange.start(False, self.trained, stretch=self.interval.stretch, everything=True)
        while not self.exchange.poll():
            time.sleep(0)
        self.exchange.restore()
        self.waited += time.monotonic() - since
        self.lost_share()
        signals = interrupts.received[:1] or [2] * interrupts.pending()
        state = self.failed, signals, self.totals.sum(0)[:, :3], self.position, self.exchange.sent, self.waited
        failed, asked, totals, *others = zip(*self.ranks.exchange(state))
        self.totals_of_all = self.earlier + sum(totals)
        self.positions, self.bytes, self.waits = map(list, others)
        if failures := [f"rank {rank}: {why}" for rank, why in enumerate(failed) if why]:
            self.stop_all(Diverged(failures[0]))
        if self.exchanged == 1:
            self.exchanged = 0.0
            figures = self.ranks.broadcast(self.epoch_figures() if self.ranks.rank == 0 else None)
            if isinstance(figures, Diverged):
                self.stop_all(figures)
            self.history.append(figures)
            self.progress.epoch(**figures)
            self.positions = [0.0] * self.ranks.size
        if self.checkpoint:
            self.checkpoint.attempt(*self.contents())
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

    def contents(self) -> tuple[dict[str, Any], Arrays]:
        progress = dict(positions=self.positions, history=self.history, elapsed=self.seconds)
        return progress, dict(self.model.arrays, totals=self.totals_of_all)

    def check(self, progress: dict[str, Any], arrays: Arrays) -> None:
        checkpoints.check_progress(progress, POSITION, self.model.config.epochs, FIGURES, OPTIONAL)
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
