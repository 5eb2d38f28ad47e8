"""Composition of word vectors from rows of a table: sums, and the maximum of sums over windows (convolution)."""

from tiedtools.kernels.barrier import partition
from tiedtools.kernels.bfloat16 import contiguous
from tiedtools.kernels.elementwise import add_rows
from tiedtools.kernels.jit import jit
from tiedtools.kernels.scalar import tanh

LINE = 16  # columns; threads own whole cache lines


@jit
def sum_rows(worker, Y, T, rows):
    """Y[k] = sum of T[rows[k]].        Y  [N, m]        T  [R, m]        rows  int32 [N, K], -1 at the end: none"""
    begin, end = partition(worker, Y.shape[0])
    for k in range(begin, end):
        Y[k] = 0
        for row in rows[k]:
            if row < 0:
                break
            add(Y[k], T[row])


@jit
def add_to_summed(worker, dT, dY, rows, accumulate):
    """The gradient of `sum_rows`, added to dT if `accumulate`."""
    begin, end = partition(worker, dT.shape[1], LINE)
    if not accumulate:
        dT[:, begin:end] = 0
    for k in range(dY.shape[0]):
        for row in rows[k]:
            if row < 0:
                break
            add(dT[row, begin:end], dY[k, begin:end])


@jit
def add(y, x):
    y, x = contiguous(y), contiguous(x)
    for j in range(y.size):
        y[j] += x[j]


@jit
def copy(y, x):
    y, x = contiguous(y), contiguous(x)
    for j in range(y.size):
        y[j] = x[j]


@jit
def convolve(worker, Y, best, sums, T, b, codes, width, longest):
    """Y[k] = tanh(b + max_p sum_i T[i, codes[k, p + i]]): a convolution over characters, and its maximum.

    Y, best  [N, f], int32: the first position p of the maximum         sums  [threads, f]: scratch
    T        [width, C, f], the products of the characters with the weights of each position of the window
    b        [f]        codes  int32 [N, L], -1 at the end: padding, which adds 0
    longest  length to which words are padded. All windows of only padding are equal, and only the first is computed
    """
    begin, end = partition(worker, Y.shape[0])
    total = sums[worker[0], : b.size]
    for k in range(begin, end):
        size = length(codes[k])
        for p in range(min(size, longest - width) + 1):
            copy(total, b)
            for i in range(min(width, size - p)):
                add(total, T[i, codes[k, p + i], : b.size])
            if p:
                improve(Y[k], best[k], total, p)
            else:
                copy(Y[k], total)
                best[k] = 0
        squash(Y[k])


@jit
def length(codes):
    """Return the number of codes before the first -1."""
    size = 0
    while size < codes.size and codes[size] >= 0:
        size += 1
    return size


@jit
def improve(y, best, total, p):
    """y = max(y, total), with best = p where total is greater."""
    y, best, total = contiguous(y), contiguous(best), contiguous(total)
    for j in range(y.size):
        greater = total[j] > y[j]
        best[j] = p if greater else best[j]
        y[j] = total[j] if greater else y[j]


@jit
def squash(y):
    y = contiguous(y)
    for j in range(y.size):
        y[j] = tanh(y[j])


@jit
def convolve_back(worker, dT, db, dY, Y, best, codes, accumulate_b):
    """The gradient of `convolve`: of T, overwritten, and of b. dY is overwritten."""
    begin, end = partition(worker, Y.shape[1], LINE)
    width = dT.shape[0]
    dT[:, :, begin:end] = 0
    for k in range(Y.shape[0]):
        size = length(codes[k])
        for j in range(begin, end):
            dY[k, j] *= 1 - Y[k, j] * Y[k, j]
            p = best[k, j]
            for i in range(min(width, size - p)):
                dT[i, codes[k, p + i], j] += dY[k, j]
    add_rows(db[begin:end], dY[:, begin:end], accumulate_b)
