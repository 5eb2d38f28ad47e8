"""Test matrix products and transposes of any size against NumPy, on integers, for which both are exact."""

import itertools

import numpy as np
import pytest

from tiedtools.kernels.base.elementwise import transpose
from tiedtools.kernels.base.product import DEPTH, product
from tiedtools.kernels.base.tiles import VECTOR

GUARD = 3
WIDTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 14]  # of C in vector registers; covers all splits into tiles
SIZES = (1, 1), (3, 7), (4, DEPTH), (9, 2), (6, DEPTH + 1), (5, 2 * DEPTH + 10), (2, 3), (7, 4), (11, 3), (33, 4)


class Guarded:
    """An integer matrix [rows, columns] surrounded by NaN, to detect out-of-bounds reads and writes."""

    def __init__(self, rng, rows, columns, dtype):
        self.around = np.full((rows + 2 * GUARD, columns + 2 * GUARD), np.nan, dtype)
        self.inside = self.around[GUARD:-GUARD, GUARD:-GUARD]
        self.inside[:] = rng.integers(-4, 5, self.inside.shape)
        self.start = self.around.copy()

    def check(self, expected=None):
        if expected is not None:
            self.start[GUARD:-GUARD, GUARD:-GUARD] = expected
        np.testing.assert_array_equal(self.around, self.start)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("accumulate", [False, True], ids=["", "accumulate"])
@pytest.mark.parametrize("transposed", [False, True], ids=["", "transposed"])
def test_product(dtype, accumulate, transposed):
    for vectors, (M, K) in itertools.product(WIDTHS, SIZES):
        rng, N = np.random.default_rng(vectors), vectors * VECTOR // np.dtype(dtype).itemsize
        C, B = Guarded(rng, M, N, dtype), Guarded(rng, K, N, dtype)
        G = Guarded(rng, *((K, M) if transposed else (M, K)), dtype)
        view = G.inside.T if transposed else G.inside
        if not accumulate:
            C.inside[:] = np.nan  # must not be read
        expected = view @ B.inside + (C.inside if accumulate else 0)
        product(C.inside, view, B.inside, accumulate)
        C.check(expected)
        G.check()
        B.check()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transpose(dtype):
    for M, N, more in itertools.product([1, 7, 16, 33, 64], [1, 8, 16, 21, 70], [0, 3, 40]):
        rng = np.random.default_rng(M)
        A, At = Guarded(rng, M, N, dtype), Guarded(rng, N, M + more, dtype)
        transpose(At.inside, A.inside)
        At.check(np.pad(A.inside.T, ((0, 0), (0, more))))
        A.check()


def test_product_without_rows():
    C = Guarded(np.random.default_rng(1), 2, 16, np.float64)
    product(C.inside[:0], C.inside[:0], np.ones((16, 16)), False)
    C.check()
