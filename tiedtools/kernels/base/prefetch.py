"""Software prefetch of matrix rows and of entries of tables."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.base.arrays import CACHE_LINE


def prefetcher(doc, level, write):
    """Return an intrinsic prefetch(array, i) for all cache lines of array[i], i an integer, without waiting for them.

    level  0 or 1: into the first or the second level of the cache
    write  whether to request exclusive ownership of the lines, for writing
    """

    def prefetch(typingctx, array, i):
        def codegen(context, builder, signature, args):
            source = context.make_array(signature.args[0])(context, builder, args[0])
            stride = cgutils.unpack_tuple(builder, source.strides)[0]
            i32, i64 = ir.IntType(32), ir.IntType(64)
            pointer = ir.IntType(8).as_pointer()
            hint = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(ir.VoidType(), [pointer, i32, i32, i32]), "llvm.prefetch.p0"
            )
            start = builder.add(builder.ptrtoint(source.data, i64), builder.mul(args[1], stride))
            with cgutils.for_range_slice(builder, i64(0), stride, i64(CACHE_LINE), inc=True) as (offset, _):
                address = builder.inttoptr(builder.add(start, offset), pointer)
                builder.call(hint, [address, i32(int(write)), i32(3 - level), i32(1)])
            return context.get_dummy_value()

        return types.void(array, types.intp), codegen

    prefetch.__doc__ = doc
    return intrinsic(prefetch)


prefetch = prefetcher(
    """Prefetch matrix[row], a row of many cache lines, for reading or writing.

    Rows of embeddings are accessed in random order, which hardware prefetchers cannot predict: without this,
    skip-gram spends more than half of its time waiting for memory. Into the second level, since the first has too few
    buffers for outstanding lines: rows then arrive at up to twice the rate.
    """,
    level=1, write=False,
)  # fmt: skip
prefetch_entry = prefetcher("""Prefetch table[i], an entry of one cache line or less, for writing.""", 0, True)
