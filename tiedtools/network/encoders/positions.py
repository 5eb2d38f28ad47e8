"""Products of subword embeddings with weights that depend on a position, in a word or in a window."""

from collections.abc import Iterable, Sequence

import numpy as np

from tiedtools.kernels.base.elementwise import add_to_rows, gather_rows
from tiedtools.kernels.output import linear
from tiedtools.network.buffers import Buffers
from tiedtools.network.params import Params
from tiedtools.network.start import Start

FULL = (None,) * 2, (None,) * 4  # these products are a small part of a step: always in full precision


class Positions:
    """T[r] = E[units[r]] W_p for each row r of position p.

    Words share few pairs of a subword and a position, so this takes fewer operations than products for each word.

    E  the name of the subword embeddings [S, d], declared by the encoder
    Parameter: W  [P d, n], the weights W_p [d, n] of P positions, one below the other
    """

    def __init__(self, params: Params, E: str, W: str, P: int, d: int, n: int, start: Start) -> None:
        params.add(W, (P * d, n), start.weights)
        self.params, self.team, self.E, self.W, self.P, self.d, self.n = params, params.team, E, W, P, d, n
        self.buffers = Buffers(params.dtype)

    def forward(self, units: np.ndarray, firsts: Sequence[int]) -> np.ndarray:
        """Return T [R, n].        units  int [R]        firsts  int [P + 1]: first row of each position, and R"""
        self.units, self.firsts, R = units, firsts, len(units)
        self.x, y = self.buffers("x", R, self.d), self.buffers("y", R, self.n)
        self.team(gather_rows, self.x, self.params.padded(self.E), units)
        W, none = self.params.padded(self.W), self.params[None]
        for rows, block in self.blocks():
            self.team(linear.forward, y[rows], self.x[rows], W[block], none, FULL[0])
        return y

    def backward(self, dy: np.ndarray) -> None:
        d, n, W, none = self.d, self.n, self.params.padded(self.W), self.params[None]
        dx, (dW, accumulate) = self.buffers("dx", len(self.units), d), self.params.gradient(self.W)
        for rows, block in self.blocks():
            if rows.start == rows.stop and not accumulate:
                dW[block] = 0
            WT, XT = self.buffers("W transposed", n, d), self.buffers("x transposed", d, rows.stop - rows.start)
            gradients = linear.Gradients(dx[rows], dW[block], none, accumulate, False)
            self.team(linear.backward, gradients, (WT, XT, FULL[1]), dy[rows], self.x[rows], W[block], n)
        self.team(add_to_rows, self.params.row_gradient(self.E, np.empty(0, np.int64)), dx, self.units)

    def blocks(self) -> Iterable[tuple[slice, slice]]:
        """Return (rows of T, rows of W) of each position, as slices."""
        rows = [slice(first, last) for first, last in zip(self.firsts, self.firsts[1:])]
        return zip(rows, (slice(p * self.d, (p + 1) * self.d) for p in range(self.P)))
