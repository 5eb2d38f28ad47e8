"""Packing of matrices as pairs of bfloat16 (the upper half of a float32), the operand format of tiles.py.

A product C = G B sums over rows of G and columns of B, two bfloat16 terms at a time: `left` packs adjacent elements of
a row of G into one uint32, `right` adjacent elements of a column of B. left(X^T) is the transpose of right(X).
If `packed` is None, operands stay float32, so that one kernel serves both precisions.
"""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.base import shared
from tiedtools.kernels.base.jit import jit

HALF, UPPER, SIXTEEN = np.uint32(0x8000), np.uint32(0xFFFF0000), np.uint32(16)


@intrinsic
def contiguous(typingctx, row):
    """Declare a one-dimensional array contiguous, so that the compiler vectorizes loops over it."""
    return row.copy(layout="C")(row), lambda context, builder, signature, args: args[0]


@jit
def pair(first, second):
    """Round two float32 to the nearest bfloat16 and pack them into the lower and the upper half of a uint32."""
    low, high = np.float32(first).view(np.uint32), np.float32(second).view(np.uint32)
    return np.uint32(np.uint32(np.uint32(low + HALF) >> SIXTEEN) | np.uint32(np.uint32(high + HALF) & UPPER))


@jit
def halves(packed):
    """Return the two bfloat16 of a uint32 as float32."""
    return np.uint32(packed << SIXTEEN).view(np.float32), np.uint32(packed & UPPER).view(np.float32)


@jit
def pair_along(packed, at, G):
    """Pack adjacent elements of the rows of G; an odd last column is paired with 0."""
    M, K = G.shape
    for i in range(M):
        to, row = contiguous(packed[at[0] + i, at[1] :]), contiguous(G[i])
        for k in range(K // 2):
            to[k] = pair(row[2 * k], row[2 * k + 1])
        if K % 2:
            to[K // 2] = pair(row[K - 1], 0)


@jit
def pair_down(packed, at, B):
    """Pack adjacent elements of the columns of B; an odd last row is paired with 0."""
    K, N = B.shape
    for k in range(K // 2):
        to, row, below = contiguous(packed[at[0] + k, at[1] :]), contiguous(B[2 * k]), contiguous(B[2 * k + 1])
        for j in range(N):
            to[j] = pair(row[j], below[j])
    if K % 2:
        to, row = contiguous(packed[at[0] + K // 2, at[1] :]), contiguous(B[K - 1])
        for j in range(N):
            to[j] = pair(row[j], 0)


PLACE = types.UniTuple(types.intp, 2)
for kernel in pair_along, pair_down:
    shared.share(kernel, types.Array(types.uint32, 2, "A"), PLACE, types.Array(types.float32, 2, "A"))


def operand(pack, halved):
    """Make an intrinsic that runs `pack` and returns the view of `packed` it filled, with axis `halved` halved."""

    # An intrinsic, because a function compiled without Numba's runtime cannot return an array view.
    def made(typingctx, packed, at, X):
        if isinstance(packed, types.NoneType):
            return X(packed, at, X), lambda context, builder, signature, args: args[2]

        def codegen(context, builder, signature, args):
            place = context.cast(builder, args[1], at, PLACE)
            kinds = packed.copy(layout="A"), PLACE, X.copy(layout="A")
            shared.call(context, builder, pack, kinds, (args[0], place, args[2]))
            shape = cgutils.unpack_tuple(builder, context.make_array(X)(context, builder, args[2]).shape)
            one = ir.Constant(shape[0].type, 1)
            shape[halved] = builder.lshr(builder.add(shape[halved], one), one)
            part = context.make_array(signature.return_type)(context, builder, args[0])
            strides = cgutils.unpack_tuple(builder, part.strides)
            for index, step in zip(cgutils.unpack_tuple(builder, args[1]), strides):
                part.data = cgutils.pointer_add(builder, part.data, builder.mul(index, step))
            part.shape = cgutils.pack_array(builder, shape)
            return part._getvalue()

        return packed.copy(layout="A")(packed, at, X), codegen

    return made


@intrinsic
def left(typingctx, packed, at, G):
    """Pack G [M, K] into `packed` at (row, column) `at`; returns that view [M, ceil(K / 2)]. None: returns G."""
    return operand(pair_along, 1)(typingctx, packed, at, G)


@intrinsic
def right(typingctx, packed, at, B):
    """Pack B [K, N] into `packed` at (row, column) `at`; returns that view [ceil(K / 2), N]. None: returns B."""
    return operand(pair_down, 0)(typingctx, packed, at, B)


@intrinsic
def paired(typingctx, packed, X):
    """Return `packed`, the packed form of X, or X itself if `packed` is None."""
    chosen = int(isinstance(packed, types.NoneType))
    # Same type as the views that `left` and `right` return; any other would recompile all products.
    kind = X if chosen else packed.copy(layout="A")
    return kind(packed, X), lambda context, builder, signature, args: args[chosen]
