"""Layers of translation models: bidirectional GRU, and the decoder of DL4MT, a conditional GRU with attention."""

from typing import NamedTuple

import numpy as np

from tiedtools.kernels.base.elementwise import through_tanh
from tiedtools.kernels.cells import conditional as kernel
from tiedtools.kernels.cells import gated
from tiedtools.kernels.cells.conditional import Source
from tiedtools.kernels.cells.gated import GATES
from tiedtools.kernels.output import linear
from tiedtools.kernels.output.descent import add
from tiedtools.network.layers.feedforward import Linear
from tiedtools.network.network import Step
from tiedtools.network.params import Buffers, Params, Start, orthogonal


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
        self.W = f"{name}.W_h"
        params.add(self.W, (n, GATES * n), orthogonal)
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


class Memory(NamedTuple):
    """The encoded sentences, input of the decoder.

    C, P     [S, sentences, 2n, padded]: annotations c_j, and c_j W_c + b
    lengths  int32 [sentences], their numbers of words
    rows     int32 [B], the sentence of each row of a batch
    """

    C: np.ndarray
    P: np.ndarray
    lengths: np.ndarray
    rows: np.ndarray

    def select(self, rows: np.ndarray) -> "Memory":
        """Return a Memory for a batch of these rows, int [B'], which may repeat. Copies no annotations."""
        return self._replace(rows=self.rows[rows])

    def flat(self) -> Source:
        """Return the kernel's Source."""
        C, P = (x.reshape(-1, x.shape[-1]) for x in (self.C, self.P))
        return Source(C, P, self.lengths, self.rows)


