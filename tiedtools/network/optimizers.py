"""Optimizers: update(lr) changes parameters by their gradients."""

import math

import numpy as np

from tiedtools.kernels import descent


class SGD:
    """Stochastic gradient descent.

    clip    limit of the gradient's global norm; 0: none
    decay   fraction by which all parameters shrink in each step, not scaled by the learning rate
    """

    def __init__(self, params, clip=0.0, decay=0.0):
        self.params, self.clip, self.decay = params, clip, decay
        self.norm, self.squares = np.zeros(1), np.zeros((params.team.threads, 8))

    def update(self, lr):
        """Returns the gradient's norm before clipping; where it is not finite, the parameters stay as they were."""
        p = self.params
        flat = p.values, p.grads, p.dense, *p.segments()
        p.team(descent.step, self.norm, self.squares, *flat, lr, self.clip or math.inf, self.decay)
        p.constrain() if lr else p.changed()  # without a rate, weights may still have decayed
        return float(self.norm[0])
