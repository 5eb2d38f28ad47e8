"""Matrix products of any size, built from the tiles of tiles.py, and the preparation of their operands by a team.

Tiles have 2 or 3 rows until the number of remaining rows is a multiple of TALL, then TALL rows; each element of B that
is loaded is used for all rows of a tile. B is processed in panels that fit the L2 cache, and large matrices are read
along their rows. Row lengths of C and B are multiples of a vector register (`stride` in network/params.py). Strides of
B should not be multiples of a large power of two of cache lines, which causes cache conflicts.
"""

from numba.core import types
from numba.extending import intrinsic

from tiedtools.kernels.base import amx, shared
from tiedtools.kernels.base.barrier import partition
from tiedtools.kernels.base.bfloat16 import UNPACKED, retyped, right
from tiedtools.kernels.base.elementwise import transpose
from tiedtools.kernels.base.features import AMX
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.tiles import ROWS, TALL, VECTOR, WIDE, combine_tiles, strided

DEPTH = 352  # rows of a panel of B; the panel and the stripe of C it is accumulated into fit the L2 cache
SUMS = 8  # independent accumulators for a single row, to hide the latency of additions
some_rows = combine_tiles([(rows, width) for rows in (2, 3, TALL) for width in range(1, WIDE + 1)])
one_row = combine_tiles([(1, width) for width in range(1, SUMS + 1)])


@jit
def product(C, G, B, accumulate):
    """C = G B, or C += G B if `accumulate`.

    C  [M, N]        G  [M, K] with any strides, for example a transposed view        B  [K, N]        N padded
    """
    multiply(strided(C), strided(G), strided(B), accumulate)


@intrinsic
def multiply(typingctx, C, G, B, accumulate):
    """`product`, for arrays of any layout, so that it is compiled only once: by matrix units or in vector registers."""

    def codegen(context, builder, signature, args):
        if not isinstance(G.dtype, types.Integer):
            return shared.call(context, builder, tiled, signature.args, args)
        size = context.make_array(G)(context, builder, args[1]).itemsize
        with builder.if_else(builder.icmp_signed("==", size, size.type(UNPACKED))) as (unpacked, packed):
            with unpacked:
                operands = [retyped(context, builder, G, C, arg, C.dtype.bitwidth // 8) for arg in args[1:3]]
                shared.call(context, builder, tiled, (C, C, C, types.boolean), (args[0], *operands, args[3]))
            with packed:
                shared.call(context, builder, of_pairs, signature.args, args)
        return context.get_dummy_value()

    return types.void(C, G, B, types.boolean), codegen


@jit
def part(worker, C):
    """Return (begin, end, first, last), the rows and columns of C that this thread computes.

    Two threads split the rows or, if these are too few, the columns. More threads split both, so that the rows of G and
    the columns of B that a thread reads are as few as possible.
    """
    (M, N), (thread, threads, gate) = C.shape, worker
    across = threads if M <= ROWS else 1
    for k in range(2, threads + 1 if M > ROWS and threads > 2 else 0):
        if threads % k == 0 and M * k + N * threads // k < M * across + N * threads // across:
            across = k
    begin, end = partition((thread // across, threads // across, gate), M, ROWS)
    first, last = partition((thread % across, across, gate), N, VECTOR // C.itemsize)
    return begin, end, first, last


@jit
def pack_down(worker, packed, B):
    """Pack this thread's rows of B [K, N] down columns as bfloat16; see `right`. `sync` before a product reads them."""
    begin, end = partition(worker, B.shape[0], 2)
    right(packed, (begin // 2, 0), B[begin:end])


@jit
def transpose_down(worker, At, packed, A, n):
    """Transpose this thread's part of n columns of A [M, >= n] into At [n, M], and pack it like `pack_down`."""
    begin, end = partition(worker, n, 2)
    transpose(At[begin:end], A[:, begin:end])
    right(packed, (begin // 2, 0), At[begin:end])


@jit
def tiled(C, G, B, accumulate):
    """`product`, in vector registers."""
    M, K = G.shape
    lanes = VECTOR // C.itemsize
    vectors = C.shape[1] // lanes
    stripes = -(-vectors // WIDE)
    if M == 1:
        row(C, G, B, vectors, accumulate)
        return
    for stripe in range(stripes):
        # Split evenly: a narrow tile has too few accumulators to hide the latency of additions.
        first, last = vectors * stripe // stripes, vectors * (stripe + 1) // stripes
        for k in range(0, max(K, 1), DEPTH):
            terms, add = min(DEPTH, K - k), accumulate or k > 0
            i = 0
            while i < M:
                over = (M - i) % TALL
                rows = TALL if over == 0 else 3 if over % 2 else 2
                some_rows(C, G, B, i, first * lanes, i, k, k, terms, add, rows, last - first)
                i += rows


@jit
def row(C, G, B, vectors, accumulate):
    """`tiled`, for a single row of C."""
    lanes, left = VECTOR // C.itemsize, vectors
    while left > 0:
        width = left if left <= SUMS else min(SUMS, (left + 1) // 2)
        one_row(C, G, B, 0, (vectors - left) * lanes, 0, 0, 0, G.shape[1], accumulate, 1, width)
        left -= width


of_pairs = amx.product if AMX else tiled
