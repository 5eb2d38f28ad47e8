"""Arrays that a layer uses again in every step."""

import numpy as np

from tiedtools.kernels.arrays import CACHE_LINE, line_up
from tiedtools.kernels.tiles import ROWS


def stride(n, dtype, odd=True):
    """Numbers from one row of n to the next: whole cache lines, an odd number of them.

    Odd, since parts of rows at a distance of many lines, say a power of two, would share few places in the cache. Where
    rows are always read whole, this is no concern (odd=False).
    """
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    return (-(-n // per_line) | odd) * per_line


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
            array = line_up(size, dtype, spare=(ROWS + 1) * padded[-1]).reshape(padded)
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
