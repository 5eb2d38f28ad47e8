"""Matrix products of any size by the tiles of tiles.py.

The inner matrix is taken in panels that fit the second-level cache, so that a tile's numbers come from there; what is
large is read along its rows. Row lengths of C and B are multiples of a vector register's (`buffers.stride`), and the
strides of B better no multiple of many cache lines, since its panels would then fight for few places in the cache.
"""

from numba.extending import intrinsic

from tiedtools.kernels.jit import jit
from tiedtools.kernels.tiles import ROWS, VECTOR, combine_1, combine_3, combine_4, combine_5, combine_tile

DEPTH = 352  # rows of a panel of B: few enough for the second-level cache, and C is gone through once for so many
row_1, row_4 = (combine_tile(k, 1) for k in (1, 4))


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
            vector = 0
            while vector + 4 <= vectors:
                row_4(C, G, B, i, vector * lanes, i, k, k, terms, add)
                vector += 4
            while vector < vectors:
                row_1(C, G, B, i, vector * lanes, i, k, k, terms, add)
                vector += 1
