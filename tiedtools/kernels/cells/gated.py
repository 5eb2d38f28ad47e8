"""One step of a gated recurrent unit for one sentence, and a GRU over the sentences of a batch.

With the inputs' part x and the state's part z of the gates r, u, c, in this order in all arrays,

    r, u = sigmoid(x + z)        q = z_c        c = tanh(x_c + r q)        h_t = u h_{t-1} + (1 - u) c

as in DL4MT. Unlike in gru.py, where each thread owns units and all wait for each other at each step, a thread owns
sentences, all of whose steps it computes alone. Rows are (step, sentence).
"""

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.bfloat16 import left, paired, right
from tiedtools.kernels.base.elementwise import transpose
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import product
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
    """Set dh, the gradient of h_t, to its part for h_{t-1} that flows past the gates; gates to dx, and dz [3n]."""
    r, u, c, dr, du, dc = gates[:n], gates[n : 2 * n], gates[2 * n :], dz[:n], dz[n : 2 * n], dz[2 * n :]
    for j in range(n):
        dc[j] = dh[j] * (1 - u[j]) * (1 - c[j] * c[j])
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


@jit
def pack(worker, packed, W):
    """This thread's part of packing a weight matrix down columns, before a `sync`."""
    begin, end = partition(worker, W.shape[0], 2)
    right(packed, (begin // 2, 0), W[begin:end])


@jit
def pack_transposed(worker, WT, packed, W, columns):
    """This thread's part of W^T [columns, n], also packed down columns, before a `sync`."""
    begin, end = partition(worker, columns, 2)
    transpose(WT[begin:end], W[:, begin:end])
    right(packed, (begin // 2, 0), WT[begin:end])


@jit
def forward(worker, Y, G, Q, H, sums, bf16, W, lengths, n, column, reverse):
    """A GRU over sentences of `lengths`, int32 [B], whose padding copies the state; `reverse`: from their last word on.

    Y        [T * B, ...], columns from `column` on are set to h_t, 0 in the padding
    G        [T * B, 3n], x; set to r, u, c        Q  [T * B, n]        W  [n, 3n], the state's weights
    H        [(T + 1) * B, n], set to the states: the first is 0, in block 0, or in block T if `reverse`
    sums     [B, 3n]: scratch        bf16  scratch for a step of H packed along rows, and W down
    """
    h_along, w_down = bf16
    B = lengths.size
    T = G.shape[0] // B
    pack(worker, w_down, W)
    sync(worker)
    weights = paired(w_down, W)
    first, last = partition(worker, B)
    start = (T if reverse else 0) * B
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
def backward(worker, G, dZ, dH, WT, bf16, dY, Q, H, W, lengths, n, column, reverse):
    """Gradients of `forward`: G, r, u, c, becomes that of x; dZ [T * B, 3n] is set to that of the state's part.

    dY       gradient of Y        WT  [3n, n], dH  [B, n]: scratch
    bf16     scratch for a step of dZ packed along rows, and W^T down
    """
    z_along, wt_down = bf16
    B = lengths.size
    T, size = G.shape[0] // B, GATES * n
    pack_transposed(worker, WT, wt_down, W, size)
    sync(worker)
    weights = paired(wt_down, WT)
    first, last = partition(worker, B)
    dH[first:last] = 0
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
