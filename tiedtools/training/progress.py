"""Listeners that a training run reports its progress to."""

import contextlib

from tiedtools.figures import to_json
from tiedtools.messages import log


class Progress:
    """Base class of progress listeners, which ignores all events. Losses are in nats per prediction.

    The run calls `begin` first, `update` at intervals, `epoch` after each epoch, and `close` at the end.
    """

    def begin(self, total, begun=0, history=(), endless=False):
        """Training begins: `total` words in all, of which an earlier run did `begun` with the epoch figures `history`.

        endless  the number of epochs is unknown; `total` and `update` then count the words of one epoch
        """

    def restart(self):
        """An epoch begins in a run whose number of epochs is unknown."""

    def update(self, done, loss, lr):
        """Training has done `done` of the total words; `loss` is the mean of this epoch so far."""

    def epoch(self, **figures):
        """An epoch is done, with these figures."""

    def close(self):
        """The run has ended, normally or not."""


class EpochLog:
    """A Progress that writes the figures of each epoch as JSON lines and forwards all events to another Progress.

    file      text file; None: write nothing
    listener  the Progress to forward to
    """

    def __init__(self, file, listener):
        self.file, self.listener = file, listener

    def __getattr__(self, name):
        return getattr(self.listener, name)

    def begin(self, total, begun=0, history=(), endless=False):
        self.listener.begin(total, begun, history, endless)
        for figures in history:
            self.write(**figures)

    def epoch(self, **figures):
        self.write(**figures)
        self.listener.epoch(**figures)

    def write(self, **figures):
        if self.file:
            try:
                self.file.write(to_json(figures) + "\n")
                self.file.flush()
            except OSError as error:
                log.warning(f"the JSON log can no longer be written: {error.strerror}; training continues without it")
                with contextlib.suppress(OSError):
                    self.file.close()
                self.file = None
