"""The library's messages as a list."""

import contextlib
import logging

from tiedtools.messages import log


@contextlib.contextmanager
def listening():
    """A block in which the library's messages go to the list that it yields, and nowhere else."""
    told, handler, before = [], logging.Handler(), (log.handlers[:], log.propagate, log.level)
    handler.emit = lambda record: told.append(record.getMessage())
    log.handlers[:], log.propagate = [handler], False
    log.setLevel(logging.INFO)
    try:
        yield told
    finally:
        log.handlers[:], log.propagate = before[:2]
        log.setLevel(before[2])
