"""Products of bfloat16 pairs in the matrix units (AMX) of Intel's server CPUs since Sapphire Rapids.

A tile register holds 16 rows of 64 bytes. One instruction adds to 16 x 16 sums the products of 16 x 16 pairs with
16 x 16 pairs: 16 times as many operations per cycle as float32 vectors. The pairs of bfloat16.py are in the order that
the instruction needs, so tiles are loaded from packed operands without another copy.

Of the eight registers, four hold a block of C, two tiles of G and B, and two the tiles at the end of a sum whose length
is not a multiple of 16 pairs. Blocks are 2 x 2 tiles, so that each tile that is loaded serves two products, or 1 x 4 if
C has one row of tiles. Fewer rows take less time, so all tiles have as many as needed to cover C evenly: 20 rows are 2
tiles of 10. If the rows of C are not a multiple of this number, the last tile overlaps the one above, and both compute
the shared rows. Rows of G and B that do not start on a cache line take up to four times as long to load.
"""

from llvmlite import ir
from numba.core import cgutils
from numba.core import types as nb
from numba.extending import intrinsic

from tiedtools.kernels.base.elementwise import transpose
from tiedtools.kernels.base.jit import jit

SIDE, BYTES = 16, 64  # rows of a tile, and bytes per row
DOWN, SUMS = 2, 4  # rows of tiles of a block of C, at most, and all its tiles
BLOCKS = (1, 1), (1, SUMS), (2, 1), (2, SUMS // 2)  # down, across
G_TILE, B_TILE, G_LAST, B_LAST = range(SUMS, SUMS + 4)
DEPTH = 128  # pairs summed at a time: the parts of G and B for one block fit the L1 cache
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
    """Set the sizes of all tiles: `rows` rows for C and G, and `last` pairs at the end of a sum."""

    def emit(context, builder, signature, args):
        rows, last = (builder.trunc(arg, I8) for arg in args)
        config = cgutils.alloca_once_value(builder, ir.Constant(ir.ArrayType(I8, 64), None))
        start = builder.bitcast(config, I8.as_pointer())
        put = lambda at, value: builder.store(value, builder.gep(start, [I64(at)]))
        put(0, I8(1))  # the only layout that there is: bytes per row from 16, 2 bytes each, rows from 48
        whole, part = I8(BYTES), builder.mul(last, I8(4))
        sizes = [(rows, whole)] * SUMS + [(rows, whole), (I8(SIDE), whole), (rows, part), (last, whole)]
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
def multiply_block(typingctx, C, G, B, j, rows, whole, part, accumulate, down, across):
    """C[:, j : j + across * SIDE] = G B[:, ...], or += if `accumulate`, in down x across tiles of `rows` rows.

    whole, part  length of the sum: number of tiles, and whether there are pairs after these
    """

    def emit(context, builder, signature, args):
        arrays = [context.make_array(kind)(context, builder, arg) for kind, arg in zip(signature.args, args[:3])]
        (c, g, b), (step_c, step_g, step_b) = zip(
            *((builder.ptrtoint(x.data, I64), cgutils.unpack_tuple(builder, x.strides)[0]) for x in arrays)
        )
        height = cgutils.unpack_tuple(builder, arrays[0].shape)[0]
        j, rows, whole, part, accumulate, down, across = args[3:]
        plus = lambda start, count, size: builder.add(start, builder.mul(count, size))
        c, b = plus(c, j, I64(4)), plus(b, j, I64(4))

        def add_products(tops, wide, at, g_tile, b_tile):
            """Add to all sums the products of the tiles numbered `at`."""
            start, held = plus(b, builder.mul(at, I64(SIDE)), step_b), None
            for column in range(wide):
                load(b_tile, builder.add(start, I64(BYTES * column)), step_b)
                # Back and forth, so that a tile of G serves two columns.
                for k, top in [*enumerate(tops)][:: -1 if column % 2 else 1]:
                    if k != held:
                        load(g_tile, plus(plus(g, top, step_g), at, I64(BYTES)), step_g)
                    held = k
                    assembly(builder, f"tdpbf16ps %tmm{b_tile}, %tmm{g_tile}, %tmm{column * len(tops) + k}")

        load = lambda tile, start, step: assembly(builder, f"tileloadd ($0,$1,1), %tmm{tile}", start, step)
        done = builder.append_basic_block("done")
        choice = builder.switch(plus(across, down, I64(2 * SUMS)), done)
        for high, wide in BLOCKS:
            chosen = builder.append_basic_block("block")
            choice.add_case(I64(wide + 2 * SUMS * high), chosen)
            with builder.goto_block(chosen):
                tops = [I64(0), builder.sub(height, rows)][:high]
                sums = [builder.add(plus(c, top, step_c), I64(BYTES * k)) for k in range(wide) for top in tops]
                with builder.if_else(accumulate) as (add, start):
                    with add:
                        for tile, own in enumerate(sums):
                            load(tile, own, step_c)
                    with start:
                        for tile in range(len(sums)):
                            assembly(builder, f"tilezero %tmm{tile}")
                with cgutils.for_range(builder, whole) as loop:
                    add_products(tops, wide, loop.index, G_TILE, B_TILE)
                with builder.if_then(part):
                    add_products(tops, wide, whole, G_LAST, B_LAST)
                for tile, own in enumerate(sums):
                    assembly(builder, f"tilestored %tmm{tile}, ($0,$1,1)", own, step_c)
                builder.branch(done)
        builder.position_at_end(done)

    return intrinsic_of((C, G, B, *[nb.intp] * 3, nb.boolean, nb.boolean, nb.intp, nb.intp), emit)


@intrinsic
def scratch(typingctx, G):
    """Return an array like G for a copy of the rows of one group, on the stack."""
    kind = G.copy(layout="A")

    def codegen(context, builder, signature, args):
        rows, columns, size = DOWN * SIDE, DEPTH, G.dtype.bitwidth // 8
        data = cgutils.alloca_once(builder, ir.ArrayType(context.get_data_type(G.dtype), rows * columns))
        data.align = BYTES
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
    """C = G B, or C += G B if `accumulate`: see product.py. G and B are pairs; rows of B, and of G or G^T, adjoin."""
    (M, K), N = G.shape, C.shape[1]
    if M == 0:  # tiles of no rows are invalid
        return
    tiles, width = -(-M // SIDE), max(1, PANEL // max(K, 1) // SIDE) * SIDE
    rows, groups = -(-M // tiles), -(-tiles // DOWN)
    copy, transposed = scratch(G), G.strides[1] != G.itemsize
    configure(rows, (K - 1) % SIDE + 1)
    for first in range(0, N, width):
        last = min(N, first + width)
        for group in range(groups):
            begin, end = tiles * group // groups, tiles * (group + 1) // groups
            down, top, bottom = end - begin, begin * rows, min(end * rows, M)
            c = C[top:bottom]
            for k in range(0, max(K, 1), DEPTH):
                g, b = G[top:bottom, k : k + DEPTH], B[k : k + DEPTH]
                pairs = g.shape[1]
                if transposed:
                    transpose(copy[: bottom - top, :pairs], g.T)
                    g = copy
                add, j = accumulate or k > 0, first
                while j < last:
                    across = SUMS // down if j + SUMS // down * SIDE <= last else 1
                    multiply_block(c, g, b, j, rows, pairs // SIDE, pairs % SIDE > 0, add, down, across)
                    j += across * SIDE
    release()
