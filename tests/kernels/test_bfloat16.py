"""Test bfloat16 pairs and their products on small integers, for which results are exact."""

import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from tiedtools.kernels.base.arrays import aligned
from tiedtools.kernels.base.bfloat16 import LANES, left, pack_along, pack_down, pair, paired, right
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import DEPTH, product
from tiedtools.kernels.base.tiles import EVERYTHING, VECTOR, dots

NAN = np.uint32(0xFFFFFFFF)  # a pair of NaN


def unpack(pairs):
    """Return (first, second) elements of all pairs as float32."""
    return (pairs << 16).view(np.float32), (pairs & 0xFFFF0000).astype(np.uint32).view(np.float32)


def rounded(x):
    """Round to 8 significant bits, ties away from zero."""
    fraction, exponent = np.frexp(np.float64(x))
    return np.ldexp(np.copysign(np.floor(abs(fraction) * 256 + 0.5), fraction), exponent - 8)


def test_pair_rounds_to_nearest():
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=1000).astype(np.float32) * np.float32(10.0) ** rng.integers(-30, 30, 1000) for _ in "xy")
    x[:6], y[:6] = [0, -0.0, 1, np.inf, np.nan, 257], [3, np.nan, -np.inf, 0, 1, 1 - 2**-9]
    with np.errstate(invalid="ignore"):
        both = np.array([pair(a, b) for a, b in zip(x, y)], np.uint32)
        np.testing.assert_array_equal(unpack(both), (rounded(x), rounded(y)))


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
        part = part.T if down else part[:, : X.shape[1] // 2]
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


def test_dots():
    rng = np.random.default_rng(1)
    A, B = (rng.integers(-9, 9, (8, VECTOR)).astype(np.float32) for _ in "AB")
    pairs = [aligned(8, VECTOR // 2, np.uint32) for _ in "AB"]
    for X, to in zip((A, B), pairs):
        fill(to, (0, 0), X, False)
    S = np.empty((8, 8), np.float32)
    dots(S, *pairs, 1, 8, 8, EVERYTHING, (A, np.empty(0, np.int32)))
    np.testing.assert_array_equal(S, A @ B.T)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="needs x86-64")
def test_products_on_cpus_without_a_bfloat16_instruction():
    test = f"{__file__}::test_products[5-True]"
    environment = os.environ | dict(TIEDTOOLS_CPU="haswell")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "1 passed" in result.stdout, result.stdout
