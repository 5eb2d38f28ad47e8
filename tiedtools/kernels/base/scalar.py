"""Scalar functions that other kernels inline: random numbers, exponential, logistic function, tanh."""

import math

import numpy as np
from numba.core import types
from numba.extending import overload

from tiedtools.kernels.base.jit import jit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)
U27, U30, U31, U32 = (np.uint64(k) for k in (27, 30, 31, 32))
LOW32 = np.uint64(0xFFFFFFFF)


@jit
def mix(counter):
    """Return 64 random bits for a counter (splitmix64; Steele, Lea and Flood 2014).

    For a stream, do `counter += GOLDEN` before each draw; the counter is the generator's entire state.
    """
    z = (counter ^ (counter >> U30)) * MIX1
    z = (z ^ (z >> U27)) * MIX2
    return z ^ (z >> U31)


@jit
def below(bits, n):
    """Return a uniform integer 0 .. n - 1 from the upper half of 64 random `bits`; n < 2**32 (uint64)."""
    return ((bits >> U32) * n) >> U32


@jit(relaxed=True)
def exp32(x):
    """exp(x) in float32 for -87 < x < 88, with relative error below 4e-6 (3e-7 for |x| < 1).

    Unlike expf, it is inlined and vectorized.

    x = (k + f) ln 2 with |f| <= 1/2: 2**f by its Taylor polynomial, 2**k through the exponent bits.
    """
    t = np.float32(x) * np.float32(1.4426950408889634)
    k = np.rint(t)  # a float: the 64-bit integer from floor would take twice the registers
    f = (t - k) * np.float32(0.6931471805599453)
    p = np.float32(1 / 720)
    p = p * f + np.float32(1 / 120)
    p = p * f + np.float32(1 / 24)
    p = p * f + np.float32(1 / 6)
    p = p * f + np.float32(0.5)
    p = p * f + np.float32(1)
    p = p * f + np.float32(1)
    return p * np.int32((np.int32(k) + np.int32(127)) << np.int32(23)).view(np.float32)


@jit(relaxed=True)
def log1p32(t):
    """log(1 + t) in float32 for 0 <= t <= 1, absolute error below 4e-7; a degree-8 polynomial (Chebyshev nodes)."""
    p = np.float32(-0.00857467621)
    p = p * t + np.float32(0.0442141923)
    p = p * t + np.float32(-0.107853679)
    p = p * t + np.float32(0.17757024)
    p = p * t + np.float32(-0.244996117)
    p = p * t + np.float32(0.332761766)
    p = p * t + np.float32(-0.499974494)
    p = p * t + np.float32(0.99999981)
    return p * t


ONE, TWO, LARGE = np.float32(1), np.float32(2), np.float32(80)


@jit
def clamped_exp32(x):
    """exp32(x) with x clamped to +-80."""
    return exp32(min(max(x, -LARGE), LARGE))


@jit
def sigmoid32(x):
    """1 / (1 + exp(-x)) in float32; see `sigmoid`."""
    return ONE / (ONE + clamped_exp32(-x))


@jit(relaxed=True)
def tanh32(x):
    """Hyperbolic tangent in float32; see `tanh`."""
    return TWO * sigmoid32(TWO * x) - ONE


@jit
def sigmoid64(x):
    """1 / (1 + exp(-x)) in float64."""
    return 1 / (1 + math.exp(-x))


def by_type(name, of_float32, of_float64):
    """Return a function that kernels call as `of_float32` or `of_float64`, by the type of its argument.

    name  distinguishes their symbols: those of lambdas differ only by a number, which other processes give to others,
          so that kernels compiled by different processes and linked from the cache would call the wrong function
    """

    def function(x):
        pass

    for named in function, of_float32, of_float64:
        named.__name__ = named.__qualname__ = name
    overload(function)(lambda x: {types.float32: of_float32, types.float64: of_float64}[x])
    return function


exp = by_type("exp", lambda x: clamped_exp32(x), lambda x: math.exp(x))  # float32: by `exp32`, with x clamped to +-80
sigmoid = by_type("sigmoid", lambda x: sigmoid32(x), lambda x: sigmoid64(x))  # float32: absolute error below 1e-6
tanh = by_type("tanh", lambda x: tanh32(x), lambda x: math.tanh(x))  # float32: absolute error below 2e-6
