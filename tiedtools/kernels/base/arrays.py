"""Zero-filled arrays aligned to cache lines, and a dry run that measures their size without allocating them."""

import contextlib
import math
import threading

import numpy as np

CACHE_LINE = 64  # bytes

local = threading.local()  # `sizes`, within imagining(): the size of each array in bytes; not in other threads


@contextlib.contextmanager
def imagining():
    """Context manager in which arrays made here take no memory: all elements of an array share one address.

    Yields a list to which the size in bytes of each array is appended.
    """
    local.sizes = []
    try:
        yield local.sizes
    finally:
        local.sizes = None


def line_up(size, dtype=np.float32, spare=0, line=CACHE_LINE):
    """Zeros [size], aligned to `line` bytes; `spare` more elements after the end may be read."""
    if (sizes := getattr(local, "sizes", None)) is not None:
        array = np.lib.stride_tricks.as_strided(np.zeros(1, dtype), (size,), (0,))
        sizes.append(array.nbytes)
        return array
    per_line = line // np.dtype(dtype).itemsize
    buffer = np.zeros(size + spare + per_line, dtype)
    return buffer[-(buffer.ctypes.data // buffer.itemsize) % per_line :][:size]


def aligned(rows, size, dtype=np.float32):
    """Zeros [rows, P], with P >= `size` padded to whole cache lines, so that each row starts on a line."""
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    width = -(-size // per_line) * per_line
    return line_up(rows * width, dtype).reshape(rows, width)


def lines(shape, dtype):
    """Zeros that share no cache line with other arrays, to avoid false sharing between threads.

    Aligned and padded to pairs of lines, since CPUs may prefetch adjacent lines together.
    """
    size, pair = math.prod(np.atleast_1d(shape).tolist()), 2 * CACHE_LINE // np.dtype(dtype).itemsize
    return line_up(-(-size // pair) * pair, dtype, line=2 * CACHE_LINE)[:size].reshape(shape)
