"""A minimal recurrent cell, h_t = tanh(x_t W + h_{t-1} U), in plain NumPy."""

import numpy as np

from tiedtools.network.params import Buffers


class Elman:
    gates, parts = 1, 1

    def __init__(self, params, name, m, n, start, masks=(None, None)):
        self.params, self.W, self.U, self.m, self.n = params, f"{name}.W", f"{name}.U", m, n
        params.add(self.W, (m, n), start.weights)
        params.add(self.U, (n, n), start.weights)
        self.buffers = Buffers(params.dtype)

    def start(self, B):
        return (np.zeros((1, B, self.n), self.params.dtype),)

    def forward(self, x, state, step):
        W, U, h = self.params[self.W], self.params[self.U], [state[0][0]]
        for row in x[..., : self.m]:
            h.append(np.tanh(row @ W + h[-1] @ U))
        self.x, self.h, y = x[..., : self.m], np.array(h), self.buffers("y", *x.shape[:2], self.n)
        y[..., : self.n] = h[1:]
        return y, (self.h[None, -1].copy(),)

    def backward(self, dy):
        W, U, back = self.params[self.W], self.params[self.U], 0
        dx = self.buffers("dx", *self.x.shape)
        dW, dU = (self.params.gradient(name)[0][:, : self.n] for name in (self.W, self.U))
        dW[:] = dU[:] = 0
        for t in reversed(range(len(dx))):
            dz = (dy[t, :, : self.n] + back) * (1 - self.h[t + 1] ** 2)
            dW += self.x[t].T @ dz
            dU += self.h[t].T @ dz
            dx[t, :, : self.m], back = dz @ W.T, dz @ U.T
        return dx
