"""Listeners to the progress of a training run."""

import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from tiedtools.base import interrupts
from tiedtools.base.messages import in_digits, log, perplexity, to_json

SHORT = 1  # seconds; shorter compilation is not reported
Callback = Callable[[dict[str, Any]], object]


class Progress:
    """Base class of progress listeners, which ignores all events. Losses are in nats per prediction.

    The run calls `compiling` for each kernel that is not cached, then `begin`, `update` at intervals, `epoch` after
    each epoch, and `close` at the end.
    """

    def compiling(self, number: int | None, expected: int) -> None:
        """Kernel `number` of about `expected` is being compiled; None: compilation is complete."""

    def begin(self, total: int, begun: int = 0, history: Sequence[dict[str, Any]] = (), endless: bool = False) -> None:
        """Training begins: `total` words, of which an earlier run processed `begun`, with the epoch figures `history`.

        endless  the number of epochs is unknown; `total` and `update` then count the words of one epoch
        """

    def restart(self) -> None:
        """An epoch begins in a run whose number of epochs is unknown."""

    def update(self, done: int, loss: float, lr: float) -> None:
        """Training has processed `done` words; `loss` is the mean of this epoch so far."""

    def epoch(self, **figures: Any) -> None:
        """An epoch is complete, with these figures."""

    def close(self) -> None:
        """The run has ended, normally or not."""


class Forwarder:
    """Base class of progress listeners that forward all events to another Progress, `listener`."""

    def __init__(self, listener: "Listener") -> None:
        self.listener = listener

    def __getattr__(self, name: str) -> Any:
        return getattr(self.listener, name)


Listener = Progress | Forwarder


class EpochLog(Forwarder):
    """Writes the figures of each epoch as JSON lines to a text file, if there is one (else None).

    prepare  function to call before the first line is written
    """

    def __init__(self, file: TextIO | None, listener: Listener, prepare: Callable[[], object] = lambda: None) -> None:
        super().__init__(listener)
        self.file, self.prepare = file, prepare

    def begin(self, total: int, begun: int = 0, history: Sequence[dict[str, Any]] = (), endless: bool = False) -> None:
        self.listener.begin(total, begun, history, endless)
        self.prepare()
        for figures in history:
            self.write(**figures)

    def epoch(self, **figures: Any) -> None:
        self.write(**figures)
        self.listener.epoch(**figures)

    def write(self, **figures: Any) -> None:
        if self.file:
            try:
                self.file.write(to_json(figures) + "\n")
                self.file.flush()
            except OSError as error:
                log.warning(f"the JSON log can no longer be written: {error.strerror}; training continues without it")
                with contextlib.suppress(OSError):
                    self.file.close()
                self.file = None


class Callbacks(Forwarder):
    """Calls functions with a dict of figures; training stops, as after Ctrl-C, if a function returns False or fails.

    on_epoch   called after each epoch with its figures, as in the JSON log; None: not called
    on_timer   called about every `seconds` with words (trained on so far), loss, lr, and words_per_s
    history    figures of each epoch, including epochs before a resumed run
    stopped    whether a function has stopped training
    failure    the exception that a function raised, if one did
    """

    failure: BaseException | None = None

    def __init__(
        self, on_epoch: Callback | None = None, on_timer: Callback | None = None, seconds: float = 10.0,
        listener: Listener | None = None,
    ) -> None:  # fmt: skip
        super().__init__(listener or Progress())
        self.on_epoch, self.on_timer, self.seconds = on_epoch, on_timer, seconds
        self.history, self.stopped = [], False

    def begin(self, total: int, begun: int = 0, history: Sequence[dict[str, Any]] = (), endless: bool = False) -> None:
        self.history = [dict(figures) for figures in history]
        self.began = self.called = time.monotonic()
        self.begun = begun
        self.listener.begin(total, begun, history, endless)

    def restart(self) -> None:
        self.began, self.begun = time.monotonic(), 0
        self.listener.restart()

    def update(self, done: int, loss: float, lr: float) -> None:
        self.listener.update(done, loss, lr)
        now = time.monotonic()
        if self.on_timer and now - self.called >= self.seconds:
            self.called = now
            rate = (done - self.begun) / max(now - self.began, 1e-9)
            self.call(self.on_timer, dict(words=int(done), loss=float(loss), lr=float(lr), words_per_s=round(rate)))

    def epoch(self, **figures: Any) -> None:
        self.history.append(figures)
        self.listener.epoch(**figures)
        if self.on_epoch:
            self.call(self.on_epoch, dict(figures))

    def call(self, function: Callback, figures: dict[str, Any]) -> None:
        if self.stopped:
            return
        if bar := getattr(self.listener, "bar", None):
            bar.clear()  # what the function prints is above the bar
        answer: object = False
        try:
            answer = function(figures)
        except (Exception, SystemExit) as error:
            self.failure = error
        if bar:
            if sys.stdout is not None:
                sys.stdout.flush()
            bar.refresh()
        if type(answer).__name__ in ("bool", "bool_") and not answer:  # also NumPy's
            self.stopped = True
            interrupts.ask()


class Bar(Progress):
    """A Progress that shows a tqdm bar with words per second, loss, learning rate, and ETA.

    perplexities  also show the perplexity
    """

    perplexities = False
    bar: Any = None
    compilation: Any = None
    span = ""

    def tqdm(self, total: int, bar_format: str, **options: Any) -> Any:
        """Return a new bar of the library tqdm."""
        from tqdm.auto import tqdm

        return tqdm(total=total, bar_format=bar_format, dynamic_ncols=True, file=sys.stderr, **options)

    def compiling(self, number: int | None, expected: int) -> None:
        if self.compilation is None:
            form = "compiling kernel {n_fmt} of about {total_fmt} |{bar}| {elapsed}, ETA {remaining}"
            self.compilation = self.tqdm(expected, form, leave=False)
        with contextlib.suppress(OSError):
            if number is None:
                self.compilation.close()
                self.compilation = None
            else:
                self.compilation.total = max(expected, number)
                self.compilation.update(number - self.compilation.n)

    def begin(self, total: int, begun: int = 0, history: Any = (), endless: bool = False) -> None:
        self.span = " of the epoch" * endless
        form = f"{{percentage:5.1f}}%{self.span} |{{bar}}| {{rate_fmt}}{{postfix}}, ETA {{remaining}}"
        self.bar = self.tqdm(total, form, initial=begun, unit=" words", unit_scale=True)

    def restart(self) -> None:
        if self.bar is not None:
            self.bar.reset()

    def update(self, done: int, loss: float, lr: float) -> None:
        if self.bar is not None:
            self.bar.set_postfix_str(", ".join(self.figures(loss, lr)), refresh=False)
            with contextlib.suppress(OSError):
                self.bar.update(done - self.bar.n)

    def figures(self, loss: float, lr: float) -> list[str]:
        if not self.perplexities:
            return [f"loss {loss:.4f}", f"lr {lr:.5f}"]
        return [f"loss {loss:.4f}", f"ppl {in_digits(perplexity(loss), '.1f')}", f"lr {lr:.4g}"]

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
