"""Test products of tiles and of matrices, bfloat16, and the most probable words."""

import itertools
import os
import platform
import subprocess
import sys

import llvmlite.binding
import numpy as np
import pytest
from common import ROOT

from tiedtools.kernels.base import arrays, tiles
from tiedtools.kernels.base.arrays import aligned
from tiedtools.kernels.base.bfloat16 import LANES, left, pack_along, pack_down, pair, paired, right
from tiedtools.kernels.base.elementwise import transpose
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import DEPTH, product
from tiedtools.kernels.base.tiles import EVERYTHING, ROWS, VECTOR, combine, combine_transposed, dots, vector_shape
from tiedtools.kernels.output.topk import WORDS, most_probable
from tiedtools.network.params import Buffers
from tiedtools.network.threads import Team

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
        self.inside = np.tile((first <= j) & (j < first + width), (groups, 1))
        self.band, self.band_t = (self.tiles(M) if slope else EVERYTHING for M in (self.inside, self.transposed()))
        self.A, self.B = self.random(groups * rows, self.columns), self.random(groups * cols, self.columns)
        self.G = self.random(groups * rows, cols)
        self.G[~self.inside] = np.nan
        self.ahead = self.A, np.arange(rows, dtype=np.int32)

    def tiles(self, inside):
        """Return the first column and the end of the elements inside, for each tile of rows."""
        tiles = inside.reshape(-1, R, inside.shape[1]).any(1)
        return np.stack([tiles.argmax(1), tiles.shape[1] - tiles[:, ::-1].argmax(1)], 1).astype(np.int32)

    def transposed(self):
        return self.group(self.inside).transpose(0, 2, 1).reshape(-1, self.shape[1])

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
            dots(S, p.A, p.B, *shape[:3], p.band, p.ahead)
            expected = p.group(p.A) @ p.group(p.B).transpose(0, 2, 1)
            p.check(S, np.where(p.inside, expected.reshape(S.shape), np.nan))

    def test_combine(self, shape, dtype):
        for vectors, accumulate, transposed in itertools.product(VECTORS, (False, True), (False, True)):
            p = Product(shape, vectors, dtype)
            like, other, kernel = (p.B, p.A, combine_transposed) if transposed else (p.A, p.B, combine)
            C = p.random(*like.shape) if accumulate else p.empty(*like.shape)
            start, G = p.group(C.copy()) if accumulate else 0, p.group(np.where(p.inside, p.G, 0))
            G, *given = (G.transpose(0, 2, 1), p.G.T, p.band_t) if transposed else (G, p.G, p.band)
            kernel(C, given[0], other, *shape[:3], given[1], accumulate, p.ahead)
            p.check(C, start + G @ p.group(other))


