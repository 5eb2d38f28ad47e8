"""The bidirectional GRU layer."""

import numpy as np

from tiedtools.kernels.cells import gated
from tiedtools.kernels.cells.gated import GATES
from tiedtools.kernels.output import linear
from tiedtools.kernels.output.descent import add
from tiedtools.network.buffers import Buffers
from tiedtools.network.layers.linear import Linear
from tiedtools.network.params import Params
from tiedtools.network.start import Start, orthogonal
from tiedtools.network.step import Step


def recurrent_weights(params: Params, name: str, n: int) -> str:
    """Declare the weights of the state in a GRU, [n, 3n], initially orthogonal; returns their name."""
    params.add(name, (n, GATES * n), orthogonal)
    return name


def state_gradient(params: Params, buffers: Buffers, name: str, dz: np.ndarray, before: np.ndarray) -> None:
    """Add to the gradient of the weights `name` from dz [N, columns], the gradient of their output for `before`."""
    dW, accumulate = params.gradient(name)
    rows, (m, n) = len(dz), params[name].shape
    bf16 = buffers.bf16(params.half, True, xt_along=(m, rows), **{f"dz{n}_down": (rows, n)})
    params.team(linear.weights, dW, buffers("x transposed", m, rows), bf16, dz, before, accumulate)


class Direction:
    """A GRU over sentences, from the last word to the first if `reverse`; see kernels/cells/gated.py.

    Parameters: name.x.W  [m, 3n]        name.x.b  [3n]        name.W_h  [n, 3n], gates in the order r, u, c
    """

    def __init__(self, params: Params, name: str, m: int, n: int, start: Start, reverse: bool) -> None:
        self.inputs = Linear(params, f"{name}.x", m, GATES * n, start, bias=True)
        self.W = recurrent_weights(params, f"{name}.W_h", n)
        self.params, self.team, self.n, self.reverse = params, params.team, n, reverse
        self.buffers = Buffers(params.dtype)

    def forward(self, y: np.ndarray, x: np.ndarray, step: Step, lengths: np.ndarray) -> None:
        """Set this direction's half of y [T, B, 2n] from x [T, B, m]."""
        (T, B, _), n, buffer = x.shape, self.n, self.buffers
        gates = self.inputs.forward(x, step).reshape(T * B, -1)
        steps = gated.Steps(gates, buffer("q", T * B, n), buffer("h", (T + 1) * B, n))
        bf16 = buffer.bf16(self.params.half, step.training, h_along=(B, n), w_down=(n, GATES * n))
        self.saved = steps, lengths
        scratch, W = (buffer("sums", B, GATES * n), bf16), self.params.padded(self.W)
        self.team(gated.forward, y.reshape(T * B, -1), steps, scratch, W, lengths, n, self.reverse)

    def backward(self, dy: np.ndarray) -> np.ndarray:
        """Return dx [T, B, m] for dy [T, B, 2n]."""
        (T, B, _), n, buffer, (steps, lengths) = dy.shape, self.n, self.buffers, self.saved
        dz, W = buffer("dz", T * B, GATES * n), self.params.padded(self.W)
        bf16 = buffer.bf16(self.params.half, z_along=(B, GATES * n), wt_down=(GATES * n, n))
        scratch = buffer("dh", B, n), buffer("W transposed", GATES * n, n), bf16
        self.team(gated.backward, dz, scratch, dy.reshape(T * B, -1), steps, W, lengths, n, self.reverse)
        before = steps.H[B:] if self.reverse else steps.H[: T * B]
        state_gradient(self.params, buffer, self.W, dz, before)
        return self.inputs.backward(steps.G.reshape(T, B, -1))


class BiGRU:
    """Bidirectional GRU over sentences: x [T, B, m] -> [T, B, 2n], states of the forward and of the backward GRU.

    Sentence b has Step.lengths[b] words; the states of its padding are 0. Parameters: see Direction, with the names
    name.forward and name.backward.
    """

    def __init__(self, params: Params, name: str, m: int, n: int, start: Start) -> None:
        sides = ("forward", False), ("backward", True)
        self.directions = [Direction(params, f"{name}.{side}", m, n, start, reverse) for side, reverse in sides]
        self.team, self.n, self.buffers = params.team, n, Buffers(params.dtype)

    def forward(self, x: np.ndarray, step: Step) -> np.ndarray:
        T, B, _ = x.shape
        y = self.buffers("y", T, B, 2 * self.n)
        lengths = np.full(B, T, np.int32) if step.lengths is None else step.lengths
        for direction in self.directions:
            direction.forward(y, x, step, lengths)
        return y

    def backward(self, dy: np.ndarray) -> np.ndarray:
        dx, other = (direction.backward(dy) for direction in self.directions)
        self.team(add, dx.reshape(-1), other.reshape(-1), 1.0)
        return dx
