"""Matrix products of any size by the tiles of tiles.py.

The inner matrix is taken in panels that fit the second-level cache, so that a tile's numbers come from there; what is
large is read along its rows. Row lengths of C and B are multiples of a vector register's (`buffers.stride`), and the
strides of B better no multiple of many cache lines, since its panels would then fight for few places in the cache.
"""

from numba.extending import intrinsic

from tiedtools.kernels.jit import jit
from tiedtools.kernels.tiles import ROWS, VECTOR, combine_1, combine_3, combine_4, combine_5, combine_tile

DEPTH = 352  # rows of a panel of B: few enough for the second-level cache, and C is gone through once for so many
row_1, row_2, row_3, row_4, row_5, row_6, row_7, row_8 = (combine_tile(k, 1) for k in range(1, 9))


@jit
def product(C, G, B, keep):
    """C = G B, or C += G B where `keep`.

    C  [M, N]        G  [M, K], of any strides: a transposed view will do        B  [K, N]        N as filled up
    """
    tiled(strided(C), strided(G), strided(B), keep)


@intrinsic
def strided(typingctx, array):
    """The array as one of any strides, so that there is one compiled function for all."""
    return array.copy(layout="A")(array), lambda context, builder, signature, args: args[0]


@jit
def tiled(C, G, B, keep):
    M, K = G.shape
    lanes = VECTOR // C.itemsize
    vectors = C.shape[1] // lanes
    tall = M // ROWS * ROWS
    for k in range(0, K, DEPTH):
        terms = min(DEPTH, K - k)
        add = keep or k > 0
        left = vectors
        while left > 0:
            d = (vectors - left) * lanes
            # Wide tiles, and no narrow one beside them if it can be helped.
            if left == 5 or left >= 9 and left % 4 == 1:
                width = 5
                for i in range(0, tall, ROWS):
                    combine_5(C, G, B, i, d, i, k, k, terms, add)
            elif left == 3 or left == 6:
                width = 3
                for i in range(0, tall, ROWS):
                    combine_3(C, G, B, i, d, i, k, k, terms, add)
            elif left >= 4:
                width = 4
                for i in range(0, tall, ROWS):
                    combine_4(C, G, B, i, d, i, k, k, terms, add)
            else:
                width = 1
                for i in range(0, tall, ROWS):
                    combine_1(C, G, B, i, d, i, k, k, terms, add)
            left -= width
        for i in range(tall, M):
            row(C, G, B, i, k, terms, vectors, add)


@jit
def row(C, G, B, i, k, terms, vectors, keep):
    """Row i of the product, with as many sums at once as can be, since each waits for the one before."""
    lanes = VECTOR // C.itemsize
    left = vectors
    while left > 0:
        d = (vectors - left) * lanes
        width = left if left <= 8 else min(8, (left + 1) // 2)
        if width == 8:
            row_8(C, G, B, i, d, i, k, k, terms, keep)
        elif width == 7:
            row_7(C, G, B, i, d, i, k, k, terms, keep)
        elif width == 6:
            row_6(C, G, B, i, d, i, k, k, terms, keep)
        elif width == 5:
            row_5(C, G, B, i, d, i, k, k, terms, keep)
        elif width == 4:
            row_4(C, G, B, i, d, i, k, k, terms, keep)
        elif width == 3:
            row_3(C, G, B, i, d, i, k, k, terms, keep)
        elif width == 2:
            row_2(C, G, B, i, d, i, k, k, terms, keep)
        else:
            row_1(C, G, B, i, d, i, k, k, terms, keep)
        left -= width
