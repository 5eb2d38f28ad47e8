"""Composition of word vectors from rows of a table: sums, and the maximum of sums over windows (convolution)."""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.bfloat16 import contiguous
from tiedtools.kernels.base.elementwise import LINE, tanh_gradient
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import tanh
from tiedtools.kernels.base.tiles import I32, I64, Emitter


def elementwise(compute):
    """Return an intrinsic that applies `compute` to all elements of its arguments, some rows and perhaps an integer.

    compute  function of an Emitter and a vector of each argument -> new vectors of the first rows

    For rows too short for the loops that the compiler vectorizes. Rows are padded to whole cache lines, and operations
    include the padding; all rows have the length of the first.
    """

    def of_rows(typingctx, *args):
        rows = [kind for kind in args if isinstance(kind, types.Array)]

        def codegen(context, builder, signature, values):
            values = cgutils.unpack_tuple(builder, values[0])
            e = Emitter(context, builder, types.void(*rows), values)
            vectors = [ir.VectorType(context.get_value_type(row.dtype), e.lanes) for row in rows]
            lanes, numbers = ir.VectorType(I32, e.lanes), []
            for number in values[len(rows) :]:
                first = builder.insert_element(ir.Constant(lanes, ir.Undefined), builder.trunc(number, I32), I32(0))
                numbers.append(e.shuffle(first, first, [0] * e.lanes))
            size = cgutils.unpack_tuple(builder, e.arrays[0].shape)[0]
            with cgutils.for_range_slice(builder, I64(0), size, I64(e.lanes), inc=True) as (j, _):
                at = [e.address(row, j) for row in range(len(rows))]
                loaded = [e.load(address, I64(0), kind) for address, kind in zip(at, vectors)]
                for result, address in zip(compute(e, *loaded, *numbers), at):
                    e.store(result, address, I64(0))
            return context.get_dummy_value()

        return types.void(types.StarArgTuple.from_types(args)), codegen

    return intrinsic(of_rows)


def greater(e, top, place, total, p):
    nan = e.builder.fcmp_unordered("uno", total, total)
    better = e.builder.or_(e.builder.fcmp_ordered(">", total, top), nan)
    return e.builder.select(better, total, top), e.builder.select(better, p, place)


def equal(e, chosen, d, best, p):
    return [e.builder.select(e.builder.icmp_signed("==", best, p), d, e.zero)]


add = elementwise(lambda e, y, x: [e.builder.fadd(y, x)])  # y += x
# y += a + b, with fewer accesses to y than by two calls of `add`
add_two = elementwise(lambda e, y, a, b: [e.builder.fadd(y, e.builder.fadd(a, b))])
improve = elementwise(greater)  # top = max(top, total), and place = p, int32, where total is greater; NaN stays
choose = elementwise(equal)  # chosen = d where best, int32, is p, and 0 elsewhere


@jit
def sum_rows(worker, Y, T, rows):
    """Y[k] = sum of T[rows[k]].        Y  [N, m]        T  [R, m]        rows  int32 [N, K], -1 at the end: none"""
    begin, end = partition(worker, Y.shape[0])
    for k in range(begin, end):
        Y[k] = 0
        for row in rows[k]:
            if row < 0:
                break
            add(Y[k], T[row])


@jit
def add_to_summed(worker, dT, dY, rows, accumulate):
    """The gradient of `sum_rows`, added to dT if `accumulate`."""
    begin, end = partition(worker, dT.shape[1], LINE)
    if not accumulate:
        dT[:, begin:end] = 0
    for k in range(dY.shape[0]):
        for row in rows[k]:
            if row < 0:
                break
            add(dT[row, begin:end], dY[k, begin:end])


@jit
def convolve(worker, Y, best, scratch, T, b, codes, longest):
    """Y[k] = tanh(b + max_p sum_i T[i, codes[k, p + i]]): a convolution over characters, and its maximum.

    Y, best  [N, f], int32: the first position p of the maximum
    T        [width, C, f], the products of the characters with the weights of each position of the window; padded rows
    b        [f]        codes  int32 [N, L], -1 at the end: padding, which adds 0
    longest  length to which words are padded. All windows of only padding are equal, and only the first is computed
    scratch  [threads, 2, f] and int32 [threads, f], padded rows
    """
    begin, end = partition(worker, Y.shape[0])
    width, _, columns = T.shape
    sums, places = scratch
    top, total, place = sums[worker[0], 0, :columns], sums[worker[0], 1, :columns], places[worker[0], :columns]
    for k in range(begin, end):
        size = length(codes[k])
        top[:] = -np.inf
        place[:] = 0
        for p in range(min(size, longest - width) + 1):
            total[:] = 0
            count = min(width, size - p)
            for i in range(0, count - 1, 2):
                add_two(total, T[i, codes[k, p + i]], T[i + 1, codes[k, p + i + 1]])
            if count % 2:
                add(total, T[count - 1, codes[k, p + count - 1]])
            improve(top, place, total, p)
        finish(Y[k], best[k], top, place, b)


@jit
def length(codes):
    """Return the number of codes before the first -1."""
    size = 0
    while size < codes.size and codes[size] >= 0:
        size += 1
    return size


@jit
def finish(y, best, top, place, b):
    """y = tanh(top + b), and best = place."""
    y, best, top, place, b = contiguous(y, best, top, place, b)
    for j in range(b.size):
        y[j] = tanh(top[j] + b[j])
        best[j] = place[j]


@jit
def convolve_back(worker, dT, db, scratch, dY, Y, best, codes, width, longest, accumulate_b):
    """The gradients of `convolve`: of T, as [width * C, f] in dT[0], and of b.

    dT       [threads, width * C + 1, f], padded rows: the sums over each thread's words; the last row is for b
    scratch  as in `convolve`
    """
    begin, end = partition(worker, Y.shape[0])
    part, last, columns = dT[worker[0]], dT.shape[1] - 1, dT.shape[2]
    sums, places = scratch
    d, chosen, place = sums[worker[0], 0, :columns], sums[worker[0], 1, :columns], places[worker[0], :columns]
    part[:] = 0
    d[:] = 0
    C = last // width
    for k in range(begin, end):
        size = length(codes[k])
        tanh_gradient(d, dY[k], Y[k])
        for j in range(best.shape[1]):
            place[j] = best[k, j]
        add(part[last], d)
        # A pass for each position, in whole vectors, is faster than one pass over columns, which differ in position.
        for p in range(min(size, longest - width) + 1):
            choose(chosen, d, place, p)
            for i in range(min(width, size - p)):
                add(part[i * C + codes[k, p + i]], chosen)
    # Add up the parts of all threads: each thread has some rows.
    sync(worker)
    begin, end = partition(worker, last + 1)
    for row in range(begin, end):
        for thread in range(1, worker[1]):
            add(dT[0, row], dT[thread, row])
    if end > last:
        for j in range(db.size):
            db[j] = dT[0, last, j] + (db[j] if accumulate_b else 0)
