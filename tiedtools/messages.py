"""The library's logger, "tiedtools"; applications decide whether to show its messages."""

import contextlib
import logging
import threading

log = logging.getLogger("tiedtools")


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
