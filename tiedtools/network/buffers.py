"""Scratch arrays that a layer reuses in every step."""

import math
from typing import Any

import numpy as np

from tiedtools.kernels.base.arrays import CACHE_LINE, line_up
from tiedtools.kernels.base.tiles import ROWS


def stride(n: int, dtype: Any, odd: bool = True) -> int:
    """Return the row stride, in elements, for rows of n: a whole, odd number of cache lines.

    With strides such as powers of two, accesses to parts of many rows would conflict in a few cache sets. This does not
    matter if rows are always read whole (odd=False).
    """
    per_line = CACHE_LINE // np.dtype(dtype).itemsize
    return (-(-n // per_line) | odd) * per_line


class Buffers:
    """Named, zero-filled scratch arrays, which grow as needed. dtype and odd: see `stride`."""

    def __init__(self, dtype: Any, odd: bool = True) -> None:
        self.dtype, self.odd, self.arrays = dtype, odd, {}

    def __call__(self, name: str, *shape: int, dtype: Any = None) -> np.ndarray:
        """Return the array `name` of the given shape [..., n], with rows padded to stride(n); the padding stays 0.

        Tiles may read a few rows of memory after the end; their values are arbitrary. When the shape of an array has
        changed, all its elements but the padding are arbitrary, too.
        """
        old_shape, array, flat = self.arrays.get(name, (None, None, np.empty(0)))
        if old_shape != shape:
            dtype = dtype or self.dtype
            padded = *shape[:-1], stride(shape[-1], dtype, self.odd) if len(shape) > 1 else shape[0]
            size = math.prod(padded)
            if flat.size < size + (ROWS + 1) * padded[-1]:
                flat = line_up(size + (ROWS + 1) * padded[-1], dtype)
            array = flat[:size].reshape(padded)
            if old_shape:
                array[..., shape[-1] :] = 0
            self.arrays[name] = shape, array, flat
        return array

    def bf16(self, half: bool, used: bool = True, **matrices: tuple[int, int]) -> tuple[np.ndarray | None, ...]:
        """Return arrays for matrices [rows, columns] as bfloat16 pairs (kernels/base/bfloat16.py); None if not `half`.

        used  False: return empty arrays, with which the same kernel computes in float32
        name_along  pairs of adjacent elements of a row        name_down  of a column
        """

        def pairs(name: str, rows: int, columns: int) -> np.ndarray:
            if not used:
                return np.empty((0, 0), np.uint32)
            shape = (rows, -(-columns // 2)) if name.endswith("_along") else (-(-rows // 2), columns)
            return self(name, *shape, dtype=np.uint32)

        return tuple(pairs(name, *shape) if half else None for name, shape in matrices.items())
