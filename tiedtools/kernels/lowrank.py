"""The map L = I + U V^T of tied+L with rank R: a fifth of the products of a full L at R = 32 and 300 dimensions.

U^T and V^T are the rows 0 .. R - 1 and R .. 2 R - 1 of `factors` [2 R, P]. With h and du as in w2v.py,

    u = h + (h U) V^T     dh = du + (du V) U^T     dU = h^T (du V)     dV = du^T (h U)

where dU and dV are G V and G^T U for the step G = h^T du of a full L. h U and du V, `inner` [batch, R] each, are
computed once.
"""

from tiedtools.kernels.jit import jit
from tiedtools.kernels.tiles import combine, dots


@jit
def apply(mapped, inner, hidden, factors, first, rows, nothing):
    """mapped = hidden + (hidden A) B^T for the factors A and B that begin at rows `first` and R - `first`.

    inner  set to hidden A;  first  0: multiply by L, A = U; R: by L^T, A = V
    """
    R = inner.shape[1]
    dots(inner, hidden, factors[first:], 1, rows, R, R, 0, nothing)
    for b in range(rows):
        for d in range(hidden.shape[1]):
            mapped[b, d] = hidden[b, d]
    combine(mapped, inner, factors[R - first :], 1, rows, R, R, 0, True, nothing)


@jit
def learn(steps, along, back, hidden, grad, rows, ratio, nothing):
    """Add ratio dU^T and ratio dV^T to `steps` [2 R, P].

    along, back  [batch, R]: h U and du V, which are scaled;  hidden, grad  [batch, P]: h and du
    """
    R = along.shape[1]
    for b in range(rows):
        for k in range(R):
            along[b, k] *= ratio
            back[b, k] *= ratio
    combine(steps[:R], back.T, hidden, 1, R, rows, rows, 0, True, nothing)
    combine(steps[R:], along.T, grad, 1, R, rows, rows, 0, True, nothing)