class ConditionalGRU:
    """Conditional GRU with attention: y [T, B, m], the embeddings of the words before -> states, contexts.

    Parameters, gates in the order r, u, c:

    start.W  [2n, n], start.b  [n]                      s_0 = tanh(mean_j c_j W + b)
    gru1.x.W  [m, 3n], gru1.x.b  [3n], gru1.W_h  [n, 3n]
    attention.memory.W  [2n, 2n], attention.memory.b  [2n], attention.state.W  [n, 2n], attention.v  [2n]
    gru2.W_x  [2n, 3n], gru2.W_h  [n, 3n], gru2.b  [3n]
    """

    def __init__(self, params: Params, m: int, n: int, start: Start) -> None:
        self.params, self.team, self.n, self.buffers = params, params.team, n, Buffers(params.dtype)
        self.first = Linear(params, "start", 2 * n, n, start, bias=True)
        self.inputs = Linear(params, "gru1.x", m, GATES * n, start, bias=True)
        self.keys = Linear(params, "attention.memory", 2 * n, 2 * n, Start(orthogonal, start.biases), bias=True)
        self.weights = "gru1.W_h", "attention.state.W", "gru2.W_x", "gru2.W_h"  # in the order of the kernel's Weights
        params.add("gru1.W_h", (n, GATES * n), orthogonal)
        params.add("gru2.W_h", (n, GATES * n), orthogonal)
        params.add("attention.state.W", (n, 2 * n), start.weights)
        params.add("gru2.W_x", (2 * n, GATES * n), start.weights)
        params.add("attention.v", (2 * n,), start.weights)
        params.add("gru2.b", (GATES * n,), start.biases)

    def remember(self, c: np.ndarray, step: Step) -> Memory:
        """Return the Memory of the annotations c [S, B, 2n] of sentences of Step.lengths words."""
        rows = np.arange(c.shape[1], dtype=np.int32)
        lengths = np.full(c.shape[1], len(c), np.int32) if step.lengths is None else step.lengths
        return Memory(c, self.keys.forward(c, step), lengths, rows)

    def start(self, memory: Memory, step: Step) -> np.ndarray:
        """Return s_0 of each sentence, [sentences, n]."""
        mean = memory.C.sum(0) / memory.lengths[:, None].astype(memory.C.dtype)
        return np.tanh(self.first.forward(mean[None], step)[0, :, : self.n])

    def forward(
        self, y: np.ndarray, s: np.ndarray, memory: Memory, step: Step
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the states [T, B, n] after the steps from s [B, n], contexts [T, B, 2n], and weights [T, B, S]."""
        (T, B, _), n, buffer, params = y.shape, self.n, self.buffers, self.params
        N, words = T * B, len(memory.C)
        steps = kernel.Steps(
            S=buffer("s", N + B, n), S1=buffer("s1", N, n), K=buffer("k", N, 2 * n), alpha=buffer("alpha", N, words),
            A=buffer("a", N, 2 * n), G1=self.inputs.forward(y, step).reshape(N, -1), Q1=buffer("q1", N, n),
            G2=buffer("g2", N, GATES * n), Q2=buffer("q2", N, n),
        )  # fmt: skip
        steps.S[:B, :n] = s
        self.saved = steps, memory
        shapes = dict(zip(("u1_down", "ws_down", "wk_down", "u2_down"), (params[W].shape for W in self.weights)))
        bf16 = buffer.bf16(params.half, step.training, s_along=(B, n), k_along=(B, 2 * n), **shapes)
        weights = kernel.Weights(*map(params.padded, self.weights))
        vectors = params["gru2.b"], params["attention.v"]
        scratch = buffer("sums", B, GATES * n), bf16
        self.team(kernel.forward, steps, scratch, memory.flat(), weights, *vectors, n)
        states, contexts, alpha = (x.reshape(-1, B, x.shape[1]) for x in (steps.S, steps.K, steps.alpha))
        return states[1:], contexts, alpha[:, :, :words]

    def backward(self, ds: np.ndarray, dk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return dy and dc for the gradients of states and contexts, which change. Call `start` before."""
        steps, memory = self.saved
        (T, B, _), n, buffer, params = ds.shape, self.n, self.buffers, self.params
        threads, N, words = self.team.threads, T * B, len(memory.C)
        source, weights = memory.flat(), kernel.Weights(*map(params.padded, self.weights))
        dS = buffer("ds", N + B, n)
        dS[:B], dS[B:] = 0, ds.reshape(N, -1)
        dC, dP = buffer("dc", words, B, 2 * n), buffer("dp", words, B, 2 * n)
        dv, dz1, dz2 = buffer("dv", threads, 2 * n), buffer("dz1", N, GATES * n), buffer("dz2", N, GATES * n)
        dC_flat, dP_flat = (x.reshape(words * B, -1) for x in (dC, dP))
        gradients = kernel.Gradients(dC_flat, dP_flat, dv, dz1, dz2, dS, dk.reshape(N, -1))
        shapes = {f"{name}_down": params[W].shape[::-1] for name, W in zip(("u1t", "wst", "wkt", "u2t"), self.weights)}
        transposed = kernel.Weights(*(buffer(f"{name} transposed", *shape) for name, shape in shapes.items()))
        bf16 = buffer.bf16(params.half, True, z_along=(B, GATES * n), a_along=(B, 2 * n), **shapes)
        scratch = kernel.Scratch(buffer("d", B, n), buffer("terms", threads, 3, max(2 * n, words)), transposed, bf16)
        self.team(kernel.backward, gradients, scratch, steps, source, weights, params["attention.v"], n)
        inputs = (dz1, steps.S[:N]), (steps.A, steps.S1), (steps.G2, steps.K), (dz2, steps.S1)
        for k in 2, 0, 1, 3:  # the largest first, so that scratch arrays are allocated once
            state_gradient(params, buffer, self.weights[k], *inputs[k])
        for name, total in ("attention.v", dv.sum(0)), ("gru2.b", dz2.sum(0)):
            grad, accumulate = params.gradient(name)
            grad[:] = total[: grad.size] + (grad if accumulate else 0)
        dC += self.keys.backward(dP)
        before = buffer("start", 1, B, n)
        before[0] = dS[:B] * (1 - np.square(steps.S[:B]))
        dC += self.first.backward(before) / memory.lengths[:, None].astype(dC.dtype)
        return self.inputs.backward(steps.G1.reshape(T, B, -1)), dC


class Readout:
    """Readout, q = tanh(s W_1 + y W_2 + k W_3 + b) [T, B, m], of states, embeddings of the words before, and contexts.

    Parameters: readout.state.W  [n, m], readout.state.b  [m], readout.word.W  [m, m], readout.context.W  [2n, m]
    """

    def __init__(self, params: Params, m: int, n: int, start: Start) -> None:
        parts = ("state", n), ("word", m), ("context", 2 * n)
        self.linears = [Linear(params, f"readout.{part}", size, m, start, part == "state") for part, size in parts]
        self.team = params.team

    def forward(self, s: np.ndarray, y: np.ndarray, k: np.ndarray, step: Step) -> np.ndarray:
        (self.q, *_), parts = zip(*(linear.prepare(x, step) for linear, x in zip(self.linears, (s, y, k))))
        self.team(kernel.readout, *parts)
        return self.q

    def backward(self, dq: np.ndarray) -> list[np.ndarray]:
        """Return the gradients of s, y, and k; changes dq."""
        self.team.over(dq.size, through_tanh, dq.reshape(-1), self.q.reshape(-1))
        return [linear.backward(dq) for linear in self.linears]
