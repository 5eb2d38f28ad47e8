"""The highway layer and its gradient (Srivastava et al. 2015).

    t = sigmoid(x W_t + b_t)        h = relu(x W_h + b_h)        y = t h + (1 - t) x

W [n, 2n] = (W_t, W_h), b [2n] = (b_t, b_h), and Z holds (t, h): floats [N, 2n] or, if products are in bfloat16, pairs
[N, n] of bfloat16, because memory is then the bottleneck.
"""

from numba.core import types
from numba.extending import overload

from tiedtools.kernels.barrier import partition, sync
from tiedtools.kernels.bfloat16 import contiguous, halves, left, pair, paired, right
from tiedtools.kernels.elementwise import add_rows, transpose
from tiedtools.kernels.jit import jit
from tiedtools.kernels.product import product
from tiedtools.kernels.scalar import sigmoid
from tiedtools.kernels.tiles import ROWS

# Rows of a block, whose scores stay in the cache between products and activations. In the backward pass, each block
# adds to all of the gradient of W, so those blocks are larger.
BLOCK, ROWS_BACK = 64, 128


@jit
def forward(worker, Y, Z, X, W, b, scores, bf16):
    """Compute Y [N, n] and Z of X [N, n].

    scores  [threads, BLOCK, 2n]: scratch        bf16  scratch for X along rows and W down columns
    """
    x_along, w_down = bf16
    n, own = W.shape[0], scores[worker[0]]
    begin, end = partition(worker, n, 2)
    right(w_down, (begin // 2, 0), W[begin:end])
    sync(worker)
    begin, end = partition(worker, X.shape[0], ROWS)
    for start in range(begin, end, BLOCK):
        rows = min(end, start + BLOCK) - start
        x = X[start : start + rows]
        product(own[:rows], left(x_along, (start, 0), x[:, :n]), paired(w_down, W), False)
        for k in range(rows):
            activate(Y[start + k], Z[start + k], own[k, :n], own[k, n:], x[k], b[:n], b[n:])


@jit
def activate(y, z, t, h, x, b_t, b_h):
    """Turn the scores t and h [n] into gates and transforms, store these in z, and compute y."""
    y, t, h, x, b_t, b_h = (
        contiguous(y), contiguous(t), contiguous(h), contiguous(x), contiguous(b_t), contiguous(b_h)
    )  # fmt: skip
    for j in range(b_t.size):
        t[j] = sigmoid(t[j] + b_t[j])
        h[j] = max(h[j] + b_h[j], y.dtype.type(0))
        y[j] = x[j] + t[j] * (h[j] - x[j])
    store(contiguous(z), t, h, b_t.size)


def store(z, t, h, n):
    """z = (t, h)"""


def load(t, h, z, n):
    """(t, h) = z"""


@overload(store)
def _(z, t, h, n):
    def floats(z, t, h, n):
        for j in range(n):
            z[j] = t[j]
        for j in range(n):
            z[n + j] = h[j]

    def pairs(z, t, h, n):
        for j in range(n):
            z[j] = pair(t[j], h[j])

    return pairs if isinstance(z.dtype, types.Integer) else floats


@overload(load)
def _(t, h, z, n):
    def floats(t, h, z, n):
        for j in range(n):
            t[j] = z[j]
        for j in range(n):
            h[j] = z[n + j]

    def pairs(t, h, z, n):
        for j in range(n):
            t[j], h[j] = halves(z[j])

    return pairs if isinstance(z.dtype, types.Integer) else floats


@jit
def backward(worker, dX, dW, db, WT, XT, errors, parts, bf16, dY, Z, X, W, accumulate, accumulate_b):
    """Compute the gradients; those of W and b are added if `accumulate`, `accumulate_b`.

    WT  [2n, n], XT  [threads, n, ROWS_BACK], errors  [threads, ROWS_BACK, 2n], the gradient of the scores, and
    parts  [threads, n + 1, 2n], the gradients of W and, in the last row, of b: scratch
    bf16  scratch for W^T down columns, and per thread for dZ along and down and X^T along
    """
    wt_down, dz_along, dz_down, xt_along = bf16
    thread, n, part, own = worker[0], W.shape[0], parts[worker[0]], errors[worker[0]]
    begin, end = partition(worker, 2 * n, 2)
    transpose(WT[begin:end], W[:, begin:end])
    right(wt_down, (begin // 2, 0), WT[begin:end])
    sync(worker)
    begin, end = partition(worker, X.shape[0], ROWS)
    part[:] = 0
    for start in range(begin, end, ROWS_BACK):
        stop = min(end, start + ROWS_BACK)
        z, x, xt = own[: stop - start], X[start:stop], XT[thread]
        for k in range(start, stop):
            differentiate(dX[k], z[k - start, :n], z[k - start, n:], Z[k], dY[k], X[k])
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
def differentiate(dx, t, h, z, dy, x):
    """Compute the gradients t and h [n] of the scores that z was computed from, and dx = dy (1 - t)."""
    dx, t, h, dy, x = contiguous(dx), contiguous(t), contiguous(h), contiguous(dy), contiguous(x)
    load(t, h, contiguous(z), t.size)
    for j in range(t.size):
        gate, new = t[j], h[j]
        carry = dy[j] * (1 - gate)
        dx[j] = carry
        t[j] = carry * gate * (new - x[j])
        h[j] = dy[j] * gate if new > 0 else 0
