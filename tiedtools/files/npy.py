"""Safe reader of NumPy's .npy format.

The header is matched by a regular expression, never evaluated, and memory is allocated only for data that is present.
The format (see numpy.lib.format): a magic number, a version, the header length, and the header, a Python dict literal
with descr, fortran_order, and shape.
"""

import math
import re
from typing import IO, Any

import numpy as np

MAX_HEADER = 10_000  # NumPy's own limit
BLOCK = 1 << 20
FIELD = r"\s*'(descr|fortran_order|shape)'\s*:\s*('[<>|=]?[fiu](?:1|2|4|8|12|16)'|True|False|\([\d\sL,]*\))\s*"
HEADER = re.compile(rf"\{{{FIELD},{FIELD},{FIELD},?\s*\}}\s*", re.ASCII)


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], Any, np.dtype]:
    """Read the header of an array, (shape, order, dtype), from a binary file, which is then at the first number.

    Raises ValueError if it is not an array of real numbers.
    """
    magic = file.read(8)
    width = {b"\x93NUMPY\x01\0": 2, b"\x93NUMPY\x02\0": 4}.get(magic)
    size = int.from_bytes(file.read(width), "little") if width else 0
    if not 0 < size <= MAX_HEADER:
        raise ValueError("no .npy header of a known version")
    match = HEADER.fullmatch(file.read(size).decode("latin-1"))
    fields = dict(zip(match.groups()[::2], match.groups()[1::2])) if match else {}
    if len(fields) < 3:
        raise ValueError("no .npy header of an array of numbers")
    try:
        dtype = np.dtype(fields["descr"].strip("'"))
        order = {"True": "F", "False": "C"}[fields["fortran_order"]]
        *sizes, last = fields["shape"][1:-1].replace("L", "").split(",")
        shape = tuple(int(n) for n in (sizes if not last.strip() else [*sizes, last]))
    except (KeyError, TypeError, ValueError):
        raise ValueError("no .npy header of an array of numbers") from None
    return shape, order, dtype


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
