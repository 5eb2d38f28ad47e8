"""The activations of the recurrent highway network and their gradients; recurrence.py has the layer.

Zilly et al. 2017, equations 6 to 9, with coupled gates. A step has D micro-steps l = 1 .. D, from s_0, the state after
the step before:

    k, g = tanh, sigmoid(s_{l-1} R_l + b_l + [l = 1] x_t W_x)        s_l = s_{l-1} + g (k - s_{l-1})

s_{l-1} may be masked before R_l, by one mask for all micro-steps; the carry path is never masked. Columns are (k or g,
unit). Rows are (micro-step, step, sequence), so that the gradient of each R_l is one product.
"""

from typing import Any, NamedTuple

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import sigmoid, tanh

GATES = COLUMNS = 2


class RhnStates(NamedTuple):
    G: Any  # [D * T * B, 2n + 2 lanes]: k, g
    H: Any  # [D * (T + 1) * B, n]: s before each micro-step; the rows of the first include the state after the window


@jit(relaxed=True)
def activate(states, sums, b, row, before, after, units, n):
    """Compute k, g, and s of one micro-step: see recurrence.py.

    Each inner loop writes only one array, because the compiler does not vectorize more complex loops.
    """
    G, H = states
    begin, end, wide = units
    size = end - begin
    for s in range(sums.shape[0]):
        k, g, z_k, z_g = G[row + s, begin:], G[row + s, n + begin :], sums[s], sums[s, wide:]
        b_k, b_g, old, new = b[begin:], b[n + begin :], H[before + s, begin:end], H[after + s, begin:end]
        if before != row:  # only in the first micro-step, these rows are the same, and G holds x_t W_x
            k[:size] = 0
            g[:size] = 0
        for j in range(size):
            k[j] = tanh(k[j] + z_k[j] + b_k[j])
        for j in range(size):
            g[j] = sigmoid(g[j] + z_g[j] + b_g[j])
        for j in range(size):
            new[j] = old[j] + g[j] * (k[j] - old[j])


@jit(relaxed=True)
def deactivate(states, scratch, carried, row, before, unit, units, n):
    """Compute the gradients of k and g of one micro-step before the activations: see recurrence.py."""
    G, H = states
    for s in range(carried.shape[0]):
        ds, d, old = carried[s], scratch[s, unit:], H[before + s, unit:]
        k, g = G[row + s, unit:], G[row + s, n + unit :]
        for j in range(units):
            d[j] = ds[j] * (k[j] - old[j]) * (g[j] - g[j] * g[j])
        for j in range(units):
            k[j] = ds[j] * g[j] * (1 - k[j] * k[j])
        for j in range(units):
            ds[j] -= ds[j] * g[j]
        for j in range(units):
            g[j] = d[j]
