"""Feed-forward layers: embedding, linear, and highway."""

from typing import Any

import numpy as np

from tiedtools.kernels.output import highway, linear
from tiedtools.kernels.output.linear import Gradients
from tiedtools.network.network import Step
from tiedtools.network.params import Buffers, Params, Start
from tiedtools.network.tables import Table


class Embedding:
    """Embedding layer: x_t = E[w_t], with E from a word table; the vector of ID -1 is 0."""

    def __init__(self, params: Params, table: Table) -> None:
        self.table, self.buffers = table, Buffers(params.dtype)

    def forward(self, ids: np.ndarray, step: Step) -> np.ndarray:
        """Look up embeddings: int32 [T, B] -> [T, B, m]."""
        self.unread = np.flatnonzero(ids.ravel() < 0)
        self.ids = np.maximum(ids.ravel(), 0) if self.unread.size else ids.ravel()
        y = self.buffers("y", *ids.shape, self.table.m)
        self.table.rows(y.reshape(ids.size, -1), self.ids)
        y.reshape(ids.size, -1)[self.unread] = 0
        return y

    def backward(self, dy: np.ndarray) -> None:
        """Add each row of dy [T, B, m] to the gradient of its word's embedding; rows of ID -1 of dy become 0."""
        rows = dy.reshape(self.ids.size, -1)
        rows[self.unread] = 0
        self.table.add_to_rows(rows, self.ids)


class Linear:
    """Linear layer y = x W + b: L of Gulordava et al. 2018 (without b), P of Press and Wolf 2017, section 3 (with b).

    Parameters: name.W  [m, n]        name.b  [n], if there is a bias
    """

    def __init__(
        self, params: Params, name: str, m: int, n: int, start: Start, bias: bool = False, decay: float = 0.0
    ) -> None:
        """`decay`: L2 regularization; adds decay / 2 |W|^2 times Step.scale to the objective."""
        self.W, self.b = f"{name}.W", f"{name}.b" if bias else None
        params.add(self.W, (m, n), start.weights)
        if self.b:
            params.add(self.b, (n,), start.biases)
        self.params, self.team, self.m, self.n, self.decay = params, params.team, m, n, decay
        self.buffers = Buffers(params.dtype)

    def forward(self, x: np.ndarray, step: Step) -> np.ndarray:
        """Forward pass: [T, B, m] -> [T, B, n]."""
        y, arguments = self.prepare(x, step)
        self.team(linear.forward, *arguments)
        return y

    def prepare(self, x: np.ndarray, step: Step) -> tuple[np.ndarray, tuple[Any, ...]]:
        """Return the result of `forward` before it is computed, and the arguments of the kernel that computes it."""
        self.x, self.scale, half = x.reshape(-1, x.shape[-1]), step.scale, self.params.half
        y = self.buffers("y", *x.shape[:2], self.n)
        flat, W, b = y.reshape(len(self.x), -1), self.params.padded(self.W), self.params[self.b]
        bf16 = self.buffers.bf16(half, step.training, x_along=(len(flat), self.m), w_down=(self.m, self.n))
        return y, (flat, self.x, W, b, bf16)

    def backward(self, dy: np.ndarray) -> np.ndarray:
        """Backward pass: [T, B, n] -> [T, B, m]."""
        dx = self.buffers("dx", *dy.shape[:2], self.m)
        dW, accumulate = self.params.gradient(self.W)
        db, accumulate_b = self.params.gradient(self.b)
        N, m, n = len(self.x), self.m, self.n
        bf16 = self.buffers.bf16(self.params.half, dy_along=(N, n), wt_down=(n, m), xt_along=(m, N), dy_down=(N, n))
        gradients = linear.Gradients(dx.reshape(self.x.shape), dW, db, accumulate, accumulate_b)
        scratch = self.buffers("W transposed", n, m), self.buffers("x transposed", m, N), bf16
        self.team(linear.backward, gradients, scratch, dy.reshape(N, -1), self.x, self.params.padded(self.W), n)
        if self.decay:
            dW += self.scale * self.decay * self.params.padded(self.W)
        return dx


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
