"""The LSTM cell."""

import numpy as np

from tiedtools.kernels.base.elementwise import apply_mask
from tiedtools.kernels.base.tiles import VECTOR, WIDE
from tiedtools.kernels.cells import lstm
from tiedtools.network.buffers import Buffers


def even(n):
    """Round n up to an even number."""
    return n + n % 2


class LSTM:
    """An LSTM cell, which computes h_t, c_t from x_t, h_{t-1}, c_{t-1}; see kernels/cells/lstm.py for the equations.

    Parameters: name.W_x  [m, 4n]        name.W_h  [n, 4n]        name.b  [4n], gates in the order i, f, g, o

    Base class of the other cells, each with another `kernel`: its GATES is the number of gates in the weights, its
    COLUMNS the number of blocks of n columns that it stores for each micro-step.

    forget_gate  index of the gate with start.forget added to its biases        depth  micro-steps in a step
    """

    gates, parts, forget_gate, depth, kernel = 4, 2, 1, 1, lstm

    def __init__(self, params, name, m, n, start, masks=(None, None), drop_weights=None):
        """drop_weights: the dropout.WeightDrop of W_h, or None; its mask covers all gates."""
        self.names = self.declare(params, name, m, n, start)
        self.params, self.team, self.m, self.n = params, params.team, m, n
        self.masks, self.masks_x = masks
        self.drop_weights = drop_weights
        self.buffers, self.dense = Buffers(params.dtype), Buffers(params.dtype, odd=False)
        self.lanes = VECTOR // params.dtype.itemsize
        self.wide = WIDE * self.lanes
        self.registers = -(-n // (self.lanes * params.team.threads))  # vectors of units per thread
        self.packed = None  # the version of the parameters whose W_h is in the panels

    def declare(self, params, name, m, n, start):
        """Declare the parameters of x, of the state, and the biases; returns their names."""

        def biases(rng, b):
            drawn = np.zeros(self.kernel.GATES * n)
            start.biases(rng, drawn)
            drawn[self.forget_gate * n :][:n] += start.forget
            b[:] = drawn

        names = tuple(f"{name}.{part}" for part in ("W_x", "W_h", "b"))
        starts, size = (start.weights, start.weights, biases), self.kernel.GATES * n
        for part, shape, fill in zip(names, ((m, size), (n, size), (size,)), starts):
            params.add(part, shape, fill)
        return names

    def weights(self, step):
        """Return W_x [m, gates * n] and W_h [n, gates * n], both with padded rows, and b; W_h after weight drop."""
        W_x, W_h, b = self.names
        recurrent = self.drop_weights.forward(W_h, step) if self.drop_weights else self.params.padded(W_h)
        return self.params.padded(W_x), recurrent, self.params[b]

    def start(self, B):
        """Return the initial state, (h, c) of an LSTM, zeros [1, B, n] each."""
        return tuple(np.zeros((1, B, self.n), self.params.dtype) for _ in range(self.parts))

    def forward(self, x, state, step):
        """Forward pass: x [T, B, m], state [1, B, n] each -> h [T, B, n], new state."""
        masks, masks_x = (m and m.draw(step, x.shape[1]) for m in (self.masks, self.masks_x))
        (T, B, _), m, n, buffer, threads = x.shape, self.m, self.n, self.buffers, self.team.threads
        states = [buffer(name, self.depth * (T + 1) * B, n) for name in ("H", "C")[: self.parts]]
        for array, part in zip(states, state):
            array[:B, :n] = part[0]
        H = states[0]
        HM, X = H, x.reshape(T * B, -1)
        none = np.empty((0, B, 1), x.dtype)
        if masks is not None:
            HM = buffer("HM", len(masks) * len(H), n)
        if masks_x is not None:
            X = buffer("X", len(masks_x) * T * B, m)
            for masked, mask in zip(X.reshape(len(masks_x), *x.shape), masks_x):
                self.team.over(x.size, apply_mask, masked, x, mask[None])
        masks, masks_x = (none if m is None else m for m in (masks, masks_x))
        gates = buffer("gates", self.depth * T * B, self.kernel.COLUMNS * n + 2 * self.lanes)
        panels_per_thread = -(-self.kernel.GATES * self.registers // WIDE)
        half, used = self.params.half, step.training
        pack = self.dense("pack", threads * self.depth * panels_per_thread * n, self.wide)
        tile = buffer("tile", threads, B, panels_per_thread * self.wide)
        bf16 = buffer.bf16(half, used, x_along=(T * B, m), hm_along=(len(HM), n), wx_down=(m, self.kernel.GATES * n))
        bf16 += self.dense.bf16(half, used, pack_down=(threads * self.depth * panels_per_thread * even(n), self.wide))
        weights = self.weights(step)
        self.saved = X, HM, states[-1], masks, masks_x, gates, weights[:2]
        # The panels can be reused if the parameters have not changed since the last call; in training they always have.
        dropped = self.drop_weights and step.seed is not None
        repack = step.training or dropped or self.packed != self.params.version
        self.packed = None if dropped else self.params.version
        self.team(self.kernel.forward, gates, HM, *states, pack, tile, bf16, X, *weights, masks, repack)
        states = [array[: (T + 1) * B].reshape(T + 1, B, -1) for array in states]
        return states[0][1:], tuple(array[T:, :, :n].copy() for array in states)

    def backward(self, dh):
        """Backward pass: dh [T, B, n] -> dx [T, B, m]."""
        (T, B, _), m, n, buffer, threads = dh.shape, self.m, self.n, self.buffers, self.team.threads
        X, HM, last, masks, masks_x, G, (W_x, W_h) = self.saved
        gates = self.kernel.GATES
        panels_per_thread, rows = -(-self.registers // WIDE), self.depth * T * B
        panels = threads * self.depth * panels_per_thread
        by_gate = gates in (len(masks), len(masks_x))
        bf16 = buffer.bf16(
            self.params.half, gates_along=(rows, self.kernel.COLUMNS * even(n)), wxt_down=(gates * even(n), m),
            xt_along=(max(m, n), T * B), gates_down=(T * B, G.shape[1]),
        )  # fmt: skip
        bf16 += self.dense.bf16(self.params.half, back_down=(panels * gates * even(n), self.wide))
        dx = buffer("dx", T, B, m)
        (dW_x, accumulate_x), (dW_h, accumulate_h), (db, accumulate_b) = map(self.params.gradient, self.names)
        separate = self.drop_weights and accumulate_h  # the mask must not apply to the gradient already in dW_h
        masked, accumulate_h = (buffer("dW_h", n, gates * n), False) if separate else (dW_h, accumulate_h)
        self.team(
            self.kernel.backward, dx.reshape(T * B, -1), dW_x, masked, db, G, buffer("dC", B, n),
            self.dense("pack back", panels * gates * n, self.wide), buffer("W_x transposed", gates * n, m),
            buffer("transposed", max(m, n), T * B),
            self.dense("tile back", 2, threads, panels_per_thread * B, self.wide),
            buffer("gate", max(m, n, T * B) * by_gate, max(m, n)), bf16,
            dh.reshape(T * B, -1), X, HM, last, W_x, W_h, masks, masks_x, accumulate_x, accumulate_h, accumulate_b,
        )  # fmt: skip
        if self.drop_weights:
            self.drop_weights.backward(masked)
            if separate:
                dW_h += masked
        return dx
