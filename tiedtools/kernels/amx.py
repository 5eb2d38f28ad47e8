"""Products of bfloat16 pairs in the matrix units (AMX) of Intel's server CPUs since Sapphire Rapids.

A tile register holds 16 rows of 64 bytes. One instruction adds to 16 x 16 sums the products of 16 x 16 pairs with
16 x 16 pairs: 16 times as many operations per cycle as float32 vectors. The pairs of bfloat16.py are in the order that
the instruction needs, so tiles are loaded from packed operands without another copy.

GROUP tiles of C, one below the other, take turns with the same tile of B. Of the eight registers, four hold these, two
the tiles of G and B, and two those at the end of a sum whose length is not a multiple of 16 pairs. If the number of
rows is not a multiple of 16, the last tile overlaps the one above, and both compute the shared rows.
"""

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as nb
from numba.extending import intrinsic

from tiedtools.kernels.elementwise import transpose
from tiedtools.kernels.jit import jit

SIDE, BYTES = 16, 64  # rows of a tile, and bytes per row
GROUP = 4
G_TILE, B_TILE, G_LAST, B_LAST = range(GROUP, GROUP + 4)
DEPTH = 96  # pairs summed at a time: those of GROUP tiles fit the L1 cache
PANEL = 1 << 18  # pairs of B that fit the L2 cache
I8, I64 = ir.IntType(8), ir.IntType(64)


def assembly(builder, instruction, *args):
    """Emit an instruction with operands in registers. LLVM's own support for tiles would be needed in all callers."""
    kind = ir.FunctionType(ir.VoidType(), [arg.type for arg in args])
    constraints = ",".join(["r"] * len(args) + ["~{memory}"])
    builder.call(ir.InlineAsm(kind, instruction, constraints, side_effect=True), args)


def intrinsic_of(types, emit):
    """Make a void intrinsic from emit(context, builder, signature, args)."""

    def codegen(context, builder, signature, args):
        emit(context, builder, signature, args)
        return context.get_dummy_value()

    return nb.void(*types), codegen


@intrinsic
def configure(typingctx, rows, last):
    """Set the sizes of all tiles: `rows` rows in those of C and G, and `last` pairs at the end of a sum."""

    def emit(context, builder, signature, args):
        rows, last = (builder.trunc(arg, I8) for arg in args)
        config = cgutils.alloca_once_value(builder, ir.Constant(ir.ArrayType(I8, 64), None))
        start = builder.bitcast(config, I8.as_pointer())
        put = lambda at, value: builder.store(value, builder.gep(start, [I64(at)]))
        put(0, I8(1))  # the only layout that there is: bytes per row from 16, 2 bytes each, rows from 48
        whole, part = I8(BYTES), builder.mul(last, I8(4))
        sizes = [(rows, whole)] * GROUP + [(rows, whole), (I8(SIDE), whole), (rows, part), (last, whole)]
        for tile, (height, width) in enumerate(sizes):
            put(16 + 2 * tile, width)
            put(48 + tile, height)
        assembly(builder, "ldtilecfg ($0)", start)

    return intrinsic_of((nb.intp, nb.intp), emit)


@intrinsic
def release(typingctx):
    """Reset all tiles, so that the system need not save them when it switches threads."""
    return intrinsic_of((), lambda context, builder, signature, args: assembly(builder, "tilerelease"))


