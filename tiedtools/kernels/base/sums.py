"""Weighted sums of rows of a matrix, with the sum in vector registers while rows are read once."""

from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.tiles import I32, I64, VECTOR, Emitter, each_case

MOST = 20 if VECTOR == 64 else 10  # vectors of a row that are summed at once; the others of 32 or 16 registers are free


@intrinsic
def sum_tile(typingctx, out, matrix, rows, weights, i, d, first, stop, share, accumulate, width):
    """Sum `width` vectors from column d, at most MOST; the other arguments are as for `sum_rows`."""

    def codegen(context, builder, signature, args):
        e = Emitter(context, builder, signature, args)
        i, d, first, stop, share, accumulate, width = args[4:]
        for count in each_case(builder, width, range(1, MOST + 1)):
            sums = e.sums(count)
            with cgutils.for_range_slice(builder, first, stop, I64(1), inc=True) as (j, _):
                number = builder.sext(e.load(e.address(2, j), I64(0), I32), I64)
                weight = e.broadcast(e.load(e.address(3, number), I64(0), e.scalar)) if len(e.arrays) > 3 else None
                row = e.address(1, number, 0, d)
                for q, total in enumerate(sums):
                    loaded = e.load(row, I64(q * VECTOR))
                    if weight:
                        e.fma(weight, loaded, total)
                    else:
                        builder.store(builder.fadd(loaded, builder.load(total)), total)
            target, part = e.address(0, i, 0, d), e.broadcast(share)
            for q, total in enumerate(sums):
                old = builder.select(accumulate, e.load(target, I64(q * VECTOR)), e.zero)
                fma = builder.call(e.fma_function, [part, builder.load(total), old])
                e.store(fma, target, I64(q * VECTOR))
        return context.get_dummy_value()

    return types.void(out, matrix, rows, weights, *[types.intp] * 4, out.dtype, types.boolean, types.intp), codegen


@jit
def sum_rows(out, i, matrix, rows, first, stop, weights, share, accumulate, low, high):
    """out[i] = share * sum of the rows of `matrix` in rows[first:stop], or += if `accumulate`.

    out, matrix  [.., P] of one type, P in whole cache lines;  low, high  limits of the columns, likewise
    rows         int32;  weights  [rows of matrix], factors of its rows in the sum, or None
    """
    lanes = VECTOR // out.itemsize
    for d in range(low, high, MOST * lanes):
        width = min(MOST, (high - d) // lanes)
        sum_tile(out, matrix, rows, weights, i, d, first, stop, out.dtype.type(share), accumulate, width)
