"""A linear map and its gradient."""

from tiedtools.kernels.barrier import share, sync
from tiedtools.kernels.elementwise import add_rows, transpose
from tiedtools.kernels.jit import jit
from tiedtools.kernels.product import product
from tiedtools.kernels.tiles import ROWS


@jit
def forward(place, Y, X, W, b):
    """Y = X W + b.        Y  [N, n]        X  [N, m]        W  [m, n]        b  [n], or [0]: none"""
    begin, end = share(place, X.shape[0], ROWS)
    for k in range(begin, end):
        for j in range(b.size):
            Y[k, j] = b[j]
    product(Y[begin:end], X[begin:end, : W.shape[0]], W, b.size > 0)


@jit
def backward(place, dX, dW, db, WT, dY, X, W, n, keep, keep_b):
    """The gradient of X; those of W and b are added to what is there, where that is to be kept.

    WT  [n, m]: scratch        n  the columns of W that count, without those that fill its rows up
    """
    begin, end = share(place, n)
    transpose(WT[begin:end], W[:, begin:end])
    sync(place)
    begin, end = share(place, X.shape[0], ROWS)
    product(dX[begin:end], dY[begin:end, :n], WT, False)
    begin, end = share(place, W.shape[0], ROWS)
    product(dW[begin:end], X.T[begin:end], dY, keep)
    begin, end = share(place, db.size)
    add_rows(db[begin:end], dY[:, begin:end], keep_b)
