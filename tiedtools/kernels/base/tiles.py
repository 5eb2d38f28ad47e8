"""Register-tiled products of small matrices that fit the cache.

A tile is ROWS x COLS sums held in vector registers throughout the inner loop, so that each loaded element is used
several times (register blocking: Goto and van de Geijn 2008). The matrices are too small for BLAS calls to pay off.
The tiles are written in LLVM IR, because compilers do not generate this code from loops.

Products are computed in `groups`, as a block diagonal: group r multiplies `rows` rows of one matrix and `cols` of the
other. A `band`, int32 [tiles of ROWS rows, 2], limits each tile to its nonzero terms, from the first up to the second
number, as for words and their context windows; EVERYTHING is the full product.

Every product takes rows to prefetch, `ahead`, a pair (matrix, int32 words). One row is prefetched per tile, so that
memory latency overlaps with computation and requests do not queue.

Row lengths are multiples of the vector length (arrays.aligned); rows and cols are multiples of ROWS.

If both operands are uint32, each element is a pair of bfloat16 (see bfloat16.py), whose products are accumulated in
float32: twice as many operations per instruction on CPUs with native bfloat16 support (AVX512_BF16). Sizes count the
terms, not the pairs, and the numbers of a band are even.
"""

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tiedtools.kernels.base.features import DOT_BFLOAT16, FEATURES
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch


def vector_shape(features):
    """Return (bytes per vector register, columns of a dot-product tile, vectors per row and rows of the largest tile).

    Chosen so that sums and operands fit the 32 registers of AVX-512, 16 of AVX2 and SSE2, and 32 elsewhere (128-bit).
    """
    if features.get("avx512f"):
        return 64, 4, 4, 5
    if features.get("avx2"):
        return 32, 2, 3, 4
    if features.get("sse2"):
        return 16, 2, 3, 4
    return 16, 4, 4, 5


VECTOR, COLS, WIDE, TALL = vector_shape(FEATURES)
ROWS = 4
MANY = 16  # exceeds the width of any tile in vectors
EVERYTHING = np.zeros((0, 2), np.int32)
I32, I64 = ir.IntType(32), ir.IntType(64)


