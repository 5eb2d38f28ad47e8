"""The activations of the cells and their gradients; recurrence.py has the layer.

Inner loops write one array, or two at most: the compiler does not vectorize more complex loops.
"""

from typing import Any, NamedTuple

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import sigmoid, tanh


class LstmStates(NamedTuple):
    """The states of the LSTM.

    Zaremba, Sutskever, and Vinyals 2014, equations of section 3.1; Gal and Ghahramani 2016 for the masks. At step t,

        i, f, g, o = act(x_t W_x + h_{t-1} W_h + b)        sigmoid, sigmoid, tanh, sigmoid
        c_t = f c_{t-1} + i g        h_t = o tanh(c_t)

    Columns of G and of the weights are (gate, unit), with gates in the order i, f, g, o.
    """

    G: Any  # [T * B, 4n + 2 lanes]: i, f, g, o
    H: Any  # [(T + 1) * B, n]: h
    C: Any  # [(T + 1) * B, n]: c


@jit(relaxed=True)
def activate_lstm(states, sums, b, row, before, after, units, n):
    """Compute the gates, c, and h of one step: see recurrence.py."""
    G, H, C = states
    begin, end, wide = units
    size = end - begin
    for s in range(sums.shape[0]):
        z = sums[s]
        old, c, h = C[before + s, begin:end], C[after + s, begin:end], H[after + s, begin:end]
        i, f, g, o = z[:wide], z[wide : 2 * wide], z[2 * wide : 3 * wide], z[3 * wide : 4 * wide]
        for gate in range(4):
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
        for gate in range(4):
            q, x = z[gate * wide :], G[row + s, gate * n + begin :]
            for j in range(size):
                x[j] = q[j]


@jit(relaxed=True)
def deactivate_lstm(states, dC, carried, row, before, after, unit, units, n):
    """Compute the gate gradients of one step: see recurrence.py. Nothing flows past W_h but dC, the gradient of c."""
    G, _, C = states
    for s in range(carried.shape[0]):
        gates, dh, dc = G[row + s, unit:], carried[s], dC[s, unit:]
        i, f, g, o = gates, gates[n:], gates[2 * n :], gates[3 * n :]
        old, c = C[before + s, unit:], C[after + s, unit:]
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


class GruStates(NamedTuple):
    """The states of the GRU.

    Cho et al. 2014, with the reset gate after the product, as in DL4MT and cuDNN, so that a step is one product. At
    step t,

        r, u = sigmoid(x_t W_x + h_{t-1} W_h + b)        reset and update gate
        q = h_{t-1} W_h        c = tanh(x_t W_x + b + r q)        h_t = u h_{t-1} + (1 - u) c

    Columns are (gate, unit). Gates are in the order c, r, u in W_x and b, in the order r, u, c in W_h, and in the order
    c, r, u, q in G, whose first three belong to W_x and the last three to W_h.
    """

    G: Any  # [T * B, 4n + 2 lanes]: c, r, u, q
    H: Any  # [(T + 1) * B, n]: h


@jit(relaxed=True)
def activate_gru(states, sums, b, row, before, after, units, n):
    """Compute c, r, u, q, and h of one step: see recurrence.py."""
    G, H = states
    begin, end, wide = units
    size, biases = end - begin, b[begin:]
    for s in range(sums.shape[0]):
        z, gates, old, h = sums[s], G[row + s, begin:], H[before + s, begin:end], H[after + s, begin:end]
        c, r, u, q = gates, gates[n:], gates[2 * n :], gates[3 * n :]
        for gate in range(1, 3):
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
def deactivate_gru(states, scratch, carried, row, before, after, unit, units, n):
    """Compute the gradients of c, r, u, q of one step before the activations: see recurrence.py."""
    G, H = states
    for s in range(carried.shape[0]):
        gates, dh, d, old = G[row + s, unit:], carried[s], scratch[s, unit:], H[before + s, unit:]
        c, r, u, q = gates, gates[n:], gates[2 * n :], gates[3 * n :]
        one = d.dtype.type(1)  # with an integer, Numba would compute in float64
        for j in range(units):
            d[j] = (dh[j] - dh[j] * u[j]) * (one - c[j] * c[j])
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


class RhnStates(NamedTuple):
    """The states of the recurrent highway network.

    Zilly et al. 2017, equations 6 to 9, with coupled gates. A step has D micro-steps l = 1 .. D, from s_0, the state
    after the step before:

        k, g = tanh, sigmoid(s_{l-1} R_l + b_l + [l = 1] x_t W_x)        s_l = s_{l-1} + g (k - s_{l-1})

    s_{l-1} may be masked before R_l, by one mask for all micro-steps; the carry path is never masked. Columns are
    (k or g, unit). Rows are (micro-step, step, sequence), so that the gradient of each R_l is one product.
    """

    G: Any  # [D * T * B, 2n + 2 lanes]: k, g
    H: Any  # [D * (T + 1) * B, n]: s before each micro-step; the rows of the first include the state after the window


@jit(relaxed=True)
def activate_rhn(states, sums, b, row, before, after, units, n):
    """Compute k, g, and s of one micro-step: see recurrence.py."""
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
def deactivate_rhn(states, scratch, carried, row, before, after, unit, units, n):
    """Compute the gradients of k and g of one micro-step before the activations: see recurrence.py."""
    G, H = states
    for s in range(carried.shape[0]):
        ds, d, old = carried[s], scratch[s, unit:], H[before + s, unit:]
        k, g = G[row + s, unit:], G[row + s, n + unit :]
        for j in range(units):
            d[j] = ds[j] * (k[j] - old[j]) * (g[j] - g[j] * g[j])
        for j in range(units):
            k[j] = ds[j] * (g[j] - g[j] * k[j] * k[j])
        for j in range(units):
            ds[j] -= ds[j] * g[j]
        for j in range(units):
            g[j] = d[j]
