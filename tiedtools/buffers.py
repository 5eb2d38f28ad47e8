"""Arrays that a layer uses again in every step."""

import numpy as np

from tiedtools.kernels.prefetch import CACHE_LINE
from tiedtools.kernels.tiles import ROWS


def stride(n, dtype):
    """Numbers from one row of n to the next: whole cache lines, an odd number of them.

    Odd, since rows at a distance of many lines, say a power of two, would share few places in the cache.
    """
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    return (-(-n // per_line) | 1) * per_line


def line_up(size, dtype):
    """Zeros [size] from the start of a cache line on; what lies a few lines behind may be read."""
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    flat = np.zeros(size + 8 * per_line, dtype)
    return flat[-(flat.ctypes.data // flat.itemsize) % per_line :][:size]


class Buffers:
    """Arrays by name, made anew, zeros, only when another shape is asked for."""

    def __init__(self, dtype):
        self.dtype, self.arrays = dtype, {}

    def __call__(self, name, *shape, dtype=None):
        """An array [..., stride(n)] for numbers [..., n]; what fills the rows up is 0 and stays so.

        Behind it lie some rows that tiles may read, of whatever numbers.
        """
        made, array = self.arrays.get(name, (None, None))
        if made != shape:
            dtype = dtype or self.dtype
            padded = *shape[:-1], stride(shape[-1], dtype) if len(shape) > 1 else shape[0]
            size = int(np.prod(padded))
            array = line_up(size + ROWS * padded[-1], dtype)[:size].reshape(padded)
            self.arrays[name] = shape, array
        return array
