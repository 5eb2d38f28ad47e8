"""Matrix products of any size by the tiles of tiles.py.

Tiles are TALL rows high where that divides what is left of the rows, before that 2 or 3: so many rows are met by each
number of the inner matrix. This is taken in panels that fit the second-level cache, so that a tile's numbers come from
there; what is large is read along its rows. Row lengths of C and B are multiples of a vector register's
(`buffers.stride`), and the strides of B better no multiple of many cache lines, since its panels would then fight for
few places in the cache.
"""

from tiedtools.kernels.barrier import partition
from tiedtools.kernels.jit import jit
from tiedtools.kernels.tiles import ROWS, TALL, VECTOR, WIDE, combine_tiles, strided

DEPTH = 352  # rows of a panel of B: few enough for the second-level cache, with a stripe of C, which is summed up there
SUMS = 8  # of a single row at once, since each waits for the one before
some_rows = combine_tiles([(rows, width) for rows in (2, 3, TALL) for width in range(1, WIDE + 1)])
one_row = combine_tiles([(1, width) for width in range(1, SUMS + 1)])


@jit
def product(C, G, B, accumulate):
    """C = G B, or C += G B where `accumulate`.

    C  [M, N]        G  [M, K], of any strides: a transposed view will do        B  [K, N]        N as filled up
    """
    tiled(strided(C), strided(G), strided(B), accumulate)


@jit
def part(worker, C):
    """(begin, end, first, last): the rows and columns of C that this thread computes.

    Rows of its own; where they are so few that one thread would have them all, columns.
    """
    M, N = C.shape
    if M <= ROWS:
        first, last = partition(worker, N, VECTOR // C.itemsize)
        return 0, M, first, last
    begin, end = partition(worker, M, ROWS)
    return begin, end, 0, N


@jit
def tiled(C, G, B, accumulate):
    M, K = G.shape
    lanes = VECTOR // C.itemsize
    vectors = C.shape[1] // lanes
    stripes = -(-vectors // WIDE)
    if M == 1:
        row(C, G, B, vectors, accumulate)
        return
    for stripe in range(stripes):
        # As even as can be: a narrow tile would wait for its sums.
        first, last = vectors * stripe // stripes, vectors * (stripe + 1) // stripes
        for k in range(0, K, DEPTH):
            terms, add = min(DEPTH, K - k), accumulate or k > 0
            i = 0
            while i < M:
                over = (M - i) % TALL
                rows = TALL if over == 0 else 3 if over % 2 else 2
                some_rows(C, G, B, i, first * lanes, i, k, k, terms, add, rows, last - first)
                i += rows


@jit
def row(C, G, B, vectors, accumulate):
    """The product of a single row."""
    lanes, left = VECTOR // C.itemsize, vectors
    while left > 0:
        width = left if left <= SUMS else min(SUMS, (left + 1) // 2)
        one_row(C, G, B, 0, (vectors - left) * lanes, 0, 0, 0, G.shape[1], accumulate, 1, width)
        left -= width
