"""Show messages and training progress on standard error."""

import contextlib
import logging
import math
import sys
import time
from typing import Any

import click

from tiedtools.base.errors import printable
from tiedtools.base.messages import in_digits, log
from tiedtools.cli.options import spelled
from tiedtools.runs.progress import SHORT, Bar

LINE_EVERY = 10  # seconds between progress lines where there is no terminal
COMPILING_EVERY = 3  # seconds between progress lines during compilation
FIRST_LINE = 2  # seconds until the first line, so that a long run soon shows its ETA


class Messages(logging.Handler):
    """Logging handler that prints the library's messages to stderr, above the progress bar if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        message, context = printable(record.getMessage()), click.get_current_context(silent=True)
        line = (spelled(message, context.command) if context else message) + "\n"
        with contextlib.suppress(OSError, AttributeError):  # a closed stderr, or None, must not end the run
            # One write, newline included, since other processes may also write.
            if tqdm := sys.modules.get("tqdm"):
                tqdm.tqdm.write(line, file=sys.stderr, end="")
            else:
                sys.stderr.write(line)
            sys.stderr.flush()


def show_messages(level: int = logging.INFO) -> None:
    """Show messages at or above `level` on stderr."""
    log.handlers[:] = [Messages()]
    log.propagate = False
    log.setLevel(level)


class Report(Bar):
    """Training progress: a bar on a terminal, otherwise a line every 10 seconds.

    verbosity  0: silent; 1: one line per epoch; 2: also progress
    note       (level, message) to show before training, or None
    """

    note: tuple[int, str] | None = None

    def __init__(self, verbosity: int = 2) -> None:
        self.verbosity = verbosity

    def compiling(self, number: int | None, expected: int) -> None:
        if self.verbosity > 1 and sys.stderr.isatty():
            super().compiling(number, expected)
        elif number == 1:
            self.started = time.monotonic()
            self.line_due = self.started + SHORT
        elif number and self.verbosity > 1 and time.monotonic() >= self.line_due:
            self.line_due = time.monotonic() + COMPILING_EVERY
            eta = (time.monotonic() - self.started) / number * max(0, expected - number)
            log.info(f"compiling kernel {number} of about {max(expected, number)} (first run only)  ETA {clock(eta)}")

    def begin(self, total: int, begun: int = 0, history: Any = (), endless: bool = False) -> None:
        if self.note:
            log.log(*self.note)
        self.total, self.begun, self.span, self.started = total, begun, " of the epoch" * endless, time.monotonic()
        self.line_due = self.started + min(FIRST_LINE, LINE_EVERY)
        if self.verbosity > 1 and sys.stderr.isatty():
            super().begin(total, begun, history, endless)

    def restart(self) -> None:
        self.begun, self.started = 0, time.monotonic()
        super().restart()

    def update(self, done: int, loss: float, lr: float) -> None:
        super().update(done, loss, lr)
        if self.bar is None and self.verbosity > 1 and time.monotonic() >= self.line_due and done > self.begun:
            self.line_due = time.monotonic() + LINE_EVERY
            rate = (done - self.begun) / (time.monotonic() - self.started)
            speed = f"{rate / 1e3:,.0f}k" if rate >= 1e5 else f"{rate:,.0f}"
            parts = [f"{done / self.total:6.1%}{self.span}", f"{speed} words/s", *self.figures(loss, lr)]
            log.info("  ".join([*parts, f"ETA {clock((self.total - done) / rate)}"]))

    def epoch(self, **figures: Any) -> None:
        if self.verbosity > 0:
            log.info(self.line(**figures))

    def line(self, epoch: int, loss: float | None, seconds: float, run: int | None = None, **others: Any) -> str:
        """Return the line that reports an epoch, or one of several runs."""
        summary = "nothing to predict" if loss is None else f"loss {loss:.4f} nats per prediction"
        valid, value = "", others.get("valid_loss")
        if "valid_loss" in others:
            valid = ", nothing to predict in the validation text" if value is None else f", valid loss {value:.4f}"
        return f"{f'epoch {epoch}' if run is None else f'run {run}'}: {summary}{valid}, {clock(seconds)}"


class LmReport(Report):
    """Training progress of a language model, with perplexities."""

    perplexities = True

    def line(  # type: ignore[override]
        self, epoch: int, lr: float, train_ppl: float, valid_ppl: float | None, words_per_s: float, seconds: float,
        valid_bleu: float | None = None,
    ) -> str:  # fmt: skip
        valid = "" if valid_ppl is None else f", valid ppl {in_digits(valid_ppl)}"
        valid += "" if valid_bleu is None else f", BLEU {valid_bleu:.2f}"
        speed = f"{words_per_s:,.0f} words/s, {clock(seconds)}"
        return f"epoch {epoch}: lr {lr:.4g}, train ppl {in_digits(train_ppl)}{valid}, {speed}"


class RnnlmReport(LmReport):
    """Print rnnlm's line per epoch to stdout at any verbosity; entropies are in bits."""

    def epoch(self, **figures: Any) -> None:
        if self.bar is not None:
            self.bar.clear()
        with contextlib.suppress(OSError):
            print(self.line(**figures), flush=True)

    def line(  # type: ignore[override]
        self, epoch: int, lr: float, train_ppl: float, valid_ppl: float | None, words_per_s: float, seconds: float
    ) -> str:
        train = f"Iter: {epoch - 1:3d}\tAlpha: {lr:f}\t   TRAIN entropy: {in_digits(math.log2(train_ppl), '.4f')}    "
        valid = "" if valid_ppl is None else f"VALID entropy: {in_digits(math.log2(valid_ppl), '.4f')}"
        return f"{train}Words/sec: {words_per_s:.1f}   {valid}"


def clock(seconds: float) -> str:
    """Format seconds as h:mm:ss."""
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
