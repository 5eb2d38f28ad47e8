"""Row operations in whole vector registers, for rows too short for the loops that the compiler vectorizes.

Rows are padded to whole cache lines, and the operations include the padding. All rows have the length of the first.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.tiles import I32, I64, VECTOR, Emitter


def elementwise(compute):
    """Return an intrinsic (rows, number, j) that applies `compute` to elements j, j + 1, ... of a tuple of rows.

    compute  function of an Emitter, a vector of each row, and a vector of `number` -> new vectors of the first rows
    """

    def of_vectors(typingctx, rows, number, j):
        def codegen(context, builder, signature, args):
            e = Emitter(context, builder, types.void(*rows), cgutils.unpack_tuple(builder, args[0]))
            at = [e.address(row, args[2]) for row in range(len(rows))]
            vector = lambda row: ir.VectorType(context.get_value_type(row.dtype), e.lanes)
            vectors = [e.load(address, I64(0), vector(row)) for address, row in zip(at, rows)]
            lanes = ir.VectorType(I32, e.lanes)
            first = builder.insert_element(ir.Constant(lanes, ir.Undefined), builder.trunc(args[1], I32), I32(0))
            for result, address in zip(compute(e, *vectors, e.shuffle(first, first, [0] * e.lanes)), at):
                e.store(result, address, I64(0))
            return context.get_dummy_value()

        return types.void(rows, types.intp, types.intp), codegen

    return intrinsic(of_vectors)


def greater(e, top, place, total, p):
    nan = e.builder.fcmp_unordered("uno", total, total)
    better = e.builder.or_(e.builder.fcmp_ordered(">", total, top), nan)
    return e.builder.select(better, total, top), e.builder.select(better, p, place)


def equal(e, chosen, d, best, p):
    return [e.builder.select(e.builder.icmp_signed("==", best, p), d, e.zero)]


sum_of_two = elementwise(lambda e, y, x, _: [e.builder.fadd(y, x)])
sum_of_three = elementwise(lambda e, y, a, b, _: [e.builder.fadd(y, e.builder.fadd(a, b))])
maximum = elementwise(greater)
selected = elementwise(equal)


@jit
def add(y, x):
    """y += x."""
    for j in range(0, y.size, VECTOR // y.itemsize):
        sum_of_two((y, x), 0, j)


@jit
def add_two(y, a, b):
    """y += a + b, with fewer accesses to y than by two calls of `add`."""
    for j in range(0, y.size, VECTOR // y.itemsize):
        sum_of_three((y, a, b), 0, j)


@jit
def improve(top, place, total, p):
    """top = max(top, total), and place = p where total is greater; NaN stays.        place  int32"""
    for j in range(0, top.size, VECTOR // top.itemsize):
        maximum((top, place, total), p, j)


@jit
def choose(chosen, d, best, p):
    """chosen = d where best = p, and 0 elsewhere.        best  int32"""
    for j in range(0, chosen.size, VECTOR // chosen.itemsize):
        selected((chosen, d, best), p, j)
