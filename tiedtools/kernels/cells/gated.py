"""One step of a gated recurrent unit for one sentence, and a GRU over the sentences of a batch.

With the terms of the inputs, x, and of the state, z, of the gates r, u, c, in this order in all arrays,

    r, u = sigmoid(x + z)        q = z_c        c = tanh(x_c + r q)        h_t = u h_{t-1} + (1 - u) c

as in DL4MT. A thread computes all steps of some sentences; in recurrence.py, it computes some units, and all threads
wait for each other at each step. Rows are (step, sentence).
"""

from typing import Any, NamedTuple

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.bfloat16 import left, paired
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import pack_down, product, transpose_down
from tiedtools.kernels.base.scalar import sigmoid, tanh

GATES = 3


@jit(relaxed=True)
def activate(h, gates, q, z, before, n):
    """Compute h_t from before, h_{t-1}; gates [3n] holds x and is set to r, u, c.        q  [n]        z  [3n]"""
    r, u, c, zc = gates[:n], gates[n : 2 * n], gates[2 * n :], z[2 * n :]
    for j in range(2 * n):
        gates[j] = sigmoid(gates[j] + z[j])
    for j in range(n):
        q[j] = zc[j]
    for j in range(n):
        c[j] = tanh(c[j] + r[j] * zc[j])
    for j in range(n):
        h[j] = c[j] + u[j] * (before[j] - c[j])


@jit(relaxed=True)
def deactivate(dz, dh, gates, q, before, n):
    """Compute the gradients dz [3n] and, in place of the gates, dx; dh becomes what flows to h_{t-1} without z."""
    r, u, c, dr, du, dc = gates[:n], gates[n : 2 * n], gates[2 * n :], dz[:n], dz[n : 2 * n], dz[2 * n :]
    one = dz.dtype.type(1)  # with an integer, Numba would compute in float64
    for j in range(n):
        dc[j] = (dh[j] - dh[j] * u[j]) * (one - c[j] * c[j])
    for j in range(n):
        du[j] = dh[j] * (before[j] - c[j]) * (u[j] - u[j] * u[j])
    for j in range(n):
        dr[j] = dc[j] * q[j] * (r[j] - r[j] * r[j])
    for j in range(n):
        dh[j] *= u[j]
    for j in range(n):
        c[j] = dc[j]
    for j in range(n):
        dc[j] *= r[j]
    for j in range(2 * n):
        gates[j] = dz[j]


class Steps(NamedTuple):
    """What each step of a GRU over sentences computes, for the gradient."""

    G: Any  # [T * B, 3n]: the inputs' term x of the gates; set to r, u, c
    Q: Any  # [T * B, n]
    H: Any  # [(T + 1) * B, n], the states: the first is 0, in block 0, or in block T if `reverse`


@jit
def forward(worker, Y, steps, scratch, W, lengths, n, reverse):
    """A GRU over sentences of `lengths`, int32 [B], whose padding copies the state; `reverse`: from their last word on.

    Y        [T * B, ...], columns from 0 or, if `reverse`, from n on are set to h_t, 0 in the padding
    W        [n, 3n], the state's weights
    scratch  ([B, 3n], bfloat16 operands: a step of H packed along rows, W down)
    """
    G, Q, H = steps
    sums, (h_along, w_down) = scratch
    B = lengths.size
    T = G.shape[0] // B
    pack_down(worker, w_down, W)
    sync(worker)
    weights = paired(w_down, W)
    first, last = partition(worker, B)
    start, column = (T * B, n) if reverse else (0, 0)
    H[start + first : start + last] = 0
    for i in range(T):
        row = (T - 1 - i if reverse else i) * B
        old, new = (row + B, row) if reverse else (row, row + B)
        product(sums[first:last], left(h_along, (first, 0), H[old + first : old + last, :n]), weights, False)
        for s in range(first, last):
            y = Y[row + s, column : column + n]
            if row // B < lengths[s]:
                activate(H[new + s], G[row + s], Q[row + s], sums[s], H[old + s], n)
                for j in range(n):
                    y[j] = H[new + s, j]
            else:
                for j in range(n):
                    H[new + s, j] = H[old + s, j]
                y[:] = 0


@jit
def backward(worker, dZ, scratch, dY, steps, W, lengths, n, reverse):
    """Gradients of `forward`, with dY [T * B, ...]: G becomes dx, and dZ [T * B, 3n] is set to dz.

    scratch  ([B, n], W^T [3n, n], bfloat16 operands: a step of dZ packed along rows, W^T down)
    """
    G, Q, H = steps
    dH, WT, (z_along, wt_down) = scratch
    B = lengths.size
    T, size = G.shape[0] // B, GATES * n
    transpose_down(worker, WT, wt_down, W, size)
    sync(worker)
    weights = paired(wt_down, WT)
    first, last = partition(worker, B)
    dH[first:last] = 0
    column = n if reverse else 0
    for i in range(T):
        row = (i if reverse else T - 1 - i) * B
        old = row + B if reverse else row
        for s in range(first, last):
            if row // B < lengths[s]:
                dy, dh = dY[row + s, column : column + n], dH[s]
                for j in range(n):
                    dh[j] += dy[j]
                deactivate(dZ[row + s], dh, G[row + s], Q[row + s], H[old + s], n)
            else:
                G[row + s] = 0
                dZ[row + s] = 0
        product(dH[first:last], left(z_along, (first, 0), dZ[row + first : row + last, :size]), weights, True)
