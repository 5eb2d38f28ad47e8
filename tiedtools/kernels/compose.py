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
def convolve(worker, Y, best, sums, places, T, b, codes, longest):
    """Y[k] = tanh(b + max_p sum_i T[i, codes[k, p + i]]): a convolution over characters, and its maximum.

    Y, best  [N, f], int32: the first position p of the maximum
    T        [width, C, f], the products of the characters with the weights of each position of the window; padded rows
    b        [f]        codes  int32 [N, L], -1 at the end: padding, which adds 0
    longest  length to which words are padded. All windows of only padding are equal, and only the first is computed
    sums, places  [threads, 2, f] and int32 [threads, f], padded rows: scratch
    """
    begin, end = partition(worker, Y.shape[0])
    width, _, columns = T.shape
    top, total, place = sums[worker[0], 0, :columns], sums[worker[0], 1, :columns], places[worker[0], :columns]
    for k in range(begin, end):
        size = length(codes[k])
        for p in range(min(size, longest - width) + 1):
            total[:] = 0
            for i in range(min(width, size - p)):
                add(total, T[i, codes[k, p + i]])
            improve(top, place, total, p)
        finish(Y[k], best[k], top, place, b)


@jit
def length(codes):
    """Return the number of codes before the first -1."""
    size = 0
    while size < codes.size and codes[size] >= 0:
        size += 1
    return size


@jit
def improve(top, place, total, p):
    """top = max(top, total), with place = p where total is greater; at p = 0, top = total."""
    top, place, total = contiguous(top), contiguous(place), contiguous(total)
    for j in range(top.size):
        greater = p == 0 or total[j] > top[j]
        place[j] = p if greater else place[j]
        top[j] = total[j] if greater else top[j]


@jit
def finish(y, best, top, place, b):
    y, best, top, place, b = contiguous(y), contiguous(best), contiguous(top), contiguous(place), contiguous(b)
    for j in range(b.size):
        y[j] = tanh(top[j] + b[j])
        best[j] = place[j]


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
