"""The linear layer."""

from typing import Any

import numpy as np

from tiedtools.kernels.output import linear
from tiedtools.network.buffers import Buffers
from tiedtools.network.params import Params
from tiedtools.network.start import Start
from tiedtools.network.step import Step


class Linear:
    """Linear layer y = x W + b: L of Gulordava et al. 2018 (without b), P of Press and Wolf 2017, section 4 (with b).

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
