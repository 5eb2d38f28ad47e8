"""Arrays as kernels want them, on cache lines of their own; and how much memory they would take, without taking it."""

import contextlib
import math

import numpy as np

CACHE_LINE = 64  # bytes

sizes = None  # of arrays in bytes, while they are only imagined


@contextlib.contextmanager
def imagining():
    """Within the block, arrays made here take no memory, since all numbers of one lie in one place.

    Yields a list that grows by the bytes of each: what they would take.
    """
    global sizes
    sizes = []
    try:
        yield sizes
    finally:
        sizes = None


def line_up(size, dtype=np.float32, spare=0, line=CACHE_LINE):
    """Zeros [size] from the start of a cache line on; `spare` numbers behind them may be read."""
    if sizes is not None:
        array = np.lib.stride_tricks.as_strided(np.zeros(1, dtype), (size,), (0,))
        sizes.append(array.nbytes)
        return array
    per_line = line // np.dtype(dtype).itemsize
    buffer = np.zeros(size + spare + per_line, dtype)
    return buffer[-(buffer.ctypes.data // buffer.itemsize) % per_line :][:size]


def aligned(rows, size, dtype=np.float32):
    """Zeros [rows, P], P the first multiple of a cache line's numbers from `size` on; each row starts a line."""
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    width = -(-size // per_line) * per_line
    return line_up(rows * width, dtype).reshape(rows, width)


def lines(shape, dtype):
    """Zeros on cache lines of their own: what one thread writes must not lie beside what another one reads.

    On pairs of lines, which processors may fetch together.
    """
    size, pair = math.prod(np.atleast_1d(shape).tolist()), 2 * CACHE_LINE // np.dtype(dtype).itemsize
    return line_up(-(-size // pair) * pair, dtype, line=2 * CACHE_LINE)[:size].reshape(shape)
