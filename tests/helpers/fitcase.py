"""A small run of the training loop with a toy model."""

import signal

import numpy as np
import pytest
from toylm import ToyLM

from tiedtools.base import interrupts
from tiedtools.cli.report import LmReport
from tiedtools.models.lm.config import LstmConfig
from tiedtools.runs.progress import Progress
from tiedtools.text.vocab import Vocab
from tiedtools.training.fit import Fit, Hooks
from tiedtools.training.schedules import Training

V = 7
VOCAB = Vocab(["</s>", *"abcdef"], np.arange(V, 0, -1))
CONFIG = LstmConfig(batch=3, steps=5, drop_out=0.3)


def text(n, seed=0):
    """Return a text in which words depend strongly on the previous word."""
    rng, ids = np.random.default_rng(seed), [0]
    for _ in range(n - 1):
        ids.append(int(ids[-1] * 3 + rng.choice([1, 2], p=[0.8, 0.2])) % V)
    return np.array(ids, np.int32)


TRAIN, VALID = text(212), text(83, 1)
TRAINING = Training(epochs=4, lr=5.0, clip=1.0, eval_batch=4)


def fit(model, train, valid, training, report, *args, **options):
    return Fit(model, train, valid, training, *args, **options).go(report)


def interrupted(*args, **options):
    """Call `fit`, check that a signal stops it, and forget the signal; return the KeyboardInterrupt."""
    with pytest.raises(KeyboardInterrupt) as stop:
        fit(*args, **options)
    interrupts.received.clear()
    return stop.value


def trained(training=TRAINING, config=CONFIG, valid=VALID, **options):
    model = ToyLM(VOCAB, config)
    history = fit(model, TRAIN, valid, training, Progress(), **options)
    return model.params.values, history


class Calling(Hooks):
    """Hooks that call functions with the Fit."""

    def __init__(self, after_step=lambda run: None, after_epoch=lambda run: None):
        self.after_step, self.after_epoch = after_step, after_epoch


class Stopping(LmReport):
    """A report that receives SIGTERM after `after` updates."""

    def __init__(self, after):
        super().__init__(0)
        self.after = after

    def update(self, *figures):
        self.after -= 1
        if self.after == 0:
            interrupts.handle(signal.SIGTERM, None)
