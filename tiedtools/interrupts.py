"""Ctrl-C, `kill` and a closed terminal, so that a long run can stop and save what it has."""

import contextlib
import signal

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
PATIENCE = 3  # further signals until a run that is saving gives up

received = []
deferring = False


def handle(number, frame):
    """Raise KeyboardInterrupt(number) at the first signal; the next ones would only spoil the saving.

    Where signals are deferred, the first one is for `check` to raise.
    """
    received.append(number)
    if len(received) == 1 and not deferring or len(received) % (PATIENCE + 1) == 0:
        raise KeyboardInterrupt(number)


def impatient():
    """Whether so many signals have come that nothing is to be saved any more."""
    return len(received) > PATIENCE


@contextlib.contextmanager
def deferred():
    """Within the block a first signal waits for the next `check`, at the latest for the end of the block."""
    global deferring
    deferring, before = True, bool(received)
    try:
        yield
    finally:
        deferring = False
    if not before:
        check()


def install():
    for name in SIGNALS:
        number = getattr(signal, name, None)
        # nohup ignores SIGHUP, and means it; a shell ignores SIGINT for its background jobs, and should not.
        if number and not (name == "SIGHUP" and signal.getsignal(number) == signal.SIG_IGN):
            signal.signal(number, handle)


def ignore():
    """All is done: a signal could only make an end that was good look like another."""
    for name in SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def check():
    """Raise what has been deferred, or what an exception handler in somebody else's callback has swallowed."""
    if received:
        raise KeyboardInterrupt(received[0])
