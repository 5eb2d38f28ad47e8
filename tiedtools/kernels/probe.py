"""What the machine can do of the two things that training does: products of tiles, and moving rows."""

from tiedtools.kernels.jit import jit
from tiedtools.kernels.prefetch import prefetch
from tiedtools.kernels.product import product
from tiedtools.kernels.tiles import combine, dots

TOGETHER = 16  # rows that are fetched while as many others are moved


@jit
def multiply(S, C, G, A, B, none, repeats, way):
    """`repeats` times, by `way`, S = A B^T, C = G B, or that as matrices of any size are multiplied.

    2 * rows * cols * P operations each, of pairs 4

    S, G  [rows, cols]        C, A  [rows, P]        B  [cols, P]        none  int32 [0]
    """
    rows, cols = S.shape
    for _ in range(repeats):
        if way == 2:
            product(C, G, B, False)
        elif way:
            combine(C, G, B, 1, rows, cols, cols, 0, False, (A, none))
        else:
            dots(S, A, B, 1, rows, cols, cols, 0, (A, none))


@jit
def move(matrix, buffer, words):
    """Gather rows matrix[words] into a buffer and add the buffer to them, TOGETHER at a time, the next being fetched.

    matrix  [rows, P]        buffer  [TOGETHER, P]        words  int32, a multiple of TOGETHER
    """
    for k in range(0, words.size, TOGETHER):
        for i in range(TOGETHER):
            copy, row = buffer[i], matrix[words[k + i]]
            for d in range(row.size):
                copy[d] = row[d]
            if k + i + TOGETHER < words.size:
                prefetch(matrix, words[k + i + TOGETHER])
        for i in range(TOGETHER):
            copy, row = buffer[i], matrix[words[k + i]]
            for d in range(row.size):
                row[d] += copy[d]