@intrinsic
def multiply_group(typingctx, C, G, B, j, below, whole, part, accumulate, tiles):
    """C[:, j : j + SIDE] = G B[:, j : j + SIDE], or += if `accumulate`, in `tiles` tiles, the last from row `below` on.

    whole, part  length of the sum: number of tiles, and whether there are pairs after these
    """

    def emit(context, builder, signature, args):
        arrays = [context.make_array(kind)(context, builder, arg) for kind, arg in zip(signature.args, args[:3])]
        (c, g, b), (step_c, step_g, step_b) = zip(
            *((builder.ptrtoint(x.data, I64), cgutils.unpack_tuple(builder, x.strides)[0]) for x in arrays)
        )
        j, below, whole, part, accumulate, tiles = args[3:]
        plus = lambda start, count, size: builder.add(start, builder.mul(count, size))
        c, b = plus(c, j, I64(4)), plus(b, j, I64(4))

        def add_products(tops, at, g_tile, b_tile):
            """Add to all sums the products of the tiles numbered `at`."""
            load(b_tile, plus(b, builder.mul(at, I64(SIDE)), step_b), step_b)
            for tile, top in enumerate(tops):
                load(g_tile, plus(plus(g, top, step_g), at, I64(BYTES)), step_g)
                assembly(builder, f"tdpbf16ps %tmm{b_tile}, %tmm{g_tile}, %tmm{tile}")

        load = lambda tile, start, step: assembly(builder, f"tileloadd ($0,$1,1), %tmm{tile}", start, step)
        done = builder.append_basic_block("done")
        choice = builder.switch(tiles, done)
        for count in range(1, GROUP + 1):
            chosen = builder.append_basic_block("tiles")
            choice.add_case(I64(count), chosen)
            with builder.goto_block(chosen):
                tops = [I64(SIDE * tile) for tile in range(count - 1)] + [below]
                sums = [plus(c, top, step_c) for top in tops]
                with builder.if_else(accumulate) as (add, start):
                    with add:
                        for tile, own in enumerate(sums):
                            load(tile, own, step_c)
                    with start:
                        for tile in range(count):
                            assembly(builder, f"tilezero %tmm{tile}")
                with cgutils.for_range(builder, whole) as loop:
                    add_products(tops, loop.index, G_TILE, B_TILE)
                with builder.if_then(part):
                    add_products(tops, whole, G_LAST, B_LAST)
                for tile, own in enumerate(sums):
                    assembly(builder, f"tilestored %tmm{tile}, ($0,$1,1)", own, step_c)
                builder.branch(done)
        builder.position_at_end(done)

    return intrinsic_of((C, G, B, nb.intp, nb.intp, nb.intp, nb.boolean, nb.boolean, nb.intp), emit)


@intrinsic
def scratch(typingctx, G):
    """Return an array like G for a copy of the rows of one group, on the stack."""
    kind = G.copy(layout="A")

    def codegen(context, builder, signature, args):
        rows, columns, size = GROUP * SIDE, DEPTH, G.dtype.bitwidth // 8
        data = cgutils.alloca_once(builder, ir.ArrayType(context.get_data_type(G.dtype), rows * columns))
        array = context.make_array(kind)(context, builder)
        shape, strides = (rows, columns), (columns * size, size)
        context.populate_array(
            array,
            data=builder.bitcast(data, array.data.type),
            shape=cgutils.pack_array(builder, [I64(n) for n in shape]),
            strides=cgutils.pack_array(builder, [I64(n) for n in strides]),
            itemsize=I64(size),
            meminfo=None,
        )
        return array._getvalue()

    return kind(G), codegen


@jit
def product(C, G, B, accumulate):
    """C = G B, or C += G B if `accumulate`: see product.py. G and B are pairs; their rows or those of G^T adjoin."""
    (M, K), N = G.shape, C.shape[1]
    if M == 0:  # tiles of no rows are invalid
        return
    rows = min(M, SIDE)
    tiles, width = -(-M // SIDE), max(1, PANEL // max(K, 1) // SIDE) * SIDE
    groups = -(-tiles // GROUP)
    copy, transposed = scratch(G), G.strides[1] != G.itemsize
    configure(rows, (K - 1) % SIDE + 1)
    for first in range(0, N, width):
        for group in range(groups):
            begin, end = tiles * group // groups, tiles * (group + 1) // groups
            top = begin * SIDE
            bottom = min(end * SIDE, M)
            c = C[top:bottom]
            for k in range(0, max(K, 1), DEPTH):
                g, b = G[top:bottom, k : k + DEPTH], B[k : k + DEPTH]
                pairs = g.shape[1]
                if transposed:
                    transpose(copy[: bottom - top, :pairs], g.T)
                    g = copy
                add, below = accumulate or k > 0, bottom - top - rows
                for j in range(first, min(N, first + width), SIDE):
                    multiply_group(c, g, b, j, below, pairs // SIDE, pairs % SIDE > 0, add, end - begin)
    release()
