"""The linear layer Y = X W + b and its gradient."""

from typing import Any, NamedTuple

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.bfloat16 import left, paired
from tiedtools.kernels.base.elementwise import add_rows, transpose
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import pack_down, part, product, transpose_down
from tiedtools.kernels.base.tiles import ROWS


class Gradients(NamedTuple):
    """Gradients of X, W, and b, and whether to add to those of W and b instead of overwriting them."""

    dX: Any
    dW: Any
    db: Any
    accumulate: bool
    accumulate_b: bool


@jit
def forward(worker, Y, X, W, b, bf16):
    """Y = X W + b.        Y  [N, n]        X  [N, m]        W  [m, n]        b  [n], or [0]: no bias

    bf16  scratch for X packed along rows and W down columns; see bfloat16.py
    """
    begin, end, first, last = part(worker, Y)
    bias = b[first : min(last, b.size)]
    for k in range(begin, end):
        y = Y[k, first:last]
        for j in range(bias.size):
            y[j] = bias[j]
    multiply(worker, Y, X, W, bf16[0], bf16[1], b.size > 0)


@jit
def multiply(worker, Y, X, W, x_along, w_down, accumulate):
    """Y = X W, or Y += X W if `accumulate`.        Y  [N, n]        X  [N, m]        W  [m, n]

    x_along, w_down  see `forward`
    """
    pack_down(worker, w_down, W)
    begin, end = partition(worker, X.shape[0], ROWS)
    left(x_along, (begin, 0), X[begin:end, : W.shape[0]])
    sync(worker)
    multiply_packed(worker, Y, paired(x_along, X), paired(w_down, W), accumulate)


@jit
def multiply_transposed(worker, Y, XT, xt_along, X, W, accumulate):
    """Y = X^T W, or Y += X^T W if `accumulate`.        X  [N, >= m]        XT  [m, N]: scratch

    W  packed down columns; other threads may pack it in this call     xt_along  scratch for X^T packed along rows
    """
    begin, end = partition(worker, Y.shape[0], ROWS)
    transpose(XT[begin:end], X[:, begin:end])
    left(xt_along, (begin, 0), XT[begin:end, : X.shape[0]])
    sync(worker)
    multiply_packed(worker, Y, paired(xt_along, XT), W, accumulate)


@jit
def multiply_packed(worker, Y, X, W, accumulate):
    """Y = X W, or Y += X W, for operands that all threads have packed, and perhaps padding after the rows of X."""
    begin, end, first, last = part(worker, Y)
    product(Y[begin:end, first:last], X[begin:end, : W.shape[0]], W[:, first:last], accumulate)


@jit
def backward(worker, gradients, scratch, dY, X, W, n):
    """Compute the Gradients.        n  number of columns of W without padding

    scratch  W^T [n, m], X^T [m, N], and bfloat16 operands: dY along rows and W^T down, X^T along and dY down
    """
    dX, dW, db, accumulate, accumulate_b = gradients
    WT, XT, (dy_along, wt_down, xt_along, dy_down) = scratch
    transpose_down(worker, WT, wt_down, W, n)
    begin, end = partition(worker, X.shape[0], ROWS)
    left(dy_along, (begin, 0), dY[begin:end, :n])
    weights(worker, dW, XT, (xt_along, dy_down), dY, X, accumulate)
    multiply_packed(worker, dX, paired(dy_along, dY), paired(wt_down, WT), False)
    begin, end = partition(worker, db.size)
    add_rows(db[begin:end], dY[:, begin:end], accumulate_b)


@jit
def weights(worker, dW, XT, bf16, dY, X, accumulate):
    """dW = X^T dY, or dW += X^T dY if `accumulate`.        X  [N, >= m]        XT  [m, N]: scratch

    bf16  scratch for X^T packed along rows and dY down columns; see bfloat16.py
    """
    xt_along, dy_down = bf16
    pack_down(worker, dy_down, dY)
    multiply_transposed(worker, dW, XT, xt_along, X, paired(dy_down, dY), accumulate)
