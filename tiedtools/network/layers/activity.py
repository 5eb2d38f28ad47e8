"""Activation regularization (AR and TAR) of Merity, Keskar, and Socher 2018: layers that only add to the gradient.

The terms are on the scale of the mean nats, for which Step.scale is 1 / (T B). With the sum over time, both the nats
and the terms are T times as large. Reported nats do not include the terms.
"""

import numpy as np

from tiedtools.kernels.base.elementwise import add_changes
from tiedtools.kernels.output.descent import add
from tiedtools.network.params import Params
from tiedtools.network.step import Step


class Activity:
    """Identity layer that adds weight * mean(x^2) to the objective (AR), for x [T, B, n]."""

    def __init__(self, params: Params, n: int, weight: float) -> None:
        self.team, self.n, self.weight = params.team, n, weight

    def forward(self, x: np.ndarray, step: Step) -> np.ndarray:
        self.x, self.scale = x, step.scale
        return x

    def backward(self, dy: np.ndarray) -> np.ndarray:
        """Add the gradient to dy, in place."""
        self.team(add, dy.reshape(-1), self.x.reshape(-1), 2 * self.weight * self.scale / self.n)
        return dy


class TemporalActivity(Activity):
    """Identity layer that adds weight * mean((x_{t+1} - x_t)^2) to the objective (TAR); 0 if T = 1."""

    def backward(self, dy: np.ndarray) -> np.ndarray:
        T = len(dy)
        if T > 1:
            factor = 2 * self.weight * self.scale / self.n * T / (T - 1)
            self.team(add_changes, dy.reshape(T, -1), self.x.reshape(T, -1), factor)
        return dy
