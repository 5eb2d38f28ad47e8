"""Signal handling: on Ctrl-C, `kill`, or a closed terminal, a long run stops and saves its results."""

import contextlib
import signal
import threading

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
PATIENCE = 3  # further signals that a run ignores while saving; the next one aborts it

received = []
deferring = False
own = threading.local()  # .asked: whether the run in this thread has been asked to stop


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
    """Handle the signals that are not ignored; a script's background jobs (`&`) ignore SIGINT, nohup SIGHUP."""
    for name in SIGNALS:
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handle)


def ignore():
    """Ignore all further signals; once the run is over, one could only turn success into an apparent failure."""
    for name in SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


@contextlib.contextmanager
def listening():
    """Handle Ctrl-C within the block as after `install`, unless the program handles it itself."""
    main = threading.current_thread() is threading.main_thread()
    ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        own.asked = False
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            received.clear()


def ask():
    """Ask the run in this thread to stop at its next `check`, as if by a signal."""
    own.asked = True


def pending():
    """Whether the run in this thread should stop."""
    return bool(received) or getattr(own, "asked", False)


def check():
    """Raise a signal that was deferred, or swallowed by an exception handler in another library's callback."""
    if pending():
        raise KeyboardInterrupt(received[0] if received else signal.SIGINT)
