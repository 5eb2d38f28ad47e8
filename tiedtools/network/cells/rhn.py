"""The cell of recurrent highway networks."""

from tiedtools.kernels.cells import rhn
from tiedtools.network.cells.lstm import LSTM


class RHN(LSTM):
    """A recurrent highway cell of `depth` micro-steps: h_t from x_t and h_{t-1}; see kernels/cells/rhn.py.

    Parameters: name.W_x  [m, 2n]        name.R  [depth, n, 2n]        name.b  [depth, 2n], transform gates last

    transform  initial bias of the transform gates

    As in Zilly et al., one mask serves all micro-steps, for both the transform gate and its candidate state.
    """

    gates, parts, kernel, states = 1, 1, rhn, rhn.RhnStates

    def __init__(self, *args, depth, transform, **options):
        self.depth, self.transform = depth, transform
        super().__init__(*args, **options)

    def declare(self, params, name, m, n, start):
        def biases(rng, b):
            start.biases(rng, b)
            b[:, n:] = self.transform

        names = tuple(f"{name}.{part}" for part in ("W_x", "R", "b"))
        params.add(names[0], (m, 2 * n), start.weights)
        params.add(names[1], (self.depth, n, 2 * n), start.weights)
        params.add(names[2], (self.depth, 2 * n), biases)
        return names
