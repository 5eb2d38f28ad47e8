"""A linear map and its gradient."""

from tiedtools.kernels.barrier import share, sync
from tiedtools.kernels.bfloat16 import left, paired, right
from tiedtools.kernels.elementwise import add_rows, transpose
from tiedtools.kernels.jit import jit
from tiedtools.kernels.product import product
from tiedtools.kernels.tiles import ROWS


@jit
def forward(place, Y, X, W, b, pairs):
    """Y = X W + b.        Y  [N, n]        X  [N, m]        W  [m, n]        b  [n], or [0]: none

    pairs  room for X along and W down; see bfloat16.py
    """
    x_along, w_down = pairs
    begin, end = share(place, W.shape[0], 2)
    right(w_down, (begin // 2, 0), W[begin:end])
    sync(place)
    begin, end = share(place, X.shape[0], ROWS)
    for k in range(begin, end):
        for j in range(b.size):
            Y[k, j] = b[j]
    x = left(x_along, (begin, 0), X[begin:end, : W.shape[0]])
    product(Y[begin:end], x, paired(w_down, W), b.size > 0)


@jit
def backward(place, dX, dW, db, WT, XT, pairs, dY, X, W, n, keep, keep_b):
    """The gradient of X; those of W and b are added to what is there, where that is to be kept.

    WT  [n, m] and XT  [m, N]: scratch        n  the columns of W that count, without those that fill its rows up
    pairs  room for dY along and W^T down, X^T along and dY down
    """
    dy_along, wt_down, xt_along, dy_down = pairs
    begin, end = share(place, n, 2)
    transpose(WT[begin:end], W[:, begin:end])
    right(wt_down, (begin // 2, 0), WT[begin:end])
    begin, end = share(place, X.shape[0], 2)
    right(dy_down, (begin // 2, 0), dY[begin:end])
    sync(place)
    begin, end = share(place, X.shape[0], ROWS)
    product(dX[begin:end], left(dy_along, (begin, 0), dY[begin:end, :n]), paired(wt_down, WT), False)
    begin, end = share(place, W.shape[0], ROWS)
    transpose(XT[begin:end], X[:, begin:end])
    product(dW[begin:end], left(xt_along, (begin, 0), XT[begin:end, : X.shape[0]]), paired(dy_down, dY), keep)
    begin, end = share(place, db.size)
    add_rows(db[begin:end], dY[:, begin:end], keep_b)
