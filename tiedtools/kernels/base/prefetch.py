"""Software prefetch of matrix rows."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.base.arrays import CACHE_LINE


def prefetcher(level, write):
    """Return an intrinsic that prefetches all cache lines of matrix[row], an array of any dimension, without waiting.

    level  0 or 1: into the first or the second level of the cache
    write  whether to request exclusive ownership of the lines
    """

    @intrinsic
    def prefetch(typingctx, matrix, row):
        def codegen(context, builder, signature, args):
            array = context.make_array(signature.args[0])(context, builder, args[0])
            stride = cgutils.unpack_tuple(builder, array.strides)[0]
            i32, i64 = ir.IntType(32), ir.IntType(64)
            pointer = ir.IntType(8).as_pointer()
            hint = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(ir.VoidType(), [pointer, i32, i32, i32]), "llvm.prefetch.p0"
            )
            start = builder.add(builder.ptrtoint(array.data, i64), builder.mul(args[1], stride))
            with cgutils.for_range_slice(builder, i64(0), stride, i64(CACHE_LINE), inc=True) as (offset, _):
                address = builder.inttoptr(builder.add(start, offset), pointer)
                builder.call(hint, [address, i32(int(write)), i32(3 - level), i32(1)])
            return context.get_dummy_value()

        return types.void(matrix, types.intp), codegen

    return prefetch


# Rows of embeddings are accessed in random order, which hardware prefetchers cannot predict: without this, skip-gram
# spends more than half of its time waiting for memory. Prefetching for writing requests exclusive ownership of the
# cache lines at once, not only at the first write.
prefetch = prefetcher(level=0, write=True)
# For kernels that do little else than move rows: the first level has few buffers for lines to wait for, so that random
# rows arrive at half the rate.
prefetch_l2 = prefetcher(level=1, write=False)
