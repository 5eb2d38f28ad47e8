"""Messages of the library: records of the logger "tiedtools", which whoever uses it may show, or not."""

import contextlib
import logging
import threading

log = logging.getLogger("tiedtools")


def compiling():
    """A block in which kernels are compiled, where that has not been done before."""
    return announced("compiling for this processor; only the first run has to", after=1)


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
