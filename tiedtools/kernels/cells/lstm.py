"""The activations of the LSTM and their gradients; recurrence.py has the layer.

Zaremba, Sutskever, and Vinyals 2014, equations of section 3.1; Gal and Ghahramani 2016 for the masks. At step t,

    i, f, g, o = act(x_t W_x + h_{t-1} W_h + b)        sigmoid, sigmoid, tanh, sigmoid
    c_t = f c_{t-1} + i g        h_t = o tanh(c_t)

Columns of G and of the weights are (gate, unit), with gates in the order i, f, g, o.
"""

from typing import Any, NamedTuple

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import sigmoid, tanh

GATES = COLUMNS = 4


class LstmStates(NamedTuple):
    G: Any  # [T * B, 4n + 2 lanes]: i, f, g, o
    H: Any  # [(T + 1) * B, n]: h
    C: Any  # [(T + 1) * B, n]: c


@jit(relaxed=True)
def activate(states, sums, b, row, before, after, units, n):
    """Compute the gates, c, and h of one step: see recurrence.py.

    Each inner loop writes only one array, because the compiler does not vectorize more complex loops.
    """
    G, H, C = states
    begin, end, wide = units
    size = end - begin
    for s in range(sums.shape[0]):
        z = sums[s]
        old, c, h = C[before + s, begin:end], C[after + s, begin:end], H[after + s, begin:end]
        i, f, g, o = z[:wide], z[wide : 2 * wide], z[2 * wide : 3 * wide], z[3 * wide : 4 * wide]
        for gate in range(GATES):
            q, x, bias = z[gate * wide :], G[row + s, gate * n + begin :], b[gate * n + begin :]
            if gate == 2:
                for j in range(size):
                    q[j] = tanh(q[j] + x[j] + bias[j])
            else:
                for j in range(size):
                    q[j] = sigmoid(q[j] + x[j] + bias[j])
        for j in range(size):
            c[j] = f[j] * old[j] + i[j] * g[j]
        for j in range(size):
            h[j] = o[j] * tanh(c[j])
        for gate in range(GATES):
            q, x = z[gate * wide :], G[row + s, gate * n + begin :]
            for j in range(size):
                x[j] = q[j]


@jit(relaxed=True)
def deactivate(states, dC, carried, row, before, unit, units, n):
    """Compute the gate gradients of one step: see recurrence.py. Nothing flows past W_h but dC, the gradient of c."""
    G, _, C = states
    B = carried.shape[0]
    for s in range(B):
        gates, dh, dc = G[row + s, unit:], carried[s], dC[s, unit:]
        i, f, g, o = gates, gates[n:], gates[2 * n :], gates[3 * n :]
        old, c = C[before + s, unit:], C[before + B + s, unit:]
        for j in range(units):
            th = tanh(c[j])
            dc[j] += dh[j] * (o[j] - o[j] * th * th)
            dh[j] *= th
        for j in range(units):
            o[j] = dh[j] * (o[j] - o[j] * o[j])
        # From here on, dh is scratch.
        for j in range(units):
            dh[j] = dc[j] * g[j] * (i[j] - i[j] * i[j])
        for j in range(units):
            g[j] = dc[j] * (i[j] - i[j] * g[j] * g[j])
        for j in range(units):
            i[j] = dh[j]
        for j in range(units):
            dh[j] = dc[j] * f[j]
            f[j] = dc[j] * old[j] * (f[j] - f[j] * f[j])
        for j in range(units):
            dc[j] = dh[j]
        for j in range(units):
            dh[j] = 0
