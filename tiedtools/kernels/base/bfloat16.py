"""Packing of matrices as pairs of bfloat16 (the upper half of a float32), the operand format of tiles.py.

A product C = G B sums over rows of G and columns of B, two bfloat16 terms at a time: `left` packs adjacent elements of
a row of G into one uint32, and `right` adjacent elements of a column of B. left(X^T) is the transpose of right(X).

If `packed` is None, operands stay float32, so that one kernel serves both precisions. If `packed` is an empty array,
operands also stay float32, but have the type of pairs and the item size UNPACKED, so that a kernel used with and
without bfloat16 is compiled only once.
"""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.base import shared
from tiedtools.kernels.base.features import DOT_BFLOAT16
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.tiles import I64, ROWS, VECTOR, Emitter

UNPACKED = 0
LANES = VECTOR // 4  # float32 in a vector register
HALF, UPPER, SIXTEEN = np.uint32(0x8000), np.uint32(0xFFFF0000), np.uint32(16)


@intrinsic
def contiguous(typingctx, *rows):
    """Declare one-dimensional arrays contiguous, so that the compiler vectorizes loops over them; returns a tuple."""
    signature = types.Tuple([row.copy(layout="C") for row in rows])(types.StarArgTuple.from_types(rows))
    return signature, lambda context, builder, signature, args: args[0]


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
        to, row = contiguous(packed[at[0] + i, at[1] :], G[i])
        for k in range(K // 2):
            to[k] = pair(row[2 * k], row[2 * k + 1])
        if K % 2:
            to[K // 2] = pair(row[K - 1], 0)


@jit
def pair_down(packed, at, B):
    """Pack adjacent elements of the columns of B; an odd last row is paired with 0."""
    K, N = B.shape
    for k in range(K // 2):
        to, row, below = contiguous(packed[at[0] + k, at[1] :], B[2 * k], B[2 * k + 1])
        for j in range(N):
            to[j] = pair(row[j], below[j])
    if K % 2:
        to, row = contiguous(packed[at[0] + K // 2, at[1] :], B[K - 1])
        for j in range(N):
            to[j] = pair(row[j], 0)


@jit
def pack_scores(along, down, X, cells, run, width, slope):
    """Pack scores both ways: adjacent cells into `along`, and adjacent elements of columns into `down`, unless None.

    X     [strips * run, n], a view of `cells`: row i of a strip has `width` elements, from i // ROWS * ROWS * slope on
    down  [strips * run / 2, n]
    """
    if along is not None:
        for k in range(along.size):
            along[k] = pair(cells[2 * k], cells[2 * k + 1])
        for b in range(0, X.shape[0], 2):
            start = b % run // ROWS * ROWS * slope
            part = slice(start, start + width)
            to, row, below = contiguous(down[b // 2, part], X[b, part], X[b + 1, part])
            for j in range(width):
                to[j] = pair(row[j], below[j])


def rounded_pair_of_rows(vectors):
    """Make an intrinsic that packs `vectors` (1 or 2) registers of two rows by the processor's rounding instruction."""

    @intrinsic
    def round_rows(typingctx, X, along, down, i, d):
        def codegen(context, builder, signature, args):
            e = Emitter(context, builder, signature, args)
            i, d = args[3:]
            b, halves = builder, ir.VectorType(ir.IntType(16), 2 * e.lanes)
            kind = ir.FunctionType(e.vector, [e.vector] * 2)
            convert = ir.InlineAsm(kind, "vcvtne2ps2bf16 $2, $1, $0", "=v,v,v")  # the second operand comes first
            packed = []
            for row in range(2):
                parts = [e.load(e.address(0, i, row, b.add(d, I64(k * e.lanes))), I64(0)) for k in range(vectors)]
                result = b.call(convert, [*parts[1:], *[e.zero] * (2 - vectors), parts[0]])
                e.store(result, e.address(1, i, row, b.lshr(d, I64(1))), I64(0))
                packed.append(b.bitcast(result, halves))
            for k in range(vectors):
                lanes = [lane + 2 * e.lanes * row for lane in range(k * e.lanes, (k + 1) * e.lanes) for row in range(2)]
                both = b.bitcast(e.shuffle(*packed, lanes), e.vector)
                e.store(both, e.address(2, b.lshr(i, I64(1)), 0, b.add(d, I64(k * e.lanes))), I64(0))
            return context.get_dummy_value()

        return types.void(X, along, down, types.intp, types.intp), codegen

    return round_rows


round_whole, round_rest = rounded_pair_of_rows(2), rounded_pair_of_rows(1)


@jit
def round_both(along, down, X):
    """`pack_both`, by the processor's rounding instruction."""
    M, P = X.shape
    for i in range(0, M, 2):
        for d in range(0, P // LANES // 2 * 2 * LANES, 2 * LANES):
            round_whole(X, along, down, i, d)
        if P // LANES % 2:
            round_rest(X, along, down, i, P - LANES)


@jit
def pair_both(along, down, X):
    """`pack_both`, by operations on integers."""
    pair_along(along, (0, 0), X)
    pair_down(down, (0, 0), X)


rounded = round_both if DOT_BFLOAT16 else pair_both


@jit
def pack_both(along, down, X):
    """Pack the rows of X into `along` and its columns into `down`, unless they are None.

    X  [M, P], M even and P a multiple of LANES        along  [M, >= P / 2], whole registers        down  [M / 2, P]
    """
    if along is not None:
        rounded(along, down, X)


PLACE = types.UniTuple(types.intp, 2)


def retyped(context, builder, X, kind, value, itemsize):
    """Return an array of type X with the type `kind` and this item size."""
    source, view = context.make_array(X)(context, builder, value), context.make_array(kind)(context, builder)
    data, size = builder.bitcast(source.data, view.data.type), ir.Constant(source.itemsize.type, itemsize)
    cgutils.copy_struct(view, source, {"data": data, "itemsize": size})
    return view._getvalue()


def is_used(context, builder, packed, value):
    """Return whether the array `packed` has elements."""
    return cgutils.is_not_null(builder, context.make_array(packed)(context, builder, value).nitems)


def operand(pack, halved):
    """Make an intrinsic that runs `pack` and returns the view of `packed` it filled, with axis `halved` halved."""

    # An intrinsic, because a function compiled without Numba's runtime cannot return an array view.
    def made(typingctx, packed, at, X):
        if isinstance(packed, types.NoneType):
            return X(packed, at, X), lambda context, builder, signature, args: args[2]

        def emit(context, builder, args):
            place = context.cast(builder, args[1], at, PLACE)
            kinds = packed.copy(layout="A"), PLACE, X.copy(layout="A")
            shared.call(context, builder, pack, kinds, (args[0], place, args[2]))
            shape = cgutils.unpack_tuple(builder, context.make_array(X)(context, builder, args[2]).shape)
            one = ir.Constant(shape[0].type, 1)
            shape[halved] = builder.lshr(builder.add(shape[halved], one), one)
            part = context.make_array(kinds[0])(context, builder, args[0])
            strides = cgutils.unpack_tuple(builder, part.strides)
            for index, step in zip(cgutils.unpack_tuple(builder, args[1]), strides):
                part.data = cgutils.pointer_add(builder, part.data, builder.mul(index, step))
            part.shape = cgutils.pack_array(builder, shape)
            return part._getvalue()

        def codegen(context, builder, signature, args):
            kind = signature.return_type
            view = cgutils.alloca_once_value(builder, retyped(context, builder, X, kind, args[2], UNPACKED))
            with builder.if_then(is_used(context, builder, packed, args[0])):
                builder.store(emit(context, builder, args), view)
            return builder.load(view)

        return packed.copy(layout="A")(packed, at, X), codegen

    return made


@intrinsic
def left(typingctx, packed, at, G):
    """Pack G [M, K] into `packed` at (row, column) `at`; returns this view [M, ceil(K / 2)]. None: returns G."""
    return operand(pair_along, 1)(typingctx, packed, at, G)


@intrinsic
def right(typingctx, packed, at, B):
    """Pack B [K, N] into `packed` at (row, column) `at`; returns this view [ceil(K / 2), N]. None: returns B."""
    return operand(pair_down, 0)(typingctx, packed, at, B)


@intrinsic
def paired(typingctx, packed, X):
    """Return `packed`, the packed form of X, or X itself if `packed` is None or empty."""
    if isinstance(packed, types.NoneType):
        return X(packed, X), lambda context, builder, signature, args: args[1]
    # Same type as the views that `left` and `right` return; any other would recompile all products.
    kind = packed.copy(layout="A")
    if isinstance(X, types.NoneType):
        return kind(packed, X), lambda context, builder, signature, args: args[0]

    def codegen(context, builder, signature, args):
        other = retyped(context, builder, X, kind, args[1], UNPACKED)
        return builder.select(is_used(context, builder, packed, args[0]), args[0], other)

    return kind(packed, X), codegen
