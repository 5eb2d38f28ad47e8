"""The highway layer and its gradient (Srivastava et al. 2015).

    t = sigmoid(x W_t + b_t)        y = t relu(x W_h + b_h) + (1 - t) x

W [n, 2n] = (W_t, W_h), b [2n] = (b_t, b_h), and Z [N, 2n] holds (t, relu(..)), which become their gradients.
"""

from tiedtools.kernels import linear
from tiedtools.kernels.barrier import partition, sync
from tiedtools.kernels.bfloat16 import contiguous, left, paired, right
from tiedtools.kernels.jit import jit
from tiedtools.kernels.product import product
from tiedtools.kernels.scalar import sigmoid
from tiedtools.kernels.tiles import ROWS

BLOCK = 64  # rows; their part of Z stays in the cache between the product and the activations


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
def backward(worker, dX, dW, db, WT, XT, bf16, dY, Z, X, W, accumulate, accumulate_b):
    """Compute the gradients, with Z of `forward`, which is overwritten. Scratch and the rest: see linear.backward."""
    n = W.shape[0]
    begin, end = partition(worker, X.shape[0])
    for k in range(begin, end):
        differentiate(dX[k], Z[k, :n], Z[k, n:], dY[k], X[k])
    sync(worker)
    linear.backward(worker, dX, dW, db, WT, XT, bf16, Z, X, W, 2 * n, True, accumulate, accumulate_b)


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
