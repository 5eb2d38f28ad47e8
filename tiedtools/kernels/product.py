"""Matrix products of any size by the tiles of tiles.py.

Tiles are TALL rows high where that divides what is left of the rows, before that 2 or 3: so many rows are met by each
number of the inner matrix. This is taken in panels that fit the second-level cache, so that a tile's numbers come from
there; what is large is read along its rows. Row lengths of C and B are multiples of a vector register's
(`buffers.stride`), and the strides of B better no multiple of many cache lines, since its panels would then fight for
few places in the cache.
"""

from tiedtools.kernels.jit import jit
from tiedtools.kernels.tiles import TALL, VECTOR, WIDE, combine_tile, strided

DEPTH = 352  # rows of a panel of B: few enough for the second-level cache, and C is gone through once for so many
tall_1, tall_2, tall_3, tall_wide = (combine_tile(k, TALL) for k in (1, 2, 3, WIDE))
three_1, three_2, three_3, three_wide = (combine_tile(k, 3) for k in (1, 2, 3, WIDE))
two_1, two_2, two_3, two_wide = (combine_tile(k, 2) for k in (1, 2, 3, WIDE))
row_1, row_2, row_3, row_4, row_5, row_6, row_7, row_8 = (combine_tile(k, 1) for k in range(1, 9))


@jit
def product(C, G, B, keep):
    """C = G B, or C += G B where `keep`.

    C  [M, N]        G  [M, K], of any strides: a transposed view will do        B  [K, N]        N as filled up
    """
    tiled(strided(C), strided(G), strided(B), keep)


@jit
def tiled(C, G, B, keep):
    M, K = G.shape
    lanes = VECTOR // C.itemsize
    vectors = C.shape[1] // lanes
    stripes = -(-vectors // WIDE)
    if M == 1:
        row(C, G, B, vectors, keep)
        return
    for k in range(0, K, DEPTH):
        terms, add = min(DEPTH, K - k), keep or k > 0
        for stripe in range(stripes):
            # As even as can be: a narrow tile would wait for its sums.
            first, last = vectors * stripe // stripes, vectors * (stripe + 1) // stripes
            i = 0
            while i < M:
                over = (M - i) % TALL
                rows = TALL if over == 0 else 3 if over % 2 else 2
                tile(C, G, B, i, first * lanes, k, terms, add, rows, last - first)
                i += rows


@jit
def tile(C, G, B, i, d, k, terms, keep, rows, width):
    """C[i : i + rows] in `width` registers from column d on."""
    if rows == TALL:
        if width == WIDE:
            tall_wide(C, G, B, i, d, i, k, k, terms, keep)
        elif width == 3:
            tall_3(C, G, B, i, d, i, k, k, terms, keep)
        elif width == 2:
            tall_2(C, G, B, i, d, i, k, k, terms, keep)
        else:
            tall_1(C, G, B, i, d, i, k, k, terms, keep)
    elif rows == 3:
        if width == WIDE:
            three_wide(C, G, B, i, d, i, k, k, terms, keep)
        elif width == 3:
            three_3(C, G, B, i, d, i, k, k, terms, keep)
        elif width == 2:
            three_2(C, G, B, i, d, i, k, k, terms, keep)
        else:
            three_1(C, G, B, i, d, i, k, k, terms, keep)
    elif width == WIDE:
        two_wide(C, G, B, i, d, i, k, k, terms, keep)
    elif width == 3:
        two_3(C, G, B, i, d, i, k, k, terms, keep)
    elif width == 2:
        two_2(C, G, B, i, d, i, k, k, terms, keep)
    else:
        two_1(C, G, B, i, d, i, k, k, terms, keep)


@jit
def row(C, G, B, vectors, keep):
    """The product of a single row, with as many sums at once as can be, since each waits for the one before."""
    lanes, terms = VECTOR // C.itemsize, G.shape[1]
    left = vectors
    while left > 0:
        d = (vectors - left) * lanes
        width = left if left <= 8 else min(8, (left + 1) // 2)
        if width == 8:
            row_8(C, G, B, 0, d, 0, 0, 0, terms, keep)
        elif width == 7:
            row_7(C, G, B, 0, d, 0, 0, 0, terms, keep)
        elif width == 6:
            row_6(C, G, B, 0, d, 0, 0, 0, terms, keep)
        elif width == 5:
            row_5(C, G, B, 0, d, 0, 0, 0, terms, keep)
        elif width == 4:
            row_4(C, G, B, 0, d, 0, 0, 0, terms, keep)
        elif width == 3:
            row_3(C, G, B, 0, d, 0, 0, 0, terms, keep)
        elif width == 2:
            row_2(C, G, B, 0, d, 0, 0, 0, terms, keep)
        else:
            row_1(C, G, B, 0, d, 0, 0, 0, terms, keep)
        left -= width
