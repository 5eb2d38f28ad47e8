"""The data of one training or scoring window, passed to all layers of a network."""

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np


class Step(NamedTuple):
    """One window: input words, targets, and random seeds.

    ids       int32 [T, B]; None: no words are read, and word tables are composed
    targets   int32 [T, B], -1: ignored; None if nothing is predicted
    seed      function from a site (name or tuple) to the uint64 seed of its masks or samples; None: no dropout
    training  compute gradients, drop words, and use the configured precision for products
    scale     factor of the sum of losses in the objective
    """

    ids: np.ndarray | None
    targets: np.ndarray | None = None
    seed: Callable[[Hashable], np.uint64] | None = None
    training: bool = False
    scale: float = 1.0
