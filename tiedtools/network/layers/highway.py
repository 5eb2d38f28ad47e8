"""The highway layer."""

import numpy as np

from tiedtools.kernels.output import highway
from tiedtools.kernels.output.linear import Gradients
from tiedtools.network.buffers import Buffers
from tiedtools.network.params import Params
from tiedtools.network.start import Start
from tiedtools.network.step import Step

OPEN = -2.01, -1.99  # initial biases of the transform gates (Assylbekov and Takhanov's code): at first, t is about .12


class Highway:
    """Highway layer with ReLU, [T, B, n] -> [T, B, n]: see kernels/output/highway.py.

    Parameters: name.W  [n, 2n]        name.b  [2n], transform gates first
    """

    def __init__(self, params: Params, name: str, n: int, start: Start) -> None:
        def biases(rng: np.random.Generator, b: np.ndarray) -> None:
            drawn = np.zeros(n)
            start.biases(rng, drawn)
            b[:] = np.concatenate([rng.uniform(*OPEN, n), drawn])

        self.W, self.b = f"{name}.W", f"{name}.b"
        params.add(self.W, (n, 2 * n), start.weights)
        params.add(self.b, (2 * n,), biases)
        self.params, self.team, self.n, self.buffers = params, params.team, n, Buffers(params.dtype)

    def forward(self, x: np.ndarray, step: Step) -> np.ndarray:
        self.x, n, buffer, half = x.reshape(-1, x.shape[-1]), self.n, self.buffers, self.params.half
        N, y = len(self.x), buffer("y", *x.shape[:2], n)
        self.y, self.signed = y.reshape(N, -1), buffer("signed gates", N, n)
        bf16 = buffer.bf16(half, step.training, x_along=(N, n), w_down=(n, 2 * n))
        weights = self.params.padded(self.W), self.params[self.b]
        scores = buffer("scores", self.team.threads, highway.BLOCK, 2 * n)
        self.team(highway.forward, self.y, self.signed, self.x, *weights, scores, bf16)
        return y

    @property
    def gates(self) -> np.ndarray:
        """Transform gates of the last forward pass, [T B, n]."""
        return np.abs(self.signed[:, : self.n])

    def backward(self, dy: np.ndarray) -> np.ndarray:
        n, N = self.n, len(self.x)
        dx = self.buffers("dx", *dy.shape[:2], n)
        dW, accumulate = self.params.gradient(self.W)
        db, accumulate_b = self.params.gradient(self.b)
        threads, rows, buffer = self.team.threads, highway.ROWS_BACK, self.buffers
        bf16 = buffer.bf16(
            self.params.half, wt_down=(2 * n, n),
            dz_along=(threads * rows, 2 * n), dz_down=(threads * rows, 2 * n), xt_along=(threads * n, rows),
        )  # fmt: skip
        gradients = Gradients(dx.reshape(N, -1), dW, db, accumulate, accumulate_b)
        scratch = highway.Scratch(
            buffer("W transposed", 2 * n, n), buffer("x transposed", threads, n, rows),
            buffer("errors", threads, rows, 2 * n), buffer("parts", threads, n + 1, 2 * n), bf16,
        )  # fmt: skip
        W, saved = self.params.padded(self.W), (self.y, self.signed, self.x)
        self.team(highway.backward, gradients, scratch, dy.reshape(N, -1), *saved, W)
        return dx
