"""Test tiled matrix products against NumPy, on integers, for which both are exact."""

import itertools
import subprocess
import sys

import llvmlite.binding
import numpy as np
import pytest
from paths import ROOT

from tiedtools.kernels.base import arrays, tiles
from tiedtools.kernels.base.arrays import aligned
from tiedtools.kernels.base.tiles import ROWS, VECTOR, combine, combine_transposed, dots, vector_shape

R = ROWS
# (groups, rows, cols, width, slope)
SHAPES = {
    "one tile": (1, R, R, R, 0), "dense": (1, 3 * R, 5 * R, 5 * R, 0), "dense groups": (3, 2 * R, 4 * R, 4 * R, 0),
    "band": (1, 4 * R, 5 * R, 2 * R, 1), "band groups": (3, 2 * R, 4 * R, 3 * R, 1),
    "band of one tile": (2, 3 * R, 3 * R, R, 1), "band wider than high": (2, R, 6 * R, 6 * R, 1),
}  # fmt: skip
VECTORS = [1, 2, 3, 4, 7]  # columns, in vector registers
DTYPES = [np.float32, np.float64]
GUARD = 2  # rows of NaN around every matrix, to detect out-of-bounds reads and writes


class Product:
    """Random operands for products with a banded matrix [groups * rows, cols], which is NaN outside its band."""

    def __init__(self, shape, vectors, dtype):
        self.shape = groups, rows, cols, width, slope = shape
        self.rng = np.random.default_rng(sum(shape) + vectors)
        self.columns = vectors * VECTOR // np.dtype(dtype).itemsize
        self.dtype, self.guarded = dtype, []
        first = np.arange(rows)[:, None] // R * R * slope
        j = np.arange(cols)
        self.band = np.tile((first <= j) & (j < first + width), (groups, 1))
        self.A, self.B = self.random(groups * rows, self.columns), self.random(groups * cols, self.columns)
        self.G = self.random(groups * rows, cols)
        self.G[~self.band] = np.nan
        self.ahead = self.A, np.arange(rows, dtype=np.int32)

    def empty(self, rows, columns):
        self.guarded.append(np.full((rows + 2 * GUARD, columns), np.nan, self.dtype))
        return self.guarded[-1][GUARD:-GUARD]

    def random(self, rows, columns):
        matrix = self.empty(rows, columns)
        matrix[:] = self.rng.integers(-4, 5, matrix.shape)
        return matrix

    def group(self, matrix):
        return matrix.reshape(self.shape[0], -1, matrix.shape[1])

    def check(self, matrix, expected):
        np.testing.assert_array_equal(matrix, expected.reshape(matrix.shape))
        for array in self.guarded:
            assert np.isnan(array[:GUARD]).all() and np.isnan(array[-GUARD:]).all()


@pytest.fixture(params=DTYPES, ids=lambda d: d.__name__)
def dtype(request):
    return request.param


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
class TestProducts:
    def test_dots(self, shape, dtype):
        for vectors in VECTORS:
            p = Product(shape, vectors, dtype)
            S = p.empty(*p.G.shape)
            dots(S, p.A, p.B, *shape, p.ahead)
            expected = p.group(p.A) @ p.group(p.B).transpose(0, 2, 1)
            p.check(S, np.where(p.band, expected.reshape(S.shape), np.nan))

    def test_combine(self, shape, dtype):
        for vectors, accumulate in itertools.product(VECTORS, (False, True)):
            p = Product(shape, vectors, dtype)
            C = p.random(*p.A.shape) if accumulate else p.empty(*p.A.shape)
            start = p.group(C.copy()) if accumulate else 0
            combine(C, p.G, p.B, *shape, accumulate, p.ahead)
            p.check(C, start + p.group(np.where(p.band, p.G, 0)) @ p.group(p.B))

    def test_combine_transposed(self, shape, dtype):
        for vectors, accumulate in itertools.product(VECTORS, (False, True)):
            p = Product(shape, vectors, dtype)
            C = p.random(*p.B.shape) if accumulate else p.empty(*p.B.shape)
            start = p.group(C.copy()) if accumulate else 0
            combine_transposed(C, p.G.T, p.A, *shape, accumulate, p.ahead)
            p.check(C, start + p.group(np.where(p.band, p.G, 0)).transpose(0, 2, 1) @ p.group(p.A))