class Emitter:
    """Emitter of LLVM vector instructions for arrays of one floating-point type."""

    def __init__(self, context, builder, signature, args):
        self.builder = builder
        arrays = [(t, a) for t, a in zip(signature.args, args) if isinstance(t, types.Array)]
        self.arrays = [context.make_array(t)(context, builder, a) for t, a in arrays]
        dtype = signature.args[0].dtype
        self.bytes = dtype.bitwidth // 8
        self.lanes = VECTOR // self.bytes
        self.scalar = context.get_value_type(dtype)
        self.vector = ir.VectorType(self.scalar, self.lanes)
        self.zero = ir.Constant(self.vector, [0.0] * self.lanes)
        self.any = ir.Constant(self.vector, ir.Undefined)
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fma.v{self.lanes}f{dtype.bitwidth}"
        self.fma_function = cgutils.get_or_insert_function(builder.module, kind, name)
        self.bf16 = isinstance(signature.args[1].dtype, types.Integer)

    def strides(self, array):
        return cgutils.unpack_tuple(self.builder, self.arrays[array].strides)

    def address(self, array, i, plus=0, j=None):
        """Return the address of element [i + plus, j] as an integer."""
        b = self.builder
        strides = self.strides(array)
        start = b.ptrtoint(self.arrays[array].data, I64)
        start = b.add(start, b.mul(b.add(i, I64(plus)), strides[0]))
        return start if j is None else b.add(start, b.mul(j, strides[1]))

    def pointer(self, address, offset, kind):
        b = self.builder
        return b.inttoptr(b.add(address, offset), kind.as_pointer())

    def load(self, address, offset, kind=None):
        return self.builder.load(self.pointer(address, offset, kind or self.vector), align=self.bytes)

    def store(self, value, address, offset):
        self.builder.store(value, self.pointer(address, offset, value.type), align=self.bytes)

    def sums(self, count):
        """Allocate `count` zero vectors, which LLVM promotes to registers."""
        sums = [cgutils.alloca_once(self.builder, self.vector) for _ in range(count)]
        for s in sums:
            self.builder.store(self.zero, s)
        return sums

    def fma(self, x, y, total):
        b = self.builder
        add = lambda x, y, so_far: b.call(self.fma_function, [x, y, so_far])
        if not self.bf16:
            result = add(x, y, b.load(total))
        elif DOT_BFLOAT16:
            # Inline assembly, because the signature of the LLVM intrinsic differs between versions.
            kind = ir.FunctionType(self.vector, [self.vector] * 3)
            dot = ir.InlineAsm(kind, "vdpbf16ps $2, $1, $0", "=v,v,v,0")
            result = b.call(dot, [x, y, b.load(total)])
        else:
            result, bits = b.load(total), ir.VectorType(I32, self.lanes)
            fill = lambda number: ir.Constant(bits, [number] * self.lanes)
            second, first = lambda pairs: b.and_(pairs, fill(0xFFFF0000)), lambda pairs: b.shl(pairs, fill(16))
            for half in second, first:
                operands = [b.bitcast(half(b.bitcast(pairs, bits)), self.vector) for pairs in (x, y)]
                result = add(*operands, result)
        b.store(result, total)

    def shuffle(self, x, y, lanes):
        return self.builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes)))

    def broadcast(self, scalar):
        first = self.builder.insert_element(self.any, scalar, I32(0))
        return self.shuffle(first, self.any, [0] * self.lanes)

    def horizontal(self, vectors):
        """Return one vector with the horizontal sums of `lanes` vectors, in order, by pairwise halving."""
        half = self.lanes // 2
        while half:
            low = [k for k in range(self.lanes) if k // half % 2 == 0]
            low += [k + self.lanes for k in low]
            high = [k + half for k in low]
            pairs = zip(vectors[::2], vectors[1::2])
            vectors = [self.builder.fadd(self.shuffle(x, y, low), self.shuffle(x, y, high)) for x, y in pairs]
            half //= 2
        return vectors[0]


def dot_tile_of(rows, cols):
    """Make an intrinsic for tiles of rows x cols dot products; one of rows * cols and `lanes` must divide the other."""

    @intrinsic
    def tile(typingctx, S, A, B, i, j, a, b):
        """S[i : i + rows, j : j + cols] = A[a : a + rows] B[b : b + cols]^T"""

        def codegen(context, builder, signature, args):
            e = Emitter(context, builder, signature, args)
            i, j, a, b = args[3:]
            rows_a = [e.address(1, a, k) for k in range(rows)]
            rows_b = [e.address(2, b, k) for k in range(cols)]
            sums = e.sums(rows * cols)
            length = builder.mul(cgutils.unpack_tuple(builder, e.arrays[1].shape)[1], I64(e.bytes))
            with cgutils.for_range_slice(builder, I64(0), length, I64(VECTOR), inc=True) as (offset, _):
                columns = [e.load(row, offset) for row in rows_b]
                for p, row in enumerate(rows_a):
                    x = e.load(row, offset)
                    for q, y in enumerate(columns):
                        e.fma(x, y, sums[p * cols + q])
            values = [builder.load(s) for s in sums]
            values *= max(1, e.lanes // len(values))
            sums = [e.horizontal(values[k : k + e.lanes]) for k in range(0, len(values), e.lanes)]
            for p in range(rows):
                vector, lane = divmod(p * cols, e.lanes)
                if e.lanes >= cols:
                    e.store(e.shuffle(sums[vector], e.any, range(lane, lane + cols)), e.address(0, i, p, j), I64(0))
                else:
                    for q in range(0, cols, e.lanes):
                        e.store(sums[vector + q // e.lanes], e.address(0, i, p, j), I64(q * e.bytes))
            return context.get_dummy_value()

        return types.void(S, A, B, *[types.intp] * 4), codegen

    return tile


DOTS, FEW = VECTOR // 4, VECTOR // 16  # columns of single-row tiles
dot_tile, dot_row, dot_few = dot_tile_of(ROWS, COLS), dot_tile_of(1, DOTS), dot_tile_of(1, FEW)


def each_case(builder, value, numbers):
    """Yield each of `numbers`, with the builder in the branch that runs if `value` equals it; for others, none runs."""
    done = builder.append_basic_block("done")
    choice = builder.switch(value, done)
    for number in numbers:
        chosen = builder.append_basic_block("case")
        choice.add_case(I64(number), chosen)
        with builder.goto_block(chosen):
            yield number
            builder.branch(done)
    builder.position_at_end(done)


def combine_tiles(shapes):
    """Make an intrinsic for tiles of `rows` rows and `width` vectors per row, for the (rows, width) in `shapes`.

    With other shapes it does nothing.
    """

    @intrinsic
    def tile(typingctx, C, G, B, c, d, g, k, b, terms, accumulate, rows, width):
        """C[c : c + rows, d:] = G[g : g + rows, k : k + terms] B[b : b + terms, d:], or += if `accumulate`"""

        def codegen(context, builder, signature, args):
            e = Emitter(context, builder, signature, args)
            shape = builder.add(builder.mul(args[-2], I64(MANY)), args[-1])
            for number in each_case(builder, shape, [rows * MANY + width for rows, width in shapes]):
                combine_tile(e, *divmod(number, MANY), *args[3:-2])
            return context.get_dummy_value()

        return types.void(C, G, B, *[types.intp] * 6, types.boolean, types.intp, types.intp), codegen

    return tile


def combine_tile(e, rows, width, c, d, g, k, b, terms, accumulate):
    """Emit the instructions of one tile of `combine_tiles`."""
    builder, columns = e.builder, range(width)
    rows_c = [e.address(0, c, p, d) for p in range(rows)]
    rows_g = [e.address(1, g, p, k) for p in range(rows)]
    first_b = e.address(2, b, 0, d)
    sums = e.sums(rows * width)
    with builder.if_then(accumulate):
        for p, row in enumerate(rows_c):
            for q in columns:
                builder.store(e.load(row, I64(q * VECTOR)), sums[p * width + q])
    with cgutils.for_range(builder, terms) as loop:
        row = builder.add(first_b, builder.mul(loop.index, e.strides(2)[0]))
        loaded = [e.load(row, I64(q * VECTOR)) for q in columns]
        offset = builder.mul(loop.index, e.strides(1)[1])
        for p in range(rows):
            x = e.broadcast(e.load(rows_g[p], offset, e.scalar))
            for q in columns:
                e.fma(x, loaded[q], sums[p * width + q])
    for p, row in enumerate(rows_c):
        for q in columns:
            e.store(builder.load(sums[p * width + q]), row, I64(q * VECTOR))


four_rows = combine_tiles([(ROWS, width) for width in range(1, WIDE + 1)])


@intrinsic
def transpose_tile(typingctx, At, A, i, j):
    """At[j : j + lanes, i : i + lanes] = A[i : i + lanes, j : j + lanes]^T, with `lanes` elements per vector."""

    def codegen(context, builder, signature, args):
        e = Emitter(context, builder, signature, args)
        i, j = args[2:]
        lanes = range(e.lanes)
        rows = [e.load(e.address(1, i, k, j), I64(0)) for k in lanes]
        half = 1
        while half < e.lanes:  # in each 2 half x 2 half block, swap upper right and lower left
            low = [k + e.lanes - half if k & half else k for k in lanes]
            high = [k + e.lanes if k & half else k + half for k in lanes]
            for k in lanes:
                if not k & half:
                    x, y = rows[k], rows[k + half]
                    rows[k], rows[k + half] = e.shuffle(x, y, low), e.shuffle(x, y, high)
            half *= 2
        for k in lanes:
            e.store(rows[k], e.address(0, j, k, i), I64(0))
        return context.get_dummy_value()

    return types.void(At, A, types.intp, types.intp), codegen


@intrinsic
def strided(typingctx, array):
    """Return the array typed as having arbitrary strides, so that functions are compiled once for all layouts."""
    return array.copy(layout="A")(array), lambda context, builder, signature, args: args[0]


@intrinsic
def flat(typingctx, array):
    """Return a contiguous array as one-dimensional: reshape() takes a fraction of a second to compile."""
    kind = array.copy(ndim=1)

    def codegen(context, builder, signature, args):
        source, view = (context.make_array(t) for t in (array, kind))
        source, view = source(context, builder, args[0]), view(context, builder)
        context.populate_array(
            view, data=source.data, shape=[source.nitems], strides=[source.itemsize], itemsize=source.itemsize,
            meminfo=source.meminfo, parent=source.parent,
        )  # fmt: skip
        return view._getvalue()

    return kind(array), codegen


@intrinsic
def terms(typingctx, G):
    """Return how many terms of a sum an element of the operand G holds: 2 if it is a pair of bfloat16."""
    count = I64(2 if isinstance(G.dtype, types.Integer) else 1)
    return types.intp(G), lambda context, builder, signature, args: count


@jit
def dots(S, A, B, groups, rows, cols, band, ahead):
    """S = A B^T, by groups; with a band, also the elements beside it in its tiles.

    S  [groups * rows, cols]        A  [groups * rows, P]        B  [groups * cols, P]        band  of the rows of S
    """
    tile = 0
    for r in range(groups):
        for i in range(0, rows, ROWS):
            first, stop = limits(band, (r * rows + i) // ROWS, cols)
            for j in range(first // COLS * COLS, stop, COLS):
                tile = fetch(ahead, tile)
                dot_tile(S, A, B, r * rows + i, j, r * rows + i, r * cols + j)


@jit
def row_dots(s, x, B, first, n, down=False):
    """s[j] = x . B[first + j] for j < n, in descending order if `down`; up to DOTS - 1 more elements may be written.

    s  [1, n + DOTS - 1]        x  [1, P]        B  [rows, >= P], with DOTS - 1 readable rows after the last
    """
    tall = (n + DOTS // 2) // DOTS * DOTS
    for k in range(0, tall, DOTS):
        j = tall - DOTS - k if down else k
        dot_row(s, x, B, 0, j, 0, first + j)
    for j in range(tall, n, FEW):
        dot_few(s, x, B, 0, j, 0, first + j)


@jit
def combine(C, G, B, groups, rows, cols, band, accumulate, ahead):
    """C = G B, or C += G B if `accumulate`, by groups.

    C  [groups * rows, P]        G  [groups * rows, cols]        B  [groups * cols, P]        band  of the rows of G
    """
    stripes(C, strided(G), B, groups, rows, cols, (rows, 0), band, accumulate, ahead)


@jit
def combine_transposed(C, Gt, A, groups, rows, cols, band, accumulate, ahead):
    """C = G^T A, or C += G^T A if `accumulate`, by groups.

    C  [groups * cols, P]        Gt  [cols, groups * rows], a transposed view of G        A  [groups * rows, P]
    band  of the columns of G, group after group
    """
    stripes(C, strided(Gt), A, groups, cols, rows, (0, rows), band, accumulate, ahead)


@jit
def stripes(C, G, B, groups, rows, most, step, band, accumulate, ahead):
    """C = G B or C += G B, by groups of `rows` rows of C and `most` rows of B, in stripes as wide as a tile.

    step  distance of two groups in G, in rows and columns
    """
    tile, each = 0, terms(G)
    vectors = C.shape[1] * C.itemsize // VECTOR
    for r in range(groups):
        for first in range(0, vectors, WIDE):
            d, width = first * VECTOR // C.itemsize, min(WIDE, vectors - first)
            for i in range(0, rows, ROWS):
                tile = fetch(ahead, tile)
                begin, end = limits(band, (r * rows + i) // ROWS, most)
                g, k, b = r * step[0] + i, (r * step[1] + begin) // each, (r * most + begin) // each
                four_rows(C, G, B, r * rows + i, d, g, k, b, (end - begin) // each, accumulate, ROWS, width)


@jit
def limits(band, tile, most):
    """Return the first term and the end of the terms of a tile."""
    return (band[tile, 0], band[tile, 1]) if band.size else (0, most)


@jit
def fetch(ahead, tile):
    """Prefetch the row scheduled for this tile; returns the number of the next tile."""
    matrix, words = ahead
    if tile < words.size:
        prefetch(matrix, words[tile])
    return tile + 1
