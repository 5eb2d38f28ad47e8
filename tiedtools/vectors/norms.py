"""Passes over the rows of a matrix (V, E), float32 or float16, their Euclidean norms, and rows without repeats."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tiedtools.base.processor import ahead, available_cores

Matrix = np.ndarray[Any, Any]
BLOCK = 1 << 20  # numbers in a block


def blocks(matrix: Any, size: int | None = None, stop: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (start, rows) for blocks of consecutive rows of a matrix, float32, about `size` numbers in each.

    stop  number of rows; None: all

    All cores compute a matrix that is computed when it is indexed. A float16 matrix, mapped from a file, is converted
    block by block: no float32 copy of it is ever in memory.
    """
    step = max(1, (size or BLOCK) // max(1, matrix.shape[1]))
    starts = range(0, matrix.shape[0] if stop is None else stop, step)
    part = lambda start: matrix[start : min(start + step, starts.stop)]
    computed = not isinstance(matrix, np.ndarray)
    for start, rows in zip(starts, ahead([part] * available_cores(), starts) if computed else map(part, starts)):
        with np.errstate(over="ignore", invalid="ignore"):
            yield start, widened(rows) if rows.dtype == np.float16 else np.asarray(rows, np.float32)


def first_rows(words: Iterable[Any]) -> dict[Any, int]:
    """Return the row of each word, in order; the first row of a repeated word."""
    rows: dict[Any, int] = {}
    for row, word in enumerate(words):
        rows.setdefault(word, row)
    return rows


def distinct(words: Sequence[str], matrix: Any) -> tuple[Sequence[str], Any]:
    """Return words and their vectors without repeated words: the first vector of each."""
    rows = first_rows(words)
    return (words, matrix) if len(rows) == len(words) else ([*rows], matrix[[*rows.values()]])


def widened(half: np.ndarray) -> np.ndarray:
    """Convert float16 to float32, exactly; several times as fast as NumPy, which converts number by number.

    Float16 has 10 bits of mantissa and an exponent bias of 15, float32 has 23 bits and 127. Shifting both by
    13 bits and multiplying by 2**112 converts all finite numbers, subnormal ones included.
    """
    bits = half.view(np.int16).astype(np.int32)  # extends the sign
    bits <<= 13
    bits &= np.int32(-0x70002000)  # the sign, and the 15 bits of exponent and mantissa
    numbers = bits.view(np.float32)
    numbers *= np.float32(2.0**112)
    if (special := np.abs(numbers) >= 2**16).any():  # nan or infinite
        numbers[special] = half[special]
    return numbers


def finite_rows(matrix: Any, limit: float = np.inf) -> np.ndarray:
    """Return whether all values of each row are finite, and below `limit` in magnitude: bool (V,)."""
    finite = np.ones(len(matrix), bool)
    for start, rows in blocks(matrix):
        finite[start : start + len(rows)] = (np.abs(rows) < limit).all(axis=1)
    return finite


def products(one: Any, two: Any) -> np.ndarray:
    """Return the matrix product one' two in float64, accumulated over blocks of rows."""
    product = np.zeros((one.shape[1], two.shape[1]))
    for start, rows in blocks(one):
        product += rows.astype(float).T @ two[start : start + len(rows)].astype(float)
    return product


def unit(matrix: Any) -> np.ndarray:
    """Normalize the rows of a matrix (V, E) to Euclidean length 1, in float32; zero rows stay zero."""
    matrix = np.asarray(matrix)
    out = np.empty(matrix.shape, np.float32)
    return np.multiply(matrix, inverse_norms(matrix)[:, None], out=out, casting="same_kind")


def inverse_norms(matrix: Any) -> np.ndarray:
    """Return 1 / Euclidean length of each row, 0 for zero rows: (V, E) -> (V,) float64, as float32 may overflow."""
    norms = np.empty(len(matrix))
    for start, rows in blocks(matrix):
        squares = norms[start : start + len(rows)]
        squares[:] = np.einsum("ve,ve->v", rows, rows)
        if not (1e-25 < squares.min() and squares.max() < 1e37):  # float32 is not exact enough, or nan
            extreme = ~((1e-25 < squares) & (squares < 1e37))
            rows = rows[extreme].astype(float)
            squares[extreme] = np.einsum("ve,ve->v", rows, rows)
    np.sqrt(norms, out=norms)
    norms[norms == 0] = np.inf
    return np.divide(1, norms, out=norms)
