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


def rounding(down, both=True):
    """Make an intrinsic that packs two registers, or one, of X from [i, d] on by the processor's rounding instruction.

    down  the second register is below the first, in the next row; otherwise it follows it in the row
    """

    @intrinsic
    def round_registers(typingctx, X, packed, i, d):
        def codegen(context, builder, signature, args):
            e = Emitter(context, builder, signature, args)
            i, d = args[2:]
            kind = ir.FunctionType(e.vector, [e.vector] * 2)
            convert = ir.InlineAsm(kind, "vcvtne2ps2bf16 $2, $1, $0", "=v,v,v")  # the upper half of the result first
            second = e.load(e.address(0, i, int(down), d), I64(0 if down else VECTOR)) if both else e.zero
            result = builder.call(convert, [second, e.load(e.address(0, i, 0, d), I64(0))])
            if down:
                halves = builder.bitcast(result, ir.VectorType(ir.IntType(16), 2 * e.lanes))
                turns = [half + e.lanes * row for half in range(e.lanes) for row in range(2)]
                result = builder.bitcast(e.shuffle(halves, halves, turns), e.vector)
                i = builder.lshr(i, I64(1))
            else:
                d = builder.lshr(d, I64(1))
            e.store(result, e.address(1, i, 0, d), I64(0))
            return context.get_dummy_value()

        return types.void(X, packed, types.intp, types.intp), codegen

    return round_registers


round_along, round_rest, round_down = rounding(False), rounding(False, both=False), rounding(True)


@jit
def rounded_along(packed, _, X):
    """`pack_along`, by the processor's rounding instruction."""
    whole = X.shape[1] // (2 * LANES) * 2 * LANES
    for i in range(X.shape[0]):
        for d in range(0, whole, 2 * LANES):
            round_along(X, packed, i, d)
        if whole < X.shape[1]:
            round_rest(X, packed, i, whole)


@jit
def rounded_down(packed, _, X):
    """`pack_down`, by the processor's rounding instruction."""
    for i in range(0, X.shape[0], 2):
        for d in range(0, X.shape[1], LANES):
            round_down(X, packed, i, d)


along_rows, down_columns = (rounded_along, rounded_down) if DOT_BFLOAT16 else (pair_along, pair_down)


@jit
def pack_along(packed, X):
    """Pack the rows of X unless `packed` is None.

    X  [M, P], P a multiple of LANES        packed  [M, P / 2], padded to whole registers
    """
    if packed is not None:
        along_rows(packed, (0, 0), X)


@jit
def pack_down(packed, X):
    """Pack the columns of X unless `packed` is None.

    X  [M, P], M even and P a multiple of LANES        packed  [M / 2, P]
    """
    if packed is not None:
        down_columns(packed, (0, 0), X)


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


def operand(pack, halved, packed, at, X):
    """Type an intrinsic that runs `pack` and returns the view of `packed` it filled, with axis `halved` halved."""
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


# Intrinsics, because a function compiled without Numba's runtime cannot return an array view.
@intrinsic
def left(typingctx, packed, at, G):
    """Pack G [M, K] into `packed` at (row, column) `at`; returns this view [M, ceil(K / 2)]. None: returns G."""
    return operand(pair_along, 1, packed, at, G)


@intrinsic
def right(typingctx, packed, at, B):
    """Pack B [K, N] into `packed` at (row, column) `at`; returns this view [ceil(K / 2), N]. None: returns B."""
    return operand(pair_down, 0, packed, at, B)


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
