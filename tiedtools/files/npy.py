"""Arrays in NumPy's .npy format: the header is matched, never evaluated, and memory taken only for what is there.

numpy.lib.format has the format: a magic number, a version, the header's length, and the header, which is Python's text
of a dict of descr, fortran_order and shape.
"""

import math
import re

import numpy as np

MAX_HEADER = 10_000  # NumPy's own limit
BLOCK = 1 << 20
FIELD = r"\s*'(descr|fortran_order|shape)'\s*:\s*('[<>|=]?[fiu](?:1|2|4|8|12|16)'|True|False|\([\d\sL,]*\))\s*"
HEADER = re.compile(rf"\{{{FIELD},{FIELD},{FIELD},?\s*\}}\s*", re.ASCII)


def read_header(file):
    """(shape, order, dtype) of the array in a binary file, which is then at the first number.

    Raises ValueError where it is none of real numbers.
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


def read(file, size):
    """The array in a binary file of so many bytes. Raises ValueError where it is none, or has another size."""
    shape, order, dtype = read_header(file)
    left = size - file.tell()
    if math.prod(shape) * dtype.itemsize != left:
        raise ValueError(f"{left} bytes where an array of shape {shape} should be")
    numbers = np.empty(math.prod(shape), dtype)
    content, done = numbers.view(np.uint8), 0
    while block := file.read(BLOCK):
        content[done : done + len(block)] = np.frombuffer(block, np.uint8)
        done += len(block)
    if done < left:
        raise ValueError("it ends too early")
    return numbers.reshape(shape, order=order)
