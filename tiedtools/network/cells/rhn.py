"""The cell of recurrent highway networks."""

from typing import Any

import numpy as np

from tiedtools.kernels.cells import rhn
from tiedtools.network.cells.lstm import LSTM
from tiedtools.network.params import Params
from tiedtools.network.start import Start


class RHN(LSTM):
    """A recurrent highway cell of `depth` micro-steps: h_t from x_t and h_{t-1}; see kernels/cells/rhn.py.

    Parameters: name.W_x  [m, 2n]        name.R  [depth, n, 2n]        name.b  [depth, 2n], transform gates last

    transform  initial bias of the transform gates

    As in Zilly et al., one mask serves all micro-steps, for both the transform gate and its candidate state.
    """

    gates, parts, kernel, states = 1, 1, rhn, rhn.RhnStates

    def __init__(self, *args: Any, depth: int, transform: float, **options: Any) -> None:
        self.depth, self.transform = depth, transform
        super().__init__(*args, **options)

    def declare(self, params: Params, name: str, m: int, n: int, start: Start) -> tuple[str, ...]:
        def biases(rng: np.random.Generator, b: np.ndarray) -> None:
            start.biases(rng, b)
            b[:, n:] = self.transform

        names = tuple(f"{name}.{part}" for part in ("W_x", "R", "b"))
        params.add(names[0], (m, 2 * n), start.weights)
        params.add(names[1], (self.depth, n, 2 * n), start.weights)
        params.add(names[2], (self.depth, 2 * n), biases)
        return names
