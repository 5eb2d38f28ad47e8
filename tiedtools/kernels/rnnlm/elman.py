"""The recurrent layer of Elman 1990, h_t = sigmoid(E[w_t] + h_{t-1} W), and backpropagation through time.

Rows of H are the states of consecutive steps; words[r] is the input word of the state in row r, -1 for a word without
an embedding. A is H times the learning rate.
"""

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import product
from tiedtools.kernels.base.scalar import sigmoid
from tiedtools.kernels.base.tiles import row_dots


@jit
def forward(H, words, emb, hid, first, T):
    """Compute rows first .. first + T - 1 of H from row first - 1.    H  [rows, P]    emb  [V, P]    hid  [M, P]"""
    M = hid.shape[0]
    for r in range(first, first + T):
        if words[r] < 0:
            H[r] = 0
        else:
            copy(H[r], emb[words[r]])
        # Alternate directions: hid exceeds the L1 cache, but the rows of it that were read last are still there.
        if r % 2:
            product(H[r : r + 1], H[r - 1 : r, :M], hid, True)
        else:
            product(H[r : r + 1], H[r - 1 : r, M - 1 :: -1], hid[::-1], True)
        activate(H[r], M)


@jit
def copy(target, source):
    """target[:] = source, for one-dimensional arrays."""
    for j in range(target.size):
        target[j] = source[j]


@jit
def scale(row, n, factor):
    """row[:n] *= factor."""
    for j in range(n):
        row[j] *= factor


@jit(relaxed=True)
def activate(h, M):
    """h[:M] = sigmoid(h[:M])."""
    for j in range(M):
        h[j] = sigmoid(h[j])


@jit
def backward(space, emb, hid, start, first, T, reach, cutoff, lr):
    """Backpropagate the errors G of T states, rows `first` .. of H, through `reach` earlier states; update all weights.

    space  see rnnlmtypes.py; input_errors is set to the errors of the states before the sigmoid
    start  [M], the initial state, if it is learned; otherwise [0]
    Errors that pass through hid are clipped to +-cutoff.
    """
    H, A, G, s, words, M = space.H, space.A, space.G, space.scores, space.words, hid.shape[0]
    errors, low = space.input_errors, first - reach
    s[0] = 0
    for r in range(first + T - 1, low - 1, -1):
        if r >= first:
            for j in range(M):
                s[0, j] += G[r - first, j]
        to_input(errors[r], s[0], H[r], M)
        if r > low or start.size:
            row_dots(s, errors[r : r + 1], hid, 0, M, r % 2 == 0)
            limit(s[0], M, cutoff)
    for j in range(min(M, start.size)):
        start[j] += lr * s[0, j]
    product(hid, A[low - 1 : first + T - 1, :M].T, errors[low : first + T], True)
    for r in range(low, first + T):
        if words[r] >= 0:
            add(emb[words[r]], errors[r], lr)


@jit
def to_input(r, error, h, M):
    """r = error * h * (1 - h): the error before the sigmoid."""
    for j in range(M):
        r[j] = error[j] * (h[j] - h[j] * h[j])


@jit
def limit(row, n, cutoff):
    """Clip row[:n] to +-cutoff."""
    for j in range(n):
        row[j] = min(max(row[j], -cutoff), cutoff)


@jit(relaxed=True)
def add(row, error, lr):
    """row += lr * error."""
    for j in range(row.size):
        row[j] += lr * error[j]
