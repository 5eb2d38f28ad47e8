"""The data of one training or scoring window, passed to all layers of a network."""

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

State = tuple[np.ndarray, ...]  # what a model passes from window to window: arrays whose axis 1 has length B


class Step(NamedTuple):
    """One window: input words, targets, and random seeds. Fields that may be None are Any, since layers know when.

    ids       int32 [T, B]; None: the step only composes word tables
    targets   int32 [T, B], -1: ignored; None if nothing is predicted
    seed      function from a site (name or tuple) to the uint64 seed of its masks or samples; None: no dropout
    training  compute gradients, drop words, and use the configured precision for products
    scale     factor of the sum of losses in the objective
    lengths   int32 [B], numbers of words of the sequences, without padding; None: no padding
    """

    ids: Any
    targets: Any = None
    seed: Any = None
    training: bool = False
    scale: float = 1.0
    lengths: Any = None


def mask_seed(seed: int, step: int, site: Hashable) -> np.uint64:
    """Return a 64-bit seed for the masks at one site, a name or a tuple, in one step."""
    words = np.frombuffer(repr(site).encode().ljust(32), np.uint32)
    return np.random.SeedSequence([seed, step % 2**64, *words.tolist()]).generate_state(1, np.uint64)[0]
