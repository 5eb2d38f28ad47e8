"""The highway layer and its gradient (Srivastava et al. 2015).

    t = sigmoid(x W_t + b_t)        h = relu(x W_h + b_h)        y = t h + (1 - t) x

W [n, 2n] = (W_t, W_h) and b [2n] = (b_t, b_h). S [N, n] holds t, negated where h = 0. S, x, and y are all
that the backward pass needs: the gradient of x W_t + b_t is dy (1 - t) t (h - x) = dy (1 - t) (y - x).
"""

from typing import Any, NamedTuple

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.bfloat16 import contiguous, left, paired, right
from tiedtools.kernels.base.elementwise import add_rows, transpose
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import pack_down, product, transpose_down
from tiedtools.kernels.base.scalar import sigmoid
from tiedtools.kernels.base.tiles import ROWS

# Rows of a block, whose scores stay in the cache between products and activations. In the backward pass, each block
# adds to all of the gradient of W, so those blocks are larger.
BLOCK, ROWS_BACK = 64, 128


class Scratch(NamedTuple):
    """Scratch of the backward pass."""

    WT: Any  # [2n, n]
    XT: Any  # [threads, n, ROWS_BACK]
    errors: Any  # [threads, ROWS_BACK, 2n], the gradient of the scores
    parts: Any  # [threads, n + 1, 2n], each thread's part of the gradients of W and, in the last row, of b
    bf16: Any  # W^T down columns, and per thread dZ along rows and down and X^T along: see bfloat16.py


@jit
def forward(worker, Y, S, X, W, b, scores, bf16):
    """Compute Y [N, n] and S of X [N, n].

    scores  [threads, BLOCK, 2n]: scratch        bf16  scratch for X along rows and W down columns
    """
    x_along, w_down = bf16
    n, z = W.shape[0], scores[worker[0]]
    pack_down(worker, w_down, W)
    sync(worker)
    begin, end = partition(worker, X.shape[0], ROWS)
    for start in range(begin, end, BLOCK):
        rows = min(end, start + BLOCK) - start
        x = X[start : start + rows]
        product(z[:rows], left(x_along, (start, 0), x[:, :n]), paired(w_down, W), False)
        for k in range(rows):
            activate(Y[start + k], S[start + k], z[k, :n], z[k, n:], x[k], b[:n], b[n:])


@jit
def activate(y, s, t, h, x, b_t, b_h):
    """Compute y and s from the scores t and h [n], without biases."""
    y, s, t, h, x, b_t, b_h = contiguous(y, s, t, h, x, b_t, b_h)
    for j in range(b_t.size):
        gate, new = sigmoid(t[j] + b_t[j]), max(h[j] + b_h[j], y.dtype.type(0))
        y[j] = x[j] + gate * (new - x[j])
        s[j] = gate if new > 0 else -gate


@jit
def backward(worker, gradients, scratch, dY, Y, S, X, W):
    """Compute the linear.Gradients of X, W, and b, with dY [N, n]."""
    dX, dW, db, accumulate, accumulate_b = gradients
    WT, XT, errors, parts, (wt_down, dz_along, dz_down, xt_along) = scratch
    thread, n, part = worker[0], W.shape[0], parts[worker[0]]
    transpose_down(worker, WT, wt_down, W, 2 * n)
    sync(worker)
    begin, end = partition(worker, X.shape[0], ROWS)
    part[:] = 0
    for start in range(begin, end, ROWS_BACK):
        stop = min(end, start + ROWS_BACK)
        z, x, xt = errors[thread, : stop - start], X[start:stop], XT[thread]
        for k in range(start, stop):
            differentiate(dX[k], z[k - start, :n], z[k - start, n:], dY[k], Y[k], S[k], X[k])
        transpose(xt, x[:, :n])
        at = thread * ROWS_BACK
        product(dX[start:stop], left(dz_along, (at, 0), z[:, : 2 * n]), paired(wt_down, WT), True)
        product(part[:n], left(xt_along, (thread * n, 0), xt[:, : stop - start]), right(dz_down, (at // 2, 0), z), True)
        add_rows(part[n, : db.size], z, True)
    # Add up the parts: each thread has some rows of the gradients.
    sync(worker)
    begin, end = partition(worker, n + 1)
    for k in range(begin, end):
        row = db if k == n else dW[k]
        add_rows(row, parts[:, k, : row.size], accumulate_b if k == n else accumulate)


@jit
def differentiate(dx, t, h, dy, y, s, x):
    """Compute the gradients t and h [n] of the scores, and dx = dy (1 - t)."""
    dx, t, h, dy, y, s, x = contiguous(dx, t, h, dy, y, s, x)
    for j in range(t.size):
        carry = dy[j] - dy[j] * abs(s[j])
        dx[j] = carry
        t[j] = carry * (y[j] - x[j])
        h[j] = dy[j] * max(s[j], s.dtype.type(0))
