"""What the two loops, word2vec's Run and the language models' Fit, have in common for whoever drives them."""

import abc
import contextlib
import time

from tiedtools.training.progress import Progress


class Session(abc.ABC):
    """One training of one model. Making one tells mistakes at once; `go` may take hours.

    model       what is trained
    checkpoint  the Checkpoint to which it is written, or None
    history     figures of each epoch, dicts
    progress    the Progress that is told
    """

    def __init__(self, model):
        self.model, self.checkpoint, self.history, self.progress = model, None, [], Progress()
        self.elapsed, self.began = 0.0, None  # seconds before `clock`, and when that began

    @contextlib.contextmanager
    def clock(self):
        """A block whose time is that of training."""
        self.began = time.monotonic() - self.elapsed
        try:
            yield
        finally:
            self.elapsed, self.began = self.seconds, None

    @property
    def seconds(self):
        """Of training so far, an earlier run's included."""
        return self.elapsed if self.began is None else time.monotonic() - self.began

    @abc.abstractmethod
    def go(self, progress=None):
        """Train to the end. Raises KeyboardInterrupt or Diverged, with the best model there is."""

    @property
    @abc.abstractmethod
    def figures(self):
        """What has come of it so far: a dict of figures, None where unknown."""

    @property
    @abc.abstractmethod
    def standing(self):
        """What has been done, in words, of a session that is resumed."""

    @property
    @abc.abstractmethod
    def reached(self):
        """How far it has come, in words."""

    @abc.abstractmethod
    def worthwhile(self, stopped=None):
        """Whether the model is worth writing, after what stopped the training."""

    @abc.abstractmethod
    def contents(self):
        """(progress, a dict that JSON can hold; arrays) of a checkpoint."""

    @abc.abstractmethod
    def check(self, progress, arrays):
        """Raise one of modelfile.WRONG unless a checkpoint has all that `contents` gives of such a session."""

    @abc.abstractmethod
    def load(self, checkpoint):
        """Take up what `contents` gave. Raises TiedtoolsError for a checkpoint of another session."""
