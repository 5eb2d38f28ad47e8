"""Optimizers: `update(lr)` applies the gradients to the parameters."""

import math

import numpy as np

from tiedtools.kernels import descent


class SGD:
    """Stochastic gradient descent.

    clip    maximum global norm of the gradient; 0: no clipping
    decay   fraction by which all parameters shrink per step, not scaled by the learning rate
    """

    def __init__(self, params, clip=0.0, decay=0.0):
        self.params, self.clip, self.decay = params, clip, decay
        self.norm, self.squares = np.zeros(1), np.zeros((params.team.threads, 8))

    def update(self, lr):
        """Update the parameters. Returns the gradient norm before clipping; if it is not finite, nothing changes."""
        p = self.params
        flat = p.values, p.grads, p.dense, *p.segments()
        p.team(descent.step, self.norm, self.squares, *flat, lr, self.clip or math.inf, self.decay)
        p.constrain() if lr else p.changed()  # with lr = 0, weight decay may still have changed the values
        return float(self.norm[0])