@pytest.mark.parametrize("words", [0, 1, 1000])
def test_any_number_of_rows_can_be_prefetched(words):
    p = Product(SHAPES["dense"], 1, np.float32)
    ahead = p.A, np.zeros(words, np.int32)
    S, C = p.empty(*p.G.shape), p.empty(*p.A.shape)
    dots(S, p.A, p.B, *p.shape[:3], EVERYTHING, ahead)
    p.check(S, p.A @ p.B.T)
    combine(C, S, p.B, *p.shape[:3], EVERYTHING, False, ahead)
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
        assert not matrix.any() and all(row.ctypes.data % 64 == 0 for row in matrix)


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
    layers = str(ROOT / "tests" / "network" / "test_layers.py")
    code = f"""
import sys
import llvmlite.binding as binding, pytest
features = binding.get_host_cpu_features()
features.update({older})
binding.get_host_cpu_features = lambda: features
from tiedtools.kernels.base import tiles
assert (tiles.VECTOR, tiles.COLS, tiles.WIDE, tiles.TALL) == {vector_shape(older)}
chosen = "(TestProducts or test_product or test_gradients and (lstm or linear)) and not without"
arguments = "-q", "-p", "no:cacheprovider", "-k", chosen
sys.exit(pytest.main([{__file__!r}, {layers!r}, *arguments]))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert " passed" in result.stdout


MARGIN = 3
WIDTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 14]  # of C in vector registers; covers all splits into tiles
SIZES = (1, 1), (3, 7), (4, DEPTH), (9, 2), (6, DEPTH + 1), (5, 2 * DEPTH + 10), (2, 3), (7, 4), (11, 3), (33, 4)
SIZES += ((0, 16),)  # no rows


class Guarded:
    """An integer matrix [rows, columns] surrounded by NaN, to detect out-of-bounds reads and writes."""

    def __init__(self, rng, rows, columns, dtype):
        self.around = np.full((rows + 2 * MARGIN, columns + 2 * MARGIN), np.nan, dtype)
        self.inside = self.around[MARGIN:-MARGIN, MARGIN:-MARGIN]
        self.inside[:] = rng.integers(-4, 5, self.inside.shape)
        self.start = self.around.copy()

    def check(self, expected=None):
        if expected is not None:
            self.start[MARGIN:-MARGIN, MARGIN:-MARGIN] = expected
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


TEAMS = {threads: Team(threads) for threads in (1, 2, 3)}


def found(scores, b, K, threads=1):
    """Return (log probabilities, ids), [B, K] each, of scores [B, V]."""
    (B, V), buffers = scores.shape, Buffers(scores.dtype)
    logprobs, ids = np.empty((threads, B, K)), np.empty((threads, B, K), np.int32)
    X, W = buffers("x", B, V), buffers("w", V, V)
    X[:, :V], W[:, :V] = scores, np.eye(V)
    Z, XT, stats = buffers("z", threads * WORDS, B), buffers("xt", V, B), buffers("stats", threads, 4, B)
    stats[:] = np.nan
    TEAMS[threads](most_probable, logprobs, ids, Z, XT, stats, X, W, b)
    return logprobs[0], ids[0]


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 2e-5), (np.float64, 1e-12)])
@pytest.mark.parametrize("B, V, K", [(1, 1, 1), (1, 7, 3), (5, 64, 5), (16, 65, 1), (37, 1000, 12), (90, 3, 3)])
def test_log_probabilities_highest_first_ties_by_id(B, V, K, dtype, tolerance):
    rng = np.random.default_rng(V)
    scores, b = rng.integers(-20, 20, (B, V)).astype(dtype), rng.integers(0, 3, V).astype(dtype)
    for bias, threads in itertools.product((b, b[:0]), TEAMS):
        z = scores + bias if len(bias) else scores
        expected = z - np.log(np.exp(z.astype(float)).sum(1, keepdims=True))
        logprobs, ids = found(scores, bias, K, threads)
        assert (ids == np.argsort(-z, axis=1, kind="stable")[:, :K]).all()
        np.testing.assert_allclose(logprobs, np.take_along_axis(expected, ids, 1), rtol=tolerance, atol=tolerance)


def test_large_scores_and_numbers_that_are_never_chosen():
    scores = np.arange(300, dtype=np.float32)[None] * 100
    logprobs, ids = found(scores, scores[0, :0], 3)
    assert ids.tolist() == [[299, 298, 297]] and logprobs.tolist() == [[0, -100, -200]]
    scores, b = np.array([[1.0, 2.0, 1.0, 3.0], [np.nan] * 4]), np.array([-np.inf, 0, -np.inf, 0])
    logprobs, ids = found(scores, b, 3)
    assert ids.tolist() == [[3, 1, -1], [-1, -1, -1]]
    np.testing.assert_allclose(logprobs[0], [*np.log(np.exp([3, 2]) / np.exp([3, 2]).sum()), -np.inf], atol=1e-6)


NAN = np.uint32(0xFFFFFFFF)  # a pair of NaN


def unpack(pairs):
    """Return (first, second) elements of all pairs as float32."""
    return (pairs << 16).view(np.float32), (pairs & 0xFFFF0000).astype(np.uint32).view(np.float32)


def rounded(x):
    """Round to 8 significant bits, ties away from zero."""
    fraction, exponent = np.frexp(np.float64(x))
    return np.ldexp(np.copysign(np.floor(abs(fraction) * 256 + 0.5), fraction), exponent - 8)


def test_pairs_and_their_dots():
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=1000).astype(np.float32) * np.float32(10.0) ** rng.integers(-30, 30, 1000) for _ in "xy")
    x[:6], y[:6] = [0, -0.0, 1, np.inf, np.nan, 257], [3, np.nan, -np.inf, 0, 1, 1 - 2**-9]
    with np.errstate(invalid="ignore"):
        both = np.array([pair(a, b) for a, b in zip(x, y)], np.uint32)
        np.testing.assert_array_equal(unpack(both), (rounded(x), rounded(y)))
    A, B = (rng.integers(-9, 9, (8, VECTOR)).astype(np.float32) for _ in "AB")
    pairs = [aligned(8, VECTOR // 2, np.uint32) for _ in "AB"]
    for X, to in zip((A, B), pairs):
        fill(to, (0, 0), X, False)
    S = np.empty((8, 8), np.float32)
    dots(S, *pairs, 1, 8, 8, EVERYTHING, (A, np.empty(0, np.int32)))
    np.testing.assert_array_equal(S, A @ B.T)


@jit
def fill(pairs, at, X, down):
    if down:
        right(pairs, at, X)
    else:
        left(pairs, at, X)


@pytest.mark.parametrize("rows, columns", [(1, 1), (2, 3), (3, 2), (5, 34), (34, 5), (7, 0)])
@pytest.mark.parametrize("down", [False, True])
def test_operands_are_packed_in_pairs(rows, columns, down):
    X = np.random.default_rng(1).integers(-99, 99, (rows, columns + 2)).astype(np.float32)[:, 1:-1]
    Y = X.T if down else X  # pairs are adjacent elements of its rows
    guarded = np.full((rows + 4, columns + 6), NAN)
    fill(guarded, (1, 2), X, down)
    part = guarded[1:, 2:][: -(-rows // 2) if down else rows, : columns if down else -(-columns // 2)]
    first, second = unpack(np.ascontiguousarray(part.T if down else part))
    np.testing.assert_array_equal(first, Y[:, ::2])
    np.testing.assert_array_equal(second[:, : Y.shape[1] // 2], Y[:, 1::2])
    assert not second[:, Y.shape[1] // 2 :].any()
    part[:] = NAN
    assert (guarded == NAN).all()


@pytest.mark.parametrize("registers", [1, 2, 5])
@pytest.mark.parametrize("pack, down", [(pack_along, False), (pack_down, True)])
def test_whole_rows_are_packed_in_pairs(pack, down, registers):
    X = np.random.default_rng(1).normal(size=(6, registers * LANES)).astype(np.float32)
    packed = aligned(3 if down else 6, X.shape[1] // (1 if down else 2), np.uint32)
    pack(packed, X)
    first, second = unpack(packed)
    Y = X.T if down else X
    for half, part in enumerate((first, second)):
        part = part[:, : X.shape[1]].T if down else part[:, : X.shape[1] // 2]
        np.testing.assert_allclose(part, rounded(Y[:, half::2]), rtol=2**-8)
        assert (part == rounded(Y[:, half::2])).mean() > 0.99  # ties, of which there are few, go to even numbers or up
    assert not packed[:, X.shape[1] if down else X.shape[1] // 2 :].any()


@jit
def multiply(C, G, B, accumulate, g_along, b_down):
    """C = G B"""
    product(C, left(g_along, (0, 0), G), right(b_down, (0, 0), B), accumulate)


@jit
def multiply_transposed(C, G, B, accumulate, g_down, b_down):
    """C = G^T B, with B already packed"""
    product(C, right(g_down, (0, 0), G).T, paired(b_down, B), accumulate)


@pytest.mark.parametrize("vectors, accumulate", list(zip([1, 2, 3, 4, 5, 6, 9, 5], [True, False] * 4)))
def test_products(vectors, accumulate):
    rng, N = np.random.default_rng(vectors), vectors * VECTOR // 4
    for M, K in (0, 5), (1, 1), (3, 7), (4, 2 * DEPTH), (6, 2 * DEPTH + 1), (5, 20), (17, 32), (90, 70), (20, 5000):
        C, G, B = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((M, N), (M, K), (K, N)))
        expected = G @ B + accumulate * C
        along, down, g_down = (np.full(s, NAN) for s in ((M, K), (K // 2 + 1, N), (K // 2 + 1, M)))
        unused = np.empty((0, 0), np.uint32)
        for pairs in (along, down), (None, None), (unused, unused):
            ours = C.copy()
            multiply(ours, G, B, accumulate, *pairs)
            np.testing.assert_array_equal(ours, expected)
        ours = C.copy()
        multiply_transposed(ours, G.T.copy(), B, accumulate, g_down, down[: (K + 1) // 2])
        np.testing.assert_array_equal(ours, expected)
        ours = C.copy()
        multiply_transposed(ours, G.T.copy(), B, accumulate, unused, unused)
        np.testing.assert_array_equal(ours, expected)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="needs x86-64")
def test_products_on_cpus_without_a_bfloat16_instruction():
    test = f"{__file__}::test_products[5-True]"
    environment = os.environ | dict(TIEDTOOLS_CPU="haswell")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "1 passed" in result.stdout, result.stdout
