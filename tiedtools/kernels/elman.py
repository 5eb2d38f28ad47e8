"""The recurrent layer of Elman 1990: h_t = sigmoid(E[w_t] + h_{t-1} W), forward and back through time.

Rows of H are the states of consecutive steps; words[r] is what the state of row r has read, -1 for a word that has no
vector. A is H times the learning rate.
"""

from tiedtools.kernels.jit import jit
from tiedtools.kernels.product import product
from tiedtools.kernels.scalar import sigmoid
from tiedtools.kernels.tiles import row_dots


@jit
def forward(H, words, emb, hid, first, T):
    """Rows first .. first + T - 1 of H from the row before them.      H  [rows, P]      emb  [V, P]      hid  [M, P]"""
    M = hid.shape[0]
    for r in range(first, first + T):
        if words[r] < 0:
            H[r] = 0
        else:
            copy(H[r], emb[words[r]])
        # Up and down in turn: what was read last of hid is still in the first-level cache, which does not hold it all.
        if r % 2:
            product(H[r : r + 1], H[r - 1 : r, :M], hid, True)
        else:
            product(H[r : r + 1], H[r - 1 : r, M - 1 :: -1], hid[::-1], True)
        activate(H[r], M)


@jit
def copy(target, source):
    for j in range(target.size):
        target[j] = source[j]


@jit
def scale(row, n, factor):
    for j in range(n):
        row[j] *= factor


@jit(relaxed=True)
def activate(h, M):
    for j in range(M):
        h[j] = sigmoid(h[j])


@jit
def backward(space, emb, hid, start, first, T, reach, cutoff, lr):
    """Send the errors G of T states, rows `first` .. of H, back through these and `reach` more; change all on the way.

    space  see rnnlmtypes.py; input_errors becomes the errors of the states before the sigmoid
    start  [M], the state before all, if it is to be learned; otherwise [0]
    Every error that comes through hid is limited to +-cutoff.
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
    for j in range(M):
        r[j] = error[j] * h[j] * (1 - h[j])


@jit
def limit(row, n, cutoff):
    for j in range(n):
        row[j] = min(max(row[j], -cutoff), cutoff)


@jit(relaxed=True)
def add(row, error, lr):
    for j in range(row.size):
        row[j] += lr * error[j]
