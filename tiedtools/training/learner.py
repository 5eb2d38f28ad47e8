"""The learner of models that are networks of batched layers."""

import math
from typing import Any, NamedTuple

import numpy as np

from tiedtools.network.optimizers import Optimizer
from tiedtools.network.step import State


class Batch(NamedTuple):
    """Words of a step, int32 [T, B] each, and a factor of its learning rate.

    For a translation model, ids are the source sentences, which may be longer or shorter than the targets.
    """

    ids: np.ndarray
    targets: np.ndarray
    lr_factor: float = 1.0


class Learner:
    """Learner that trains a model with an optimizer, as fit.py requires, on batches. The model must have:

    begin()     initial state of an epoch, a tuple of arrays
    train_step(ids, targets, state, number)
                int32 [T, B] each -> (nll_nats, n_predicted, state); leaves the gradient where the optimizer reads it.
                Target -1: not predicted. `number` counts the steps of all epochs and seeds all randomness.
    """

    def __init__(self, model: Any, optimizer: Optimizer) -> None:
        self.model, self.optimizer = model, optimizer

    def begin(self) -> State:
        return self.model.begin()

    def step(self, batch: Batch, state: State, number: int, lr: float) -> tuple[float, int, float, State]:
        ids, targets, lr_factor = batch
        nll, predicted, state = self.model.train_step(ids, targets, state, number)
        norm = self.optimizer.update(lr * lr_factor) if math.isfinite(nll) else math.nan
        return nll, predicted, norm, state
