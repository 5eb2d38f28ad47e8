"""Elementwise and row operations of networks: masks, row sums, transposition, gather, scatter, normalization."""

import numpy as np

from tiedtools.kernels.base import shared
from tiedtools.kernels.base.barrier import partition
from tiedtools.kernels.base.bfloat16 import contiguous
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import GOLDEN, U32, mix
from tiedtools.kernels.base.tiles import VECTOR, strided, transpose_tile

SCALE = np.float64(2.0**-32)
LINE = 16  # columns: a multiple of a cache line, which threads do not share


@jit
def add_rows(total, A, accumulate):
    """total = sum of the rows of A, or total += it if `accumulate`.        total  [n]        A  [N, n]"""
    if not accumulate:
        total[:] = 0
    for i in range(A.shape[0]):
        for j in range(total.size):
            total[j] += A[i, j]


@jit
def transpose(At, A):
    """At = A^T; extra columns of At become 0.      A  [M, N]      At  [N, >= M]"""
    transpose_shared(strided(At), strided(A))


@jit
def transpose_by_tiles(At, A):
    """`transpose`, in register-sized tiles."""
    M, N = A.shape
    lanes = VECTOR // A.itemsize
    for i in range(0, At.shape[1], lanes):
        whole = N // lanes * lanes if i + lanes <= M else 0
        for j in range(0, whole, lanes):
            transpose_tile(At, A, i, j)
        for j in range(whole, N):
            for k in range(i, min(i + lanes, At.shape[1])):
                At[j, k] = A[k, j] if k < M else 0


transpose_shared = shared.caller(lambda kinds: transpose_by_tiles)


@jit
def draw_mask(worker, mask, drop, seed):
    """Draw an inverted-dropout mask [N]: 0 with probability `drop`, otherwise 1 / (1 - drop)."""
    begin, end = partition(worker, mask.size)
    limit = np.uint64(drop / SCALE)
    scale, part = mask.dtype.type(1 / (1 - drop)), mask[begin:end]
    for k in range(part.size):
        bits = mix(seed + np.uint64(begin + k + 1) * GOLDEN)
        part[k] = 0 if bits >> U32 < limit else scale


@jit
def draw_word_mask(worker, mask, ids, drop, seed, same):
    """Draw a mask [T, B, 1] like `draw_mask`: one value per word type and sequence or, if `same`, per word type."""
    begin, end = partition(worker, ids.shape[0])
    limit = np.uint64(drop / SCALE)
    scale = mask.dtype.type(1 / (1 - drop))
    for t in range(begin, end):
        for b in range(ids.shape[1]):
            sequence = mix(seed + np.uint64(0 if same else b + 1) * GOLDEN)
            bits = mix(sequence + np.uint64(ids[t, b] + 1) * GOLDEN)
            mask[t, b, 0] = 0 if bits >> U32 < limit else scale


@jit
def add_changes(worker, dY, X, factor):
    """dY += factor / 2 times the gradient of sum_t |X_{t+1} - X_t|^2.        dY, X  [T, N]"""
    T = X.shape[0]
    begin, end = partition(worker, X.shape[1])
    weight = X.dtype.type(factor)
    for t in range(T - 1):
        x, after, dx, d_after = X[t, begin:end], X[t + 1, begin:end], dY[t, begin:end], dY[t + 1, begin:end]
        for j in range(x.size):
            dx[j] -= weight * (after[j] - x[j])
        for j in range(x.size):
            d_after[j] += weight * (after[j] - x[j])


@jit
def apply_mask(worker, Y, X, mask):
    """Y = X * mask, where the mask may be broadcast over steps, sequences or units.

    Y, X  [T, B, n], possibly the same array; rows may be longer than n        mask  [T or 1, B or 1, n or 1]
    """
    begin, end = partition(worker, X.shape[0])
    T, B, N = mask.shape
    for t in range(begin, end):
        for b in range(X.shape[1]):
            row = mask[t if T > 1 else 0, b if B > 1 else 0]
            if N > 1:
                for j in range(N):
                    Y[t, b, j] = X[t, b, j] * row[j]
            else:
                for j in range(X.shape[2]):
                    Y[t, b, j] = X[t, b, j] * row[0]


@jit
def gather_rows(worker, Y, table, ids):
    """Y[k] = table[ids[k]].        Y  [N, m]        table  [V, m]        ids  int32 [N]"""
    begin, end = partition(worker, ids.size)
    for k in range(begin, end):
        for j in range(table.shape[1]):
            Y[k, j] = table[ids[k], j]


@jit
def add_to_rows(worker, table, dY, ids):
    """table[ids[k]] += dY[k]. Threads divide the columns, because `ids` may repeat a row."""
    begin, end = partition(worker, table.shape[1], LINE)
    for k in range(ids.size):
        row, dy = table[ids[k], begin:end], dY[k, begin:end]
        for j in range(row.size):
            row[j] += dy[j]


@jit
def normalize_rows(worker, X):
    """Scale each row of X [N, n] to Euclidean norm 1; zero rows stay zero."""
    begin, end = partition(worker, X.shape[0])
    for i in range(begin, end):
        square = np.float64(0)
        for j in range(X.shape[1]):
            square += np.float64(X[i, j]) * np.float64(X[i, j])
        if square > 0:
            factor = X.dtype.type(1 / np.sqrt(square))
            for j in range(X.shape[1]):
                X[i, j] *= factor


@jit
def through_tanh(worker, dY, Y):
    """dY = dY (1 - Y^2): the gradient with respect to x of Y = tanh(x).        dY, Y  [N]"""
    begin, end = partition(worker, Y.size, LINE)
    tanh_gradient(dY[begin:end], dY[begin:end], Y[begin:end])


@jit
def tanh_gradient(dx, dy, y):
    """dx = dy (1 - y^2), the gradient with respect to x of y = tanh(x); dx may be dy."""
    dx, dy, y = contiguous(dx, dy, y)
    for j in range(y.size):
        dx[j] = dy[j] - dy[j] * y[j] * y[j]
