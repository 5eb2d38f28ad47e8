"""Errors and update of the words of a class, in one pass over their rows, which often exceed the first-level cache."""

from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.tiles import I64, VECTOR, Emitter, each_case

MOST = 13 if VECTOR == 64 else 6  # vectors of a row at a time: sums, inputs, and temporaries fit 32 or 16 registers


@jit
def learn_rows(B, f, X, W, lr):
    """B = f W, and W += lr f^T X.        B, X  [1, P]        f  [n]        W  [n, P]"""
    lanes = VECTOR // B.itemsize
    for d in range(0, X.shape[1], MOST * lanes):
        learn_tile(B, f, X, W, d, W.shape[0], lr, min(MOST, (X.shape[1] - d) // lanes))


@intrinsic
def learn_tile(typingctx, B, f, X, W, d, n, lr, width):
    """`learn_rows`, for `width` vectors from column d on, at most MOST."""

    def codegen(context, builder, signature, args):
        e = Emitter(context, builder, signature, args)
        d, n, lr, width = args[4:]
        for count in each_case(builder, width, range(1, MOST + 1)):
            sums, start = e.sums(count), e.address(2, I64(0), 0, d)
            x = [e.load(start, I64(q * VECTOR)) for q in range(count)]
            with cgutils.for_range(builder, n) as loop:
                error, row = e.load(e.address(1, loop.index), I64(0), e.scalar), e.address(3, loop.index, 0, d)
                factor, rate = e.broadcast(error), e.broadcast(builder.fmul(error, lr))
                for q, total in enumerate(sums):
                    old = e.load(row, I64(q * VECTOR))
                    e.fma(factor, old, total)
                    e.store(builder.call(e.fma_function, [rate, x[q], old]), row, I64(q * VECTOR))
            target = e.address(0, I64(0), 0, d)
            for q, total in enumerate(sums):
                e.store(builder.load(total), target, I64(q * VECTOR))
        return context.get_dummy_value()

    return types.void(B, f, X, W, types.intp, types.intp, B.dtype, types.intp), codegen