@pytest.mark.parametrize("words", [0, 1, 1000])
def test_any_number_of_rows_can_be_prefetched(words):
    p = Product(SHAPES["dense"], 1, np.float32)
    ahead = p.A, np.zeros(words, np.int32)
    S, C = p.empty(*p.G.shape), p.empty(*p.A.shape)
    dots(S, p.A, p.B, *p.shape, ahead)
    p.check(S, p.A @ p.B.T)
    combine(C, S, p.B, *p.shape, False, ahead)
    p.check(C, p.A @ p.B.T @ p.B)


@pytest.mark.parametrize(
    "size, dtype, width",
    [(1, np.float32, 16), (15, np.float32, 16), (16, np.float32, 16), (17, np.float32, 32), (100, np.float32, 112)]
    + [(8, np.float64, 8), (9, np.float64, 16), (65, np.uint8, 128)],
)
def test_aligned(size, dtype, width):
    kept = [(rows, aligned(rows, size, dtype)) for rows in [0, 1, 7] * 20]  # at various addresses
    for rows, matrix in kept:
        assert matrix.shape == (rows, width) and matrix.dtype == dtype and matrix.flags.c_contiguous
        assert not matrix.any()
        assert all(row.ctypes.data % 64 == 0 for row in matrix)


@pytest.mark.parametrize("features, shape", [
    (dict(avx512f=True, avx2=True, sse2=True), (64, 4, 4, 5)),
    (dict(avx512f=False, avx2=True, sse2=True), (32, 2, 3, 4)),
    (dict(avx512f=False, avx2=False, sse2=True), (16, 2, 3, 4)), (dict(neon=True), (16, 4, 4, 5)), ({}, (16, 4, 4, 5)),
])  # fmt: skip
def test_vector_shape(features, shape):
    assert vector_shape(features) == shape
    vector, columns, wide, tall = shape
    registers = 32 if features.get("avx512f") or not features.get("sse2") else 16
    assert tall * wide + wide + 1 <= registers, "accumulators would be spilled to memory"
    for dtype in DTYPES:
        lanes = vector // np.dtype(dtype).itemsize
        assert ROWS * columns % lanes == 0, "accumulators are reduced `lanes` vectors at a time"
        assert ROWS % columns == 0 and arrays.CACHE_LINE % vector == 0


# Disabling features of newer CPUs tests the code for older ones.
OLDER = {"avx2": "avx512", "sse": ("avx", "fma", "f16c", "vaes", "vpclmul", "xop", "gfni")}


@pytest.mark.parametrize("without", OLDER.values(), ids=OLDER)
def test_code_for_older_cpus(without):
    features = llvmlite.binding.get_host_cpu_features()
    older = {name: on and not name.startswith(without) for name, on in features.items()}
    if vector_shape(older) == (VECTOR, tiles.COLS, tiles.WIDE, tiles.TALL):
        pytest.skip("this CPU already runs that code")
    others = [str(ROOT / "tests" / name) for name in ("kernels/test_product.py", "network/test_layers.py")]
    code = f"""
import sys
import llvmlite.binding as binding, pytest
features = binding.get_host_cpu_features()
features.update({older})
binding.get_host_cpu_features = lambda: features
from tiedtools.kernels.base import tiles
assert (tiles.VECTOR, tiles.COLS, tiles.WIDE, tiles.TALL) == {vector_shape(older)}
chosen = "TestProducts or test_product or test_gradients and (lstm or linear)"
arguments = "-q", "-p", "no:cacheprovider", "-k", chosen
sys.exit(pytest.main([{__file__!r}, *{others}, *arguments]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert " passed" in result.stdout
