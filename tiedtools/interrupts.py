"""Signal handling: on Ctrl-C, `kill`, or a closed terminal, a long run stops and saves its results."""

import contextlib
import signal

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
PATIENCE = 3  # further signals that a run ignores while saving; the next one aborts it

received = []
deferring = False


def handle(number, frame):
    """Raise KeyboardInterrupt(number) at the first signal; ignore the next PATIENCE, which would disrupt saving.

    While signals are deferred, `check` raises the first one.
    """
    received.append(number)
    if len(received) == 1 and not deferring or len(received) % (PATIENCE + 1) == 0:
        raise KeyboardInterrupt(number)


def impatient():
    """Whether more than PATIENCE signals have arrived, so that the run exits without saving."""
    return len(received) > PATIENCE


@contextlib.contextmanager
def deferred():
    """Defer a first signal within the block until the next `check`, at the latest until the end of the block."""
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
        # Respect nohup's ignored SIGHUP, but not the ignored SIGINT of a shell's background jobs.
        if number and not (name == "SIGHUP" and signal.getsignal(number) == signal.SIG_IGN):
            signal.signal(number, handle)


def ignore():
    """Ignore all further signals; once the run is over, one could only turn success into an apparent failure."""
    for name in SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def check():
    """Raise a signal that was deferred, or swallowed by an exception handler in another library's callback."""
    if received:
        raise KeyboardInterrupt(received[0])
