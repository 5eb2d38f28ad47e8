"""The activations of the GRU and their gradients; recurrence.py has the layer.

Cho et al. 2014, with the reset gate after the product, as in DL4MT and cuDNN, so that a step is one product. At step t,

    r, u = sigmoid(x_t W_x + h_{t-1} W_h + b)        reset and update gate
    q = h_{t-1} W_h        c = tanh(x_t W_x + b + r q)        h_t = u h_{t-1} + (1 - u) c

Columns are (gate, unit). Gates are in the order c, r, u in W_x and b, in the order r, u, c in W_h, and in the order
c, r, u, q in G, whose first three belong to W_x and the last three to W_h.
"""

from typing import Any, NamedTuple

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import sigmoid, tanh

GATES, COLUMNS = 3, 4


class GruStates(NamedTuple):
    G: Any  # [T * B, 4n + 2 lanes]: c, r, u, q
    H: Any  # [(T + 1) * B, n]: h


@jit(relaxed=True)
def activate(states, sums, b, row, before, after, units, n):
    """Compute c, r, u, q, and h of one step: see recurrence.py.

    Each inner loop writes only one array, because the compiler does not vectorize more complex loops.
    """
    G, H = states
    begin, end, wide = units
    size, biases = end - begin, b[begin:]
    for s in range(sums.shape[0]):
        z, gates, old, h = sums[s], G[row + s, begin:], H[before + s, begin:end], H[after + s, begin:end]
        c, r, u, q = gates, gates[n:], gates[2 * n :], gates[3 * n :]
        for gate in range(1, GATES):
            x, bias, product = gates[gate * n :], biases[gate * n :], z[(gate - 1) * wide :]
            for j in range(size):
                x[j] = sigmoid(product[j] + x[j] + bias[j])
        product = z[2 * wide :]
        for j in range(size):
            c[j] = tanh(c[j] + biases[j] + r[j] * product[j])
        for j in range(size):
            q[j] = product[j]
        for j in range(size):
            h[j] = c[j] + u[j] * (old[j] - c[j])


@jit(relaxed=True)
def deactivate(states, scratch, carried, row, before, unit, units, n):
    """Compute the gradients of c, r, u, q of one step before the activations: see recurrence.py."""
    G, H = states
    for s in range(carried.shape[0]):
        gates, dh, d, old = G[row + s, unit:], carried[s], scratch[s, unit:], H[before + s, unit:]
        c, r, u, q = gates, gates[n:], gates[2 * n :], gates[3 * n :]
        for j in range(units):
            d[j] = dh[j] * (1 - u[j]) * (1 - c[j] * c[j])
        for j in range(units):
            c[j] = dh[j] * (old[j] - c[j])
        for j in range(units):
            dh[j] *= u[j]
        for j in range(units):
            u[j] = c[j] * (u[j] - u[j] * u[j])
        for j in range(units):
            c[j] = d[j]
        for j in range(units):
            d[j] *= q[j]
        for j in range(units):
            q[j] = c[j] * r[j]
        for j in range(units):
            r[j] = d[j] * (r[j] - r[j] * r[j])
