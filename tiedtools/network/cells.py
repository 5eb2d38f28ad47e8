"""Recurrent cells: layers with a state that is passed from step to step and from window to window.

    cell = Cell(params, name, m, n, start, masks)
    y, state = cell.forward(x, state, step)        x [T, B, m], y [T, B, n]
    dx = cell.backward(dy)                         adds to the gradients of the cell's parameters
    state = cell.start(B)                          initial state: a tuple of arrays, axis 1 of length B
    cell.parts, cell.gates                         number of these arrays; number of gates that may have their own masks

start  a params.Start       masks  (Masks of the state, Masks of x), each may be None

The gradient stops at the first state of the window (truncated BPTT). To add a cell, add a class, and its name to CELLS
in config.py.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tiedtools.kernels.base.elementwise import apply_mask
from tiedtools.kernels.base.tiles import VECTOR, WIDE
from tiedtools.kernels.cells import recurrence
from tiedtools.kernels.cells.activations import GruStates, LstmStates, RhnStates
from tiedtools.kernels.cells.recurrence import Backward, Forward, Gradients, Masked, Weights
from tiedtools.network.division import divide
from tiedtools.network.network import State, Step
from tiedtools.network.params import Buffers, Params, Start


def even(n: int) -> int:
    """Round n up to an even number."""
    return n + n % 2


class LSTM:
    """An LSTM cell, which computes h_t, c_t from x_t, h_{t-1}, c_{t-1}; see kernels/cells/activations.py.

    Parameters: name.W_x  [m, 4n]        name.W_h  [n, 4n]        name.b  [4n], gates in the order i, f, g, o

    Base class of the other cells, each with other `states`.

    blocks       number of gates in the weights
    columns      number of blocks of n columns that are stored for each micro-step in G, the first of the states
    forget_gate  index of the gate with start.forget added to its biases        depth  micro-steps in a step
    of_state     last part of the name of the state's weights        lead  leading dimensions of these and of biases
    """

    gates, parts, forget_gate, depth = 4, 2, 1, 1
    blocks, columns, of_state = 4, 4, "W_h"
    lead: tuple[int, ...] = ()
    states: Any = LstmStates

    def __init__(
        self, params: Params, name: str, m: int, n: int, start: Start, masks: tuple[Any, Any] = (None, None),
        drop_weights: Any = None,
    ) -> None:  # fmt: skip
        """drop_weights: the regularization.WeightDrop of W_h, or None; its mask covers all gates."""
        self.params, self.team, self.m, self.n = params, params.team, m, n
        self.masks, self.masks_x = masks
        self.drop_weights = drop_weights
        self.buffers, self.dense = Buffers(params.dtype), Buffers(params.dtype, odd=False)
        self.lanes = VECTOR // params.dtype.itemsize
        self.wide = WIDE * self.lanes
        self.packed: Any = None  # the version of the parameters whose W_h is in the panels, and their division
        self.names, size = (f"{name}.W_x", f"{name}.{self.of_state}", f"{name}.b"), self.blocks * n
        params.add(self.names[0], (m, size), start.weights)
        params.add(self.names[1], (*self.lead, n, size), start.weights)
        params.add(self.names[2], (*self.lead, size), functools.partial(self.biases, start))

    def biases(self, start: Start, rng: np.random.Generator, b: np.ndarray) -> None:
        """Initialize the biases."""
        drawn = np.zeros(b.size)
        start.biases(rng, drawn)
        drawn[self.forget_gate * self.n :][: self.n] += start.forget
        b[:] = drawn

    def by_depth(self, W_x: np.ndarray, W_h: np.ndarray, b: np.ndarray) -> Weights:
        """Return the weights, or gradients of these shapes, as the kernels need them, with the micro-steps first."""
        return Weights(W_x, W_h.reshape(self.depth, self.n, -1), b.reshape(self.depth, -1))

    def start(self, B: int) -> State:
        """Return the initial state, (h, c) of an LSTM, zeros [1, B, n] each."""
        return tuple(np.zeros((1, B, self.n), self.params.dtype) for _ in range(self.parts))

    def masked(self, x: np.ndarray, H: np.ndarray, step: Step) -> Masked:
        """Return the Masked arrays of a window; x [T, B, m] is already masked."""
        (T, B, _), none = x.shape, np.empty((0, x.shape[1], 1), x.dtype)
        masks, masks_x = (m.draw(step, B) if m and step.seed is not None else none for m in (self.masks, self.masks_x))
        HM, X = H, x.reshape(T * B, -1)
        if len(masks):
            HM = self.buffers("HM", len(masks) * len(H), self.n)
        if len(masks_x):
            X = self.buffers("X", len(masks_x) * T * B, self.m)
            for xm, mask in zip(X.reshape(len(masks_x), *x.shape), masks_x):
                self.team.over(x.size, apply_mask, xm, x, mask[None])
        return Masked(X, HM, masks_x, masks)

    def forward(self, x: np.ndarray, state: Sequence[np.ndarray], step: Step) -> tuple[np.ndarray, State]:
        """Forward pass: x [T, B, m], state [1, B, n] each -> h [T, B, n], new state."""
        (T, B, _), m, n, depth, buffer, threads = x.shape, self.m, self.n, self.depth, self.buffers, self.team.threads
        gates, columns, half, training = self.blocks, self.columns, self.params.half, step.training
        G, parts = buffer("G", depth * T * B, columns * n + 2 * self.lanes), self.states._fields[1:]
        states = self.states(G, *(buffer(part, depth * (T + 1) * B, n) for part in parts))
        for array, part in zip(states[1:], state):
            array[:B, :n] = part[0]
        masked = self.masked(x, states.H, step)
        W_x, W_h, b = map(self.params.padded, self.names)
        if self.drop_weights:
            W_h = self.drop_weights.forward(self.names[1], step)
        weights = self.by_depth(W_x, W_h, b)

        division = _, side = divide(threads, B, n, gates, self.lanes)
        panels_per_thread = -(-gates * -(-n // (self.lanes * side)) // WIDE)
        panels = side * depth * panels_per_thread
        bf16 = buffer.bf16(half, training, x_along=(T * B, m), hm_along=(len(masked.HM), n), wx_down=(m, gates * n))
        bf16 += self.dense.bf16(half, training, pack_down=(panels * even(n), self.wide))
        sums = buffer("sums", threads, B, panels_per_thread * self.wide)
        space = Forward(self.dense("panels", panels * n, self.wide), sums, bf16)
        # The panels can be reused if the parameters have not changed since the last call; in training they always have.
        dropped = self.drop_weights and step.seed is not None
        repack = training or dropped or self.packed != (self.params.version, division)
        self.packed = None if dropped else (self.params.version, division)
        self.saved = states, masked, weights
        self.team(recurrence.forward, states, masked, space, weights, gates, repack, division)
        arrays = [array[: (T + 1) * B].reshape(T + 1, B, -1) for array in states[1:]]
        return arrays[0][1:], tuple(array[T:, :, :n].copy() for array in arrays)

    def backward(self, dh: np.ndarray) -> np.ndarray:
        """Backward pass: dh [T, B, n] -> dx [T, B, m]."""
        (T, B, _), m, n, buffer, dense, threads = dh.shape, self.m, self.n, self.buffers, self.dense, self.team.threads
        states, masked, weights = self.saved
        gates, columns, half = self.blocks, self.columns, self.params.half
        dx = buffer("dx", T, B, m)
        (dW_x, add_x), (dW_h, add_h), (db, add_b) = map(self.params.gradient, self.names)
        separate = bool(self.drop_weights) and add_h  # the mask must not apply to the gradient already in dW_h
        dropped = buffer("dW_h", n, gates * n) if separate else dW_h

        division = _, side = divide(threads, B, n, gates, self.lanes)
        panels_per_thread = -(-n // (self.wide * side))
        panels = side * self.depth * panels_per_thread
        widest = max(m, n, T * B) if gates in (len(masked.masks), len(masked.masks_x)) else 0
        bf16 = buffer.bf16(
            half, g_along=(self.depth * T * B, columns * even(n)), wxt_down=(gates * even(n), m),
            xt_along=(max(m, n), T * B), g_down=(T * B, states.G.shape[1]),
        ) + dense.bf16(half, back_down=(panels * gates * even(n), self.wide))  # fmt: skip
        space = Backward(
            buffer("scratch", B, n), dense("panels back", panels * gates * n, self.wide),
            buffer("W_x transposed", gates * n, m), buffer("transposed", max(m, n), T * B),
            dense("sums back", 2, threads, panels_per_thread * B, self.wide), buffer("gate", widest, max(m, n)), bf16,
        )  # fmt: skip
        accumulate = add_x, add_h and not separate, add_b
        gradients = Gradients(dx.reshape(T * B, -1), self.by_depth(dW_x, dropped, db), accumulate)
        dh = dh.reshape(T * B, -1)
        self.team(recurrence.backward, gradients, space, states, masked, weights, dh, gates, columns, division)
        if self.drop_weights:
            self.drop_weights.backward(dropped)
            if separate:
                dW_h += dropped
        return dx


class GRU(LSTM):
    """A GRU cell, which computes h_t from x_t and h_{t-1}; see kernels/cells/activations.py.

    Parameters: name.W_x  [m, 3n] and name.b  [3n], gates in the order c, r, u        name.W_h  [n, 3n], order r, u, c
    """

    gates, parts, states, blocks = 3, 1, GruStates, 3
    forget_gate = 2  # the update gate acts as the forget gate


class RHN(LSTM):
    """A recurrent highway cell of `depth` micro-steps: h_t from x_t and h_{t-1}; see kernels/cells/activations.py.

    Parameters: name.W_x  [m, 2n]        name.R  [depth, n, 2n]        name.b  [depth, 2n], transform gates last

    transform  initial bias of the transform gates

    As in Zilly et al., one mask serves all micro-steps, for both the transform gate and its candidate state.
    """

    gates, parts, states, blocks, columns, of_state = 1, 1, RhnStates, 2, 2, "R"

    def __init__(self, *args: Any, depth: int, transform: float, **options: Any) -> None:
        self.depth, self.lead, self.transform = depth, (depth,), transform
        super().__init__(*args, **options)

    def biases(self, start: Start, rng: np.random.Generator, b: np.ndarray) -> None:
        start.biases(rng, b)
        b[:, self.n :] = self.transform
