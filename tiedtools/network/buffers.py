"""Arrays that a layer uses again in every step."""

import contextlib

import numpy as np

from tiedtools.kernels.prefetch import CACHE_LINE
from tiedtools.kernels.tiles import ROWS, line_up


def stride(n, dtype, odd=True):
    """Numbers from one row of n to the next: whole cache lines, an odd number of them.

    Odd, since parts of rows at a distance of many lines, say a power of two, would share few places in the cache. Where
    rows are always read whole, this is no concern (odd=False).
    """
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    return (-(-n // per_line) | odd) * per_line


sizes = None  # of arrays in bytes, while they are only imagined


@contextlib.contextmanager
def imagining():
    """Within the block, the arrays of Buffers and Params take no memory, since all numbers of one lie in one place.

    Yields a list that grows by the bytes of each: what they would take.
    """
    global sizes
    sizes = []
    try:
        yield sizes
    finally:
        sizes = None


def zeros(size, dtype, spare):
    """As tiles.line_up."""
    if sizes is None:
        return line_up(size, dtype, spare)
    array = np.lib.stride_tricks.as_strided(np.zeros(1, dtype), (size,), (0,))
    sizes.append(array.nbytes)
    return array


class Buffers:
    """Arrays by name, made anew, zeros, only when another shape is asked for. dtype and odd: see `stride`."""

    def __init__(self, dtype, odd=True):
        self.dtype, self.odd, self.arrays = dtype, odd, {}

    def __call__(self, name, *shape, dtype=None):
        """An array [..., stride(n)] for numbers [..., n]; what fills the rows up is 0 and stays so.

        Behind it lie some rows that tiles may read, of whatever numbers.
        """
        made, array = self.arrays.get(name, (None, None))
        if made != shape:
            dtype = dtype or self.dtype
            padded = *shape[:-1], stride(shape[-1], dtype, self.odd) if len(shape) > 1 else shape[0]
            size = int(np.prod(padded))
            array = zeros(size, dtype, spare=(ROWS + 1) * padded[-1]).reshape(padded)
            self.arrays[name] = shape, array
        return array

    def bf16(self, half, **matrices):
        """Room for matrices [rows, columns] as pairs of bfloat16 (kernels/bfloat16.py), in order; None if not `half`.

        name_along  pairs of neighbours in a row        name_down  pairs of neighbours in a column
        """

        def room(name, rows, columns):
            shape = (rows, -(-columns // 2)) if name.endswith("_along") else (-(-rows // 2), columns)
            return self(name, *shape, dtype=np.uint32)

        return tuple(room(name, *shape) if half else None for name, shape in matrices.items())
