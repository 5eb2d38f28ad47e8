"""How parameters start: functions fill(rng, array), which Params.draw calls one after the other."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

DRAWN = 4096  # rows at a time


class Start(NamedTuple):
    """How the weights and the biases of a layer start; `forget` is added to the biases of forget gates."""

    weights: Callable
    biases: Callable
    forget: float = 0.0


def uniform(reach):
    """Uniform from -reach to reach."""

    def fill(rng, array):
        for rows in np.split(array, range(DRAWN, len(array), DRAWN)):
            rows[:] = rng.uniform(-reach, reach, rows.shape)

    return fill


def constant(value):
    def fill(rng, array):
        array[:] = value

    return fill


def zeros(rng, array):
    """Zeros, for which as many numbers are drawn, so that whatever is drawn next does not depend on this."""
    rng.random(array.shape)
    array[:] = 0
