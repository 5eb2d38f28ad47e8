"""What a training run tells: progress on stderr, figures of each epoch as JSON lines."""

import contextlib
import json
import sys
import threading
import time

LINE_EVERY = 10  # seconds between progress lines where there is no terminal


def say(message):
    """Tell something on stderr. Nobody there to hear it is no reason to lose a run."""
    with contextlib.suppress(OSError):
        print(message, file=sys.stderr, flush=True)


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
    """

    def __init__(self, total, verbosity=2, log=None):
        self.total, self.verbosity, self.log = total, verbosity, log
        self.started = self.spoken = time.monotonic()
        self.bar = None
        if verbosity > 1 and sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(
                total=total,
                unit=" words",
                unit_scale=True,
                dynamic_ncols=True,
                file=sys.stderr,
                bar_format="{percentage:5.1f}% |{bar}| {rate_fmt}{postfix}, ETA {remaining}",
            )

    @property
    def seconds(self):
        return time.monotonic() - self.started

    def update(self, done, loss, lr):
        """`done` words of the total so far; loss in nats per prediction."""
        if self.bar is not None:
            self.bar.set_postfix_str(f"loss {loss:.4f}, lr {lr:.5f}", refresh=False)
            with contextlib.suppress(OSError):
                self.bar.update(done - self.bar.n)
        elif self.verbosity > 1 and time.monotonic() - self.spoken >= LINE_EVERY and done:
            self.spoken = time.monotonic()
            rate = done / self.seconds
            say(
                f"{done / self.total:6.1%}  {rate / 1e3:,.0f}k words/s  loss {loss:.4f}  lr {lr:.5f}"
                f"  ETA {clock((self.total - done) / rate)}"
            )

    def epoch(self, number, loss, **figures):
        """Tell and log an epoch; `figures` go to the log as they are."""
        if self.verbosity > 0:
            self.pause()
            told = "nothing to predict" if loss is None else f"loss {loss:.4f} nats per prediction"
            say(f"epoch {number}: {told}, {clock(self.seconds)}")
        self.write(epoch=number, loss=loss, seconds=round(self.seconds, 3), **figures)

    def write(self, **figures):
        if self.log:
            try:
                print(json.dumps(figures), file=self.log, flush=True)
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


def clock(seconds):
    """Seconds as h:mm:ss."""
    minutes, seconds = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
