"""Safe reader of NumPy's .npy format: only numbers, and memory is allocated only for data that is present."""

import math
import warnings
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

BLOCK = 1 << 20
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}  # version -> function that reads one


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], Any, np.dtype]:
    """Read the header of an array, (shape, order, dtype), from a binary file, which is then at the first number.

    Raises ValueError if it is not an array of real numbers.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about files of Python 2
            shape, fortran_order, dtype = HEADERS[npy.read_magic(file)](file)
        if dtype.kind not in "fiu" or min(shape, default=0) < 0:
            raise ValueError
    except Exception:  # NumPy parses it as Python literals, which raises many kinds of exceptions
        raise ValueError("no .npy header of an array of numbers") from None
    return shape, "F" if fortran_order else "C", dtype


def read(file: Any, size: int) -> np.ndarray:
    """Read the array in a binary file of `size` bytes. Raises ValueError if it is not an array of that size."""
    shape, order, dtype = read_header(file)
    data_bytes = size - file.tell()
    if math.prod(shape) * dtype.itemsize != data_bytes:
        raise ValueError(f"expected an array of shape {shape} and type {dtype}, found {data_bytes} bytes")
    numbers = np.empty(math.prod(shape), dtype)
    data = numbers.view(np.uint8)
    if sum(file.readinto(data[start : start + BLOCK]) for start in range(0, data_bytes, BLOCK)) < data_bytes:
        raise ValueError("unexpected end of file")
    return numbers.reshape(shape, order=order)
