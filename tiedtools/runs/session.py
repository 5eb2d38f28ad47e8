"""The interface of the two training loops, word2vec's Run and the language models' Fit, and criteria for divergence."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tiedtools.runs.checkpoints import Checkpoint
from tiedtools.runs.progress import Listener, Progress

WORST_LOSS = 2.0  # mean loss of an epoch above which training has diverged, relative to that of uniform predictions
LARGEST = 1e4  # magnitude of a parameter


class Session:
    """Base class of a training run of one model. The constructor validates its arguments; `go` may take hours.

    model       the model being trained
    checkpoint  its Checkpoint, or None
    history     list of dicts, the figures of each epoch
    progress    the Progress to report to

    A subclass defines:

    go(progress)            train to the end; raises KeyboardInterrupt or Diverged, leaving what may be `worthwhile`
    figures                 results so far, a dict by name; None where unknown
    standing                where a resumed run starts, for the log
    reached                 progress so far, for messages
    worthwhile(stopped)     whether the model is worth writing; stopped: the exception that stopped training, or None
    contents()              (progress, arrays) for a checkpoint; progress is a JSON-serializable dict
    check(progress, arrays)  raise one of modelfile.WRONG unless these, see `contents`, are complete and fit this run
    load(checkpoint)        restore the state saved by `contents`; raises TiedtoolsError for the state of another run
    """

    checkpoint: Checkpoint | None = None
    progress: Listener
    elapsed: float = 0.0  # seconds before `clock`
    began: float | None = None  # starting time of `clock`

    def __init__(self, model: Any) -> None:
        self.model, self.history, self.progress = model, [], Progress()

    @contextlib.contextmanager
    def clock(self) -> Iterator[None]:
        """Count the duration of the block as training time."""
        self.began = time.monotonic() - self.elapsed
        try:
            yield
        finally:
            self.elapsed, self.began = self.seconds, None

    @property
    def seconds(self) -> float:
        """Seconds of training so far, including earlier runs."""
        return self.elapsed if self.began is None else time.monotonic() - self.began


def is_sane(*arrays: np.ndarray) -> bool:
    """Return whether all parameters are finite, with magnitudes up to LARGEST."""
    return all(-LARGEST <= array.min() and array.max() <= LARGEST for array in arrays if array.size)


def beyond(limit: float) -> str:
    """Return the message for a loss above `limit`, in nats."""
    return f"the loss exceeds {limit:.1f} nats, {WORST_LOSS:g} times that of uniform predictions"
