"""The library's logger, "tiedtools"; applications decide whether to show its messages."""

import contextlib
import logging
import threading

log = logging.getLogger("tiedtools")


def compiling():
    """Context manager for code that compiles kernels; logs a message if that takes more than a second."""
    return announced("compiling for this CPU (first run only)", after=1)


@contextlib.contextmanager
def announced(message, after):
    """Log `message` if the block takes longer than `after` seconds."""
    timer = threading.Timer(after, log.info, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
