"""The GRU layer over T steps of B sequences, and its gradient.

Cho et al. 2014, with the reset gate after the product, as in DL4MT and cuDNN, so that a step is one product. At step t,

    r, u = sigmoid(x_t W_x + h_{t-1} W_h + b)        reset and update gate
    q = h_{t-1} W_h        c = tanh(x_t W_x + b + r q)        h_t = u h_{t-1} + (1 - u) c

Rows are (step, sequence). Columns of W_x and b are (gate, unit) in the order c, r, u, those of W_h in the order r, u,
c, and those of G in the order c, r, u, q, of which the first three belong to W_x and the last three to W_h. See
recurrence.py for how threads share the work.
"""

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.bfloat16 import left, paired, right
from tiedtools.kernels.base.elementwise import add_rows
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import sigmoid, tanh
from tiedtools.kernels.base.tiles import VECTOR, WIDE
from tiedtools.kernels.cells.recurrence import (
    add_inputs,
    add_weights,
    carry_back,
    hide,
    multiply_inputs,
    multiply_states,
    owned,
    pack,
    pack_back,
    pack_down,
    transpose_inputs,
)

GATES, COLUMNS = 3, 4


@jit
def forward(worker, G, HM, H, panels, sums, bf16, X, Wx, Wh, b, masks, repack):
    """Forward pass of the layer: arguments as in lstm.py.

    G      [T * B, 4n + 2 lanes], set to c, r, u, q        X   [T * B or 3 T * B, m]
    Wx  [m, 3n]        Wh  [n, 3n]        b  [3n]        masks  [K, B, n], K = 0, 1 or 3
    """
    n, (K, B, _), (thread, threads, _) = Wh.shape[0], masks.shape, worker
    rows, lanes = G.shape[0], VECTOR // sums.itemsize
    x_along, hm_along, wx_down, panels_down = bf16
    multiply_inputs(worker, G, X, Wx, GATES, n, x_along, wx_down)
    sums, n_panels = sums[thread], panels.shape[0] // n // threads
    begin, end, units = owned(worker, n, lanes)
    if repack:
        pack(panels[thread * n_panels * n :], Wh, GATES, begin, end, units)
    pack_down(panels_down, panels, thread * n_panels, n_panels, n)
    states, packed = paired(hm_along, HM), paired(panels_down, panels)
    terms = packed.shape[0] // n_panels // threads
    packed = packed[thread * n_panels * terms :]
    hide(HM, H, masks, 0, begin, end, hm_along)
    sync(worker)
    for row in range(0, rows, B):
        multiply_states(sums[:, : GATES * units], states[row:, :terms], packed, GATES, units, K, rows + B, row // B)
        activate(G, H, sums, b, row, B, begin, end, units)
        hide(HM, H, masks, row + B, begin, end, hm_along)
        sync(worker)


@jit(relaxed=True)
def activate(G, H, sums, b, row, B, begin, end, units):
    """Compute gates and states of one step from G, which holds x_t W_x, and sums, which holds h_{t-1} W_h.

    Each inner loop writes only one array, because the compiler does not vectorize more complex loops.
    """
    n, own = b.size // GATES, end - begin
    for s in range(B):
        z, gates, biases = sums[s], G[row + s, begin:], b[begin:]
        c, r, u, q = gates, gates[n:], gates[2 * n :], gates[3 * n :]
        before, h = H[row + s, begin:end], H[row + B + s, begin:end]
        for gate in range(1, GATES):
            x, bias, product = gates[gate * n :], biases[gate * n :], z[(gate - 1) * units :]
            for j in range(own):
                x[j] = sigmoid(product[j] + x[j] + bias[j])
        product = z[2 * units :]
        for j in range(own):
            c[j] = tanh(c[j] + biases[j] + r[j] * product[j])
        for j in range(own):
            q[j] = product[j]
        for j in range(own):
            h[j] = c[j] + u[j] * (before[j] - c[j])


@jit
def backward(
    worker, dX, dWx, dWh, db, G, scratch, panels, WxT, XT, sums, block, bf16, dH, X, HM, H, Wx, Wh, masks, masks_x,
    accumulate_x, accumulate_h, accumulate_b,
):  # fmt: skip
    """Backward pass: arguments as in lstm.py. G becomes the gradient of what it held, before the activations.

    scratch  [B, n]        masks_x  [0 or 3, B, m], the masks of X
    """
    m, n, B, (thread, threads, _) = Wx.shape[0], Wh.shape[0], masks.shape[1], worker
    rows, lanes, half = dH.shape[0], VECTOR // sums.itemsize, (n + 1) // 2
    g_along, wxt_down, xt_along, g_down, panels_down = bf16
    across = WIDE * lanes
    dh, masked, n_panels = sums[0, thread], sums[1, thread], panels.shape[0] // (GATES * n) // threads
    transpose_inputs(worker, WxT, Wx, wxt_down, GATES, n)
    begin, end, _ = owned(worker, n, lanes)
    pack_back(panels, panels_down, thread * n_panels, Wh, GATES, begin, end)
    errors, packed, weights = paired(g_along, G), paired(panels_down, panels), paired(wxt_down, WxT)
    dh[:] = 0
    size = weights.shape[0]
    first, packed = size // GATES, packed[thread * n_panels * size :]
    for row in range(rows - B, -1, -B):
        for unit in range(begin, end, across):
            own = min(across, end - unit)
            deactivate(G, scratch, dh, dH, H, n, row, B, (unit - begin) // across * B, unit, own)
        for k in range(COLUMNS):
            gate = slice(k * n + begin, k * n + end)
            if k < GATES:
                add_rows(db[gate], G[row : row + B, gate], accumulate_b or row < rows - B)
            left(g_along, (row, k * half + begin // 2), G[row : row + B, gate])
        sync(worker)
        if row == 0:
            break
        carry_back(dh, masked, errors[row : row + B, first : first + size], packed, masks, begin, end, True, row // B)
    begin, end = partition(worker, rows, 2)
    right(g_down, (begin // 2, 0), G[begin:end])
    add_inputs(worker, dX, errors, weights, block, masks_x, GATES)
    sync(worker)  # before block and XT are reused for other rows, here and below
    g = paired(g_down, G)
    add_weights(worker, dWx, X, rows, g, GATES, block, XT, xt_along, m, n, rows, accumulate_x)
    sync(worker)
    add_weights(worker, dWh, HM, rows + B, g[:, n:], GATES, block, XT, xt_along, n, n, rows, accumulate_h)


@jit(relaxed=True)
def deactivate(G, scratch, carried, dH, H, n, row, B, at, unit, units):
    """Compute the gradients of `units` units at one step from dH and `carried`, dh from the next step."""
    for s in range(B):
        z, d, dh, before = carried[at + s], scratch[s, unit:], dH[row + s, unit:], H[row + s, unit:]
        gates = G[row + s, unit:]
        c, r, u, q = gates, gates[n:], gates[2 * n :], gates[3 * n :]
        for j in range(units):
            z[j] += dh[j]
        for j in range(units):
            d[j] = z[j] * (1 - u[j]) * (1 - c[j] * c[j])
        for j in range(units):
            c[j] = z[j] * (before[j] - c[j])
        for j in range(units):
            z[j] *= u[j]
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
