"""Microbenchmarks of the two operations that dominate training: tiled matrix products and row updates."""

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch
from tiedtools.kernels.base.product import product
from tiedtools.kernels.base.tiles import EVERYTHING, combine, dots, terms

GROUP = 16  # rows per group; one group is prefetched while another is processed


@jit
def multiply(S, C, G, A, B, none, repeats, way):
    """Compute a matrix product `repeats` times. way 0: S = A B^T by `dots`; 1: C = G B by `combine`; 2: by `product`.

    2 * rows * cols * P operations per product; 4 * with bfloat16 pairs

    S, G  [rows, cols]        C, A  [rows, P]        B  [cols, P]        none  int32 [0]
    """
    rows, cols = S.shape
    for _ in range(repeats):
        if way == 2:
            product(C, G, B, False)
        elif way:
            combine(C, G, B, 1, rows, cols * terms(G), EVERYTHING, False, (A, none))
        else:
            dots(S, A, B, 1, rows, cols, EVERYTHING, (A, none))


@jit
def move(matrix, buffer, words):
    """Gather rows matrix[words] into a buffer and add them back, GROUP at a time, while prefetching the next group.

    matrix  [rows, P]        buffer  [GROUP, P]        words  int32, a multiple of GROUP
    """
    for k in range(0, words.size, GROUP):
        for i in range(GROUP):
            copy, row = buffer[i], matrix[words[k + i]]
            for d in range(row.size):
                copy[d] = row[d]
            if k + i + GROUP < words.size:
                prefetch(matrix, words[k + i + GROUP])
        for i in range(GROUP):
            copy, row = buffer[i], matrix[words[k + i]]
            for d in range(row.size):
                row[d] += copy[d]
