"""Parameter initializers: functions fill(rng, array), which Params.draw calls in order."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

DRAWN = 4096  # rows per call to the generator


class Start(NamedTuple):
    """Initializers for the weights and biases of a layer.

    forget      added to the biases of forget gates
    embeddings  for the subword embeddings of an encoder; None: like weights
    """

    weights: Callable
    biases: Callable
    forget: float = 0.0
    embeddings: Callable | None = None


def uniform(reach=None):
    """Return an initializer that draws uniformly from -reach to reach; None: 1 / sqrt(number of rows)."""

    def fill(rng, array):
        limit = 1 / math.sqrt(len(array)) if reach is None else reach
        for rows in np.split(array, range(DRAWN, len(array), DRAWN)):
            rows[:] = rng.uniform(-limit, limit, rows.shape)

    return fill


def normal(deviation=None):
    """Return an initializer that draws from a normal distribution; None: deviation 1 / sqrt(number of rows)."""

    def fill(rng, array):
        scale = 1 / math.sqrt(len(array)) if deviation is None else deviation
        for rows in np.split(array, range(DRAWN, len(array), DRAWN)):
            rows[:] = rng.normal(0, scale, rows.shape)

    return fill


def orthogonal(rng, array):
    """Fill an array [n, k n] with k random orthogonal matrices, by singular value decomposition (Saxe et al. 2014)."""
    for block in np.split(array, array.shape[1] // len(array), 1):
        block[:] = np.linalg.svd(rng.normal(size=block.shape))[0]


def constant(value):
    """Return an initializer that fills with `value`."""

    def fill(rng, array):
        array[:] = value

    return fill


def zeros(rng, array):
    """Fill with zeros, but advance the generator as a random initializer would, so that later draws are unaffected."""
    rng.random(array.shape)
    array[:] = 0
