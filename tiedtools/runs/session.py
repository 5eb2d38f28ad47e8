"""Common interface of the two training loops: word2vec's Run and the language models' Fit."""

import abc
import contextlib
import time

from tiedtools.runs.progress import Progress


class Session(abc.ABC):
    """One training run of one model. The constructor validates its arguments; `go` may take hours.

    model       the model being trained
    checkpoint  its Checkpoint, or None
    history     list of dicts, the figures of each epoch
    progress    the Progress to report to
    """

    def __init__(self, model):
        self.model, self.checkpoint, self.history, self.progress = model, None, [], Progress()
        self.elapsed, self.began = 0.0, None  # seconds before `clock`, and its starting time

    @contextlib.contextmanager
    def clock(self):
        """Count the duration of the block as training time."""
        self.began = time.monotonic() - self.elapsed
        try:
            yield
        finally:
            self.elapsed, self.began = self.seconds, None

    @property
    def seconds(self):
        """Seconds of training so far, including earlier runs."""
        return self.elapsed if self.began is None else time.monotonic() - self.began

    @abc.abstractmethod
    def go(self, progress=None):
        """Train to the end. Raises KeyboardInterrupt or Diverged, leaving the best model available."""

    @property
    @abc.abstractmethod
    def figures(self):
        """Results so far: a dict of figures, None where unknown."""

    @property
    @abc.abstractmethod
    def standing(self):
        """Where a resumed run starts, for the log."""

    @property
    @abc.abstractmethod
    def reached(self):
        """Progress so far, for messages."""

    @abc.abstractmethod
    def worthwhile(self, stopped=None):
        """Return whether the model is worth writing; `stopped` is the exception that stopped training, or None."""

    @abc.abstractmethod
    def contents(self):
        """Return (progress, arrays) for a checkpoint: a JSON-serializable dict and a dict of arrays."""

    @abc.abstractmethod
    def check(self, progress, arrays):
        """Raise one of modelfile.WRONG unless progress and arrays, see `contents`, are complete and fit this run."""

    @abc.abstractmethod
    def load(self, checkpoint):
        """Restore the state saved by `contents`. Raises TiedtoolsError for a checkpoint of another run."""
