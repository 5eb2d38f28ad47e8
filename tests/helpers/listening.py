"""Capture of the library's log messages."""

import contextlib
import io
import logging

from tiedtools.base.messages import log


class Terminal(io.StringIO):
    def isatty(self):
        return True


@contextlib.contextmanager
def listening():
    """Context manager that redirects the library's log messages to the list it yields."""
    told, handler, before = [], logging.Handler(), (log.handlers[:], log.propagate, log.level)
    handler.emit = lambda record: told.append(record.getMessage())
    log.handlers[:], log.propagate = [handler], False
    log.setLevel(logging.INFO)
    try:
        yield told
    finally:
        log.handlers[:], log.propagate = before[:2]
        log.setLevel(before[2])
