"""The LSTM cell."""

import numpy as np

from tiedtools.kernels import lstm
from tiedtools.kernels.elementwise import apply_mask
from tiedtools.kernels.tiles import VECTOR, WIDE
from tiedtools.network.buffers import Buffers


def even(n):
    """Round n up to an even number."""
    return n + n % 2


class LSTM:
    """An LSTM cell, which computes h_t, c_t from x_t, h_{t-1}, c_{t-1}; see kernels/lstm.py for the equations.

    Parameters: name.W_x  [m, 4n]        name.W_h  [n, 4n]        name.b  [4n], gates in the order i, f, g, o
    """

    gates, parts = 4, 2

    def __init__(self, params, name, m, n, start, masks=(None, None), drop_weights=None):
        """drop_weights: the dropout.WeightDrop of W_h, or None; its mask covers all gates."""

        def biases(rng, b):
            drawn = np.zeros(4 * n)
            start.biases(rng, drawn)
            drawn[n : 2 * n] += start.forget
            b[:] = drawn

        self.names = tuple(f"{name}.{part}" for part in ("W_x", "W_h", "b"))
        starts = start.weights, start.weights, biases
        for part, shape, fill in zip(self.names, ((m, 4 * n), (n, 4 * n), (4 * n,)), starts):
            params.add(part, shape, fill)
        self.params, self.team, self.m, self.n = params, params.team, m, n
        self.masks, self.masks_x = masks
        self.drop_weights = drop_weights
        self.buffers, self.dense = Buffers(params.dtype), Buffers(params.dtype, odd=False)
        self.lanes = VECTOR // params.dtype.itemsize
        self.wide = WIDE * self.lanes
        self.registers = -(-n // (self.lanes * params.team.threads))  # vectors of units per thread
        self.packed = None  # the version of the parameters whose W_h is in the panels

    def weights(self, step):
        """Return W_x [m, 4n] and W_h [n, 4n], both with padded rows, and b [4n]; W_h is that after weight drop."""
        W_x, W_h, b = self.names
        dropped = self.drop_weights.forward(W_h, step) if self.drop_weights else self.params.padded(W_h)
        return self.params.padded(W_x), dropped, self.params[b]

    def start(self, B):
        """Return the initial state (h, c), zeros [1, B, n] each."""
        return tuple(np.zeros((1, B, self.n), self.params.dtype) for _ in range(2))

    def forward(self, x, state, step):
        """Forward pass: x [T, B, m], state (h, c) [1, B, n] each -> h [T, B, n], new state."""
        masks, masks_x = (m and m.draw(step, x.shape[1]) for m in (self.masks, self.masks_x))
        (T, B, _), m, n, buffer, threads = x.shape, self.m, self.n, self.buffers, self.team.threads
        H, C = buffer("H", (T + 1) * B, n), buffer("C", (T + 1) * B, n)
        H[:B, :n], C[:B, :n] = (part[0] for part in state)
        HM, X = H, x.reshape(T * B, -1)
        none = np.empty((0, B, 1), x.dtype)
        if masks is not None:
            HM = buffer("HM", len(masks) * (T + 1) * B, n)
        if masks_x is not None:
            X = buffer("X", len(masks_x) * T * B, m)
            for masked, mask in zip(X.reshape(len(masks_x), *x.shape), masks_x):
                self.team.over(x.size, apply_mask, masked, x, mask[None])
        masks, masks_x = (none if m is None else m for m in (masks, masks_x))
        gates = buffer("gates", T * B, 4 * n + self.lanes)
        each = -(-4 * self.registers // WIDE)  # panels per thread
        half = self.params.half and step.training
        pack = self.dense("pack", threads * each * n, self.wide)
        tile = buffer("tile", threads, B, each * self.wide)
        bf16 = buffer.bf16(half, x_along=(T * B, m), hm_along=(len(HM), n), wx_down=(m, 4 * n))
        bf16 += self.dense.bf16(half, pack_down=(threads * each * even(n), self.wide))
        weights = self.weights(step)
        self.kept = X, HM, C, masks, masks_x, gates, weights[:2]
        # The panels can be reused if the parameters have not changed since the last call; in training they always have.
        dropped = self.drop_weights and step.seed is not None
        fresh = step.training or dropped or self.packed != self.params.version
        self.packed = None if dropped else self.params.version
        self.team(lstm.forward, gates, HM, H, C, pack, tile, bf16, X, *weights, masks, fresh)
        return H[B:].reshape(T, B, -1), (H[None, -B:, :n].copy(), C[None, -B:, :n].copy())

    def backward(self, dh):
        """Backward pass: dh [T, B, n] -> dx [T, B, m]."""
        (T, B, _), m, n, buffer, threads = dh.shape, self.m, self.n, self.buffers, self.team.threads
        X, HM, C, masks, masks_x, gates, (W_x, W_h) = self.kept
        panels = threads * -(-self.registers // WIDE)
        by_gate = len(masks) == 4 or len(masks_x) == 4
        bf16 = buffer.bf16(
            self.params.half, gates_along=(T * B, 4 * even(n)), wxt_down=(4 * even(n), m),
            xt_along=(max(m, n), T * B), gates_down=gates.shape,
        )  # fmt: skip
        bf16 += self.dense.bf16(self.params.half, back_down=(panels * 4 * even(n), self.wide))
        dx = buffer("dx", T, B, m)
        (dW_x, accumulate_x), (dW_h, accumulate_h), (db, accumulate_b) = map(self.params.gradient, self.names)
        apart = self.drop_weights and accumulate_h  # its mask must not apply to what is in dW_h already
        own, accumulate_h = (buffer("dW_h", n, 4 * n), False) if apart else (dW_h, accumulate_h)
        self.team(
            lstm.backward, dx.reshape(T * B, -1), dW_x, own, db, gates, buffer("dC", B, n),
            self.dense("pack back", panels * 4 * n, self.wide), buffer("W_x transposed", 4 * n, m),
            buffer("transposed", max(m, n), T * B),
            self.dense("tile back", 2, threads, panels // threads * B, self.wide),
            buffer("gate", max(m, n, T * B) * by_gate, max(m, n)), bf16,
            dh.reshape(T * B, -1), X, HM, C, W_x, W_h, masks, masks_x, accumulate_x, accumulate_h, accumulate_b,
        )  # fmt: skip
        if self.drop_weights:
            self.drop_weights.backward(own)
            if apart:
                dW_h += own
        return dx
