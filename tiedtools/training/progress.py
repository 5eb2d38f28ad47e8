"""Progress of a training run: what it reports while it goes on."""

import contextlib

from tiedtools.figures import to_json
from tiedtools.messages import log


class Progress:
    """Listens to a run; this one does nothing. All losses are in nats per prediction.

    The run calls `begin` first, `update` now and then, `epoch` after each epoch, and `close` at the end.
    """

    def begin(self, total, begun=0, history=(), endless=False):
        """`total` words to train on, of which an earlier run has done `begun`; the figures of its epochs are `history`.

        endless  the number of epochs is not known, so that `total` and `update` count the words of one epoch
        """

    def restart(self):
        """An epoch begins, where their number is not known."""

    def update(self, done, loss, lr):
        """`done` words of the total so far, with the mean loss of this epoch."""

    def epoch(self, **figures):
        """An epoch is done; the run has the figures."""

    def close(self):
        """The run has ended, however it did."""


class EpochLog:
    """A Progress that writes the figures of each epoch to a text file as JSON lines, and passes everything on.

    file      None: write nothing
    listener  another Progress
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
                log.warning(f"the log cannot be written any more: {error.strerror}")
                with contextlib.suppress(OSError):
                    self.file.close()
                self.file = None
