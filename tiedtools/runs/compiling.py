"""Report to a Progress which kernels are being compiled."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from numba.core import event

from tiedtools.base.messages import log
from tiedtools.runs.progress import SHORT, Listener, Progress
from tiedtools.text.sources import counted


class Count(event.Listener):
    """Numba's listener that counts the kernels compiled for a Progress."""

    def __init__(self, progress: Listener, expected: int) -> None:
        self.progress, self.expected, self.number = progress, expected, 0

    def on_start(self, event: Any) -> None:
        self.number += 1
        self.progress.compiling(self.number, self.expected)

    def on_end(self, event: Any) -> None:
        pass


@contextlib.contextmanager
def compiling(progress: Listener, expected: int) -> Iterator[None]:
    """Report the kernels compiled in the block to a Progress; about `expected` kernels if none is cached."""
    began = time.monotonic()
    with event.install_listener("numba:compile", Count(progress, expected)) as count:
        try:
            yield
        finally:
            if count.number:
                progress.compiling(None, expected)
    seconds = time.monotonic() - began
    if count.number and seconds > SHORT and type(progress) is not Progress:  # silent in `warm_up`, within another block
        log.info(f"compiled {counted(count.number, 'kernel')} for this CPU in {seconds:.0f} s (first run only)")
