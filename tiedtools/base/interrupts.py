"""Signal handling: on Ctrl-C, `kill`, or a closed terminal, a long run stops and saves its results."""

import _imp
import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

SIGNALS = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
PATIENCE = 3  # signals after which the next one aborts a run that is saving

received = []
here = threading.local()  # in this thread: .stop, whether the run has been asked to stop; .deferring, see `deferred`


def handle(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt(number) at the first signal, and after PATIENCE signals; others would disrupt saving.

    While signals are deferred, `check` raises the first one.
    """
    received.append(number)
    if len(received) == 1 and not getattr(here, "deferring", False) or len(received) % (PATIENCE + 1) == 0:
        raise KeyboardInterrupt(number)


@contextlib.contextmanager
def deferred(defer: bool = True) -> Iterator[None]:
    """Defer the first signal within the block until the next `check`, or until the end of the outermost block.

    defer  False: raise a first signal at once, within a block that defers
    """
    with contextlib.suppress(RuntimeError):  # an import that a signal has interrupted may still hold the import lock
        _imp.release_lock()
    before, interrupted_before = getattr(here, "deferring", False), pending()
    here.deferring = defer
    try:
        yield
    finally:
        here.deferring = before
    if not before and not interrupted_before:
        check()


def install() -> None:
    """Handle the signals that are not ignored; a script's background jobs (`&`) ignore SIGINT, nohup SIGHUP."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handle)
    sys.unraisablehook = report_unraisable


def report_unraisable(problem: Any) -> None:
    """Report an exception that a callback cannot raise, except for signals, which `check` raises later."""
    if problem.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(problem)


def ignore() -> None:
    """Ignore all further signals: after the run, a signal would only turn success into an apparent failure."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Handle Ctrl-C within the block as after `install`, unless the calling program handles it."""
    main = threading.current_thread() is threading.main_thread()
    unhandled = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if unhandled:
        signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        here.stop = False
        if unhandled:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            received.clear()


def ask() -> None:
    """Ask the run in this thread to stop at its next `check`, as if by a signal."""
    here.stop = True


def pending() -> bool:
    """Return whether the run in this thread should stop."""
    return bool(received) or getattr(here, "stop", False)


def check() -> None:
    """Raise a signal that was deferred, or swallowed by an exception handler in another library's callback."""
    if pending():
        raise KeyboardInterrupt(received[0] if received else signal.SIGINT)
