"""What all layers of a network know about the present window."""

from collections.abc import Callable, Hashable
from typing import NamedTuple

import numpy as np


class Step(NamedTuple):
    """One window: words read and predicted, and what is random in it.

    ids       int32 [T, B]
    targets   int32 [T, B], -1: not counted; None where nothing is predicted
    seed      site -> uint64 that seeds the masks or samples of a site, a name or a tuple; None: nothing is dropped
    training  products are of the configured precision, words are dropped, and there is a gradient
    scale     the objective is `scale` times the sum of all losses
    """

    ids: np.ndarray
    targets: np.ndarray | None = None
    seed: Callable[[Hashable], np.uint64] | None = None
    training: bool = False
    scale: float = 1.0
