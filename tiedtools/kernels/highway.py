"""The highway layer and its gradient (Srivastava et al. 2015).

    t = sigmoid(x W_t + b_t)        y = t relu(x W_h + b_h) + (1 - t) x

W [n, 2n] = (W_t, W_h), b [2n] = (b_t, b_h), and Z [N, 2n] holds (t, relu(..)), which become their gradients.
"""

from tiedtools.kernels.barrier import partition, sync
from tiedtools.kernels.bfloat16 import contiguous, left, paired, right
from tiedtools.kernels.elementwise import add_rows, transpose
from tiedtools.kernels.jit import jit
from tiedtools.kernels.product import product
from tiedtools.kernels.scalar import sigmoid
from tiedtools.kernels.tiles import ROWS

# Rows of a block, whose part of Z stays in the cache between products and activations. Each block adds to all of the
# gradient of W, so those of the backward pass are larger.
BLOCK, ROWS_BACK = 64, 256


@jit
def forward(worker, Y, Z, X, W, b, bf16):
    """Compute Y [N, n] and Z [N, 2n] of X [N, n].        bf16  scratch for X along rows and W down columns"""
    x_along, w_down = bf16
    n = W.shape[0]
    begin, end = partition(worker, n, 2)
    right(w_down, (begin // 2, 0), W[begin:end])
    sync(worker)
    begin, end = partition(worker, X.shape[0], ROWS)
    for start in range(begin, end, BLOCK):
        stop = min(end, start + BLOCK)
        product(Z[start:stop], left(x_along, (start, 0), X[start:stop, :n]), paired(w_down, W), False)
        for k in range(start, stop):
            activate(Y[k], Z[k, :n], Z[k, n:], X[k], b[:n], b[n:])


@jit
def activate(y, t, h, x, b_t, b_h):
    """Turn the products t and h [n] into gates and transforms, and compute y."""
    y, t, h, x, b_t, b_h = (
        contiguous(y), contiguous(t), contiguous(h), contiguous(x), contiguous(b_t), contiguous(b_h)
    )  # fmt: skip
    for j in range(t.size):
        t[j] = sigmoid(t[j] + b_t[j])
        h[j] = max(h[j] + b_h[j], y.dtype.type(0))
        y[j] = x[j] + t[j] * (h[j] - x[j])


@jit
def backward(worker, dX, dW, db, WT, XT, parts, bf16, dY, Z, X, W, accumulate, accumulate_b):
    """Compute the gradients; those of W and b are added if `accumulate`, `accumulate_b`. Z becomes the gradient of Z.

    WT  [2n, n], XT  [threads, n, ROWS_BACK], and parts  [threads, n + 1, 2n], of W and, in the last row, b: scratch
    bf16  scratch for W^T down columns, and per thread for dZ along and down and X^T along
    """
    wt_down, dz_along, dz_down, xt_along = bf16
    thread, n, part = worker[0], W.shape[0], parts[worker[0]]
    begin, end = partition(worker, 2 * n, 2)
    transpose(WT[begin:end], W[:, begin:end])
    right(wt_down, (begin // 2, 0), WT[begin:end])
    sync(worker)
    begin, end = partition(worker, X.shape[0], ROWS)
    part[:] = 0
    for start in range(begin, end, ROWS_BACK):
        stop = min(end, start + ROWS_BACK)
        z, x, xt = Z[start:stop], X[start:stop], XT[thread]
        for k in range(start, stop):
            differentiate(dX[k], Z[k, :n], Z[k, n:], dY[k], X[k])
        transpose(xt, x[:, :n])
        at = thread * ROWS_BACK
        product(dX[start:stop], left(dz_along, (at, 0), z[:, : 2 * n]), paired(wt_down, WT), True)
        product(part[:n], left(xt_along, (thread * n, 0), xt[:, : stop - start]), right(dz_down, (at // 2, 0), z), True)
        add_rows(part[n, : db.size], z, True)
    sync(worker)
    begin, end = partition(worker, n + 1)
    for k in range(begin, end):
        row = db if k == n else dW[k]
        add_rows(row, parts[:, k, : row.size], accumulate_b if k == n else accumulate)


@jit
def differentiate(dx, t, h, dy, x):
    """Turn t and h [n] into the gradients of the scores that they were computed from; dx = dy (1 - t)."""
    dx, t, h, dy, x = contiguous(dx), contiguous(t), contiguous(h), contiguous(dy), contiguous(x)
    for j in range(t.size):
        gate, new = t[j], h[j]
        carry = dy[j] * (1 - gate)
        dx[j] = carry
        t[j] = carry * gate * (new - x[j])
        h[j] = dy[j] * gate if new > 0 else 0
