"""What a training run tells: progress on stderr, figures of each epoch as JSON lines."""

import contextlib
import sys
import threading
import time

from tiedtools.errors import printable
from tiedtools.figures import in_digits, perplexity, to_json

LINE_EVERY = 10  # seconds between progress lines where there is no terminal
FIRST_LINE = 2  # seconds until the first, so that a long run shows its ETA at once


def say(message):
    """Tell something on stderr. Nobody there to hear it is no reason to lose a run."""
    with contextlib.suppress(OSError):
        print(printable(message), file=sys.stderr, flush=True)


def compiling(verbosity):
    """A block in which kernels are compiled, where that has not been done before."""
    message = "compiling for this processor; only the first run has to"
    return announced(message, after=1) if verbosity else contextlib.nullcontext()


@contextlib.contextmanager
def announced(message, after):
    """Say `message` if the block takes longer than `after` seconds."""
    timer = threading.Timer(after, say, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class Report:
    """Progress of `total` words: a bar on a terminal, otherwise a plain line every ten seconds.

    verbosity  0 silent, 1 a line an epoch, 2 progress too
    log        text file for one JSON object a line, or None
    begun      words that an earlier run has done
    earlier    seconds that it took
    """

    bar, span = None, ""

    def __init__(self, total, verbosity=2, log=None, begun=0, earlier=0.0):
        self.total, self.verbosity, self.log, self.begun, self.earlier = total, verbosity, log, begun, earlier
        self.started = time.monotonic()
        self.line_due = self.started + min(FIRST_LINE, LINE_EVERY)
        if verbosity > 1 and sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(
                total=total,
                initial=begun,
                unit=" words",
                unit_scale=True,
                dynamic_ncols=True,
                file=sys.stderr,
                bar_format=f"{{percentage:5.1f}}%{self.span} |{{bar}}| {{rate_fmt}}{{postfix}}, ETA {{remaining}}",
            )

    @property
    def seconds(self):
        """Of the run so far, an earlier part included."""
        return self.earlier + time.monotonic() - self.started

    def update(self, done, loss, lr):
        """`done` words of the total so far; loss in nats per prediction."""
        if self.bar is not None:
            self.bar.set_postfix_str(", ".join(self.figures(loss, lr)), refresh=False)
            with contextlib.suppress(OSError):
                self.bar.update(done - self.bar.n)
        elif self.verbosity > 1 and time.monotonic() >= self.line_due and done > self.begun:
            self.line_due = time.monotonic() + LINE_EVERY
            rate = (done - self.begun) / (self.seconds - self.earlier)
            told = [f"{done / self.total:6.1%}{self.span}", f"{in_thousands(rate)} words/s", *self.figures(loss, lr)]
            say("  ".join([*told, f"ETA {clock((self.total - done) / rate)}"]))

    def figures(self, loss, lr):
        return f"loss {loss:.4f}", f"lr {lr:.5f}"

    def epoch(self, **figures):
        """Tell and log the figures of an epoch."""
        if self.verbosity > 0:
            self.pause()
            say(self.line(**figures))
        self.write(**figures)

    def line(self, epoch, loss, seconds, **_):
        """What is told of an epoch; the run has the figures."""
        told = "nothing to predict" if loss is None else f"loss {loss:.4f} nats per prediction"
        return f"epoch {epoch}: {told}, {clock(seconds)}"

    def write(self, **figures):
        if self.log:
            try:
                print(to_json(figures), file=self.log, flush=True)
            except OSError as error:
                say(f"the log cannot be written any more: {error.strerror}")
                with contextlib.suppress(OSError):
                    self.log.close()
                self.log = None

    def pause(self):
        """Wipe the bar, so that a line can be written where it stands."""
        if self.bar is not None:
            self.bar.clear()

    def close(self):
        if self.bar is not None:
            self.bar.close()


class LmReport(Report):
    """Of a language model: perplexities, and epochs that an earlier run has done. `begin` comes before all else."""

    def __init__(self, verbosity=2, log=None):
        self.verbosity, self.log = verbosity, log

    def begin(self, total, begun=0, history=(), endless=False):
        """`total` words to train on, `begun` of them done by an earlier run; its epochs are logged again.

        endless  nobody knows how many epochs there will be, so that progress and ETA are those of each epoch
        """
        self.span = " of the epoch" * endless
        super().__init__(total, self.verbosity, self.log, begun)
        for figures in history:
            self.write(**figures)

    def restart(self):
        """Begin again at 0 words of the total: an epoch, where nobody knows how many there will be."""
        self.begun, self.started = 0, time.monotonic()
        if self.bar is not None:
            self.bar.reset()

    def figures(self, loss, lr):
        return f"loss {loss:.4f}", f"ppl {in_digits(perplexity(loss), '.1f')}", f"lr {lr:.4g}"

    def line(self, epoch, lr, train_ppl, valid_ppl, words_per_s, seconds):  # type: ignore[override]
        valid = "" if valid_ppl is None else f", valid ppl {in_digits(valid_ppl)}"
        told = f"lr {lr:.4g}, train ppl {in_digits(train_ppl)}{valid}, {words_per_s:,.0f} words/s"
        return f"epoch {epoch}: {told}, {clock(seconds)}"


def in_thousands(rate):
    return f"{rate / 1e3:,.0f}k" if rate >= 1e5 else f"{rate:,.0f}"


def clock(seconds):
    """Seconds as h:mm:ss."""
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
