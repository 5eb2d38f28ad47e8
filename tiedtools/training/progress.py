"""What a training run tells while it goes on."""


class Progress:
    """Listens to a run; this one does nothing. All loss is in nats per prediction.

    The run calls `begin` before all else, `update` now and then, and `epoch` after each epoch.
    """

    def begin(self, total, begun=0, history=(), endless=False):
        """`total` words to train on, of which an earlier run has done `begun`; its epochs are `history`.

        endless  the number of epochs is not known, so that `total` and `update` are of each epoch
        """

    def restart(self):
        """An epoch begins, where their number is not known."""

    def update(self, done, loss, lr):
        """`done` words of the total so far, with the mean loss of this epoch."""

    def epoch(self, **figures):
        """An epoch is done; the run has the figures."""
