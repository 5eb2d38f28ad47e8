"""Parameter initializers: functions fill(rng, array), which Params.draw calls in order."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Fill = Callable[[np.random.Generator, np.ndarray], object]  # an initializer
DRAWN = 4096  # rows per call to the generator


class Start(NamedTuple):
    """Initializers for the weights and biases of a layer.

    forget      added to the biases of forget gates
    embeddings  for the subword embeddings of an encoder; None: like weights
    """

    weights: Fill
    biases: Fill
    forget: float = 0.0
    embeddings: Fill | None = None


def uniform(reach: float | None = None) -> Fill:
    """Return an initializer that draws uniformly from -reach to reach; None: 1 / sqrt(number of rows)."""

    def fill(rng: np.random.Generator, array: np.ndarray) -> None:
        limit = 1 / math.sqrt(len(array)) if reach is None else reach
        for rows in np.split(array, range(DRAWN, len(array), DRAWN)):
            rows[:] = rng.uniform(-limit, limit, rows.shape)

    return fill


def normal(deviation: float | None = None) -> Fill:
    """Return an initializer that draws from a normal distribution; None: deviation 1 / sqrt(number of rows)."""

    def fill(rng: np.random.Generator, array: np.ndarray) -> None:
        scale = 1 / math.sqrt(len(array)) if deviation is None else deviation
        for rows in np.split(array, range(DRAWN, len(array), DRAWN)):
            rows[:] = rng.normal(0, scale, rows.shape)

    return fill


def orthogonal(rng: np.random.Generator, array: np.ndarray) -> None:
    """Fill an array [n, k n] with k random orthogonal matrices, by singular value decomposition (Saxe et al. 2014)."""
    for block in np.split(array, array.shape[1] // len(array), 1):
        block[:] = np.linalg.svd(rng.normal(size=block.shape))[0]


def constant(value: float) -> Fill:
    """Return an initializer that fills with `value`."""

    def fill(rng: np.random.Generator, array: np.ndarray) -> None:
        array[:] = value

    return fill


def zeros(rng: np.random.Generator, array: np.ndarray) -> None:
    """Fill with zeros, but advance the generator as a random initializer would, so that later draws are unaffected."""
    rng.random(array.shape)
    array[:] = 0
