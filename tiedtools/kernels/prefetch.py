"""A hint to the processor: this row will be wanted soon."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.arrays import CACHE_LINE


@intrinsic
def prefetch(typingctx, matrix, row):
    """Begin to load matrix[row] (2-D, an integer row) into the cache to change it, without waiting for it.

    Rows of word vectors are read in random order, which no hardware prefetcher foresees: without this,
    skip-gram waits for memory more than half of its time. Asked for as a row to change, it is taken from the cache of
    another core at once, not when it is written.
    """

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
            builder.call(hint, [address, i32(1), i32(3), i32(1)])
        return context.get_dummy_value()

    return types.void(matrix, types.intp), codegen
