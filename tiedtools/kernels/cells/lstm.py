"""The LSTM layer over T steps of B sequences, and its gradient.

Zaremba, Sutskever and Vinyals 2014, equations of section 3.1; Gal and Ghahramani 2016 for the masks. At step t,

    i, f, g, o = act(x_t W_x + h_{t-1} W_h + b)        sigmoid, sigmoid, tanh, sigmoid
    c_t = f c_{t-1} + i g        h_t = o tanh(c_t)

Rows are (step, sequence); columns of G and the weights are (gate, unit), with gates in the order i, f, g, o. See
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

GATES = COLUMNS = 4


@jit
def forward(worker, G, HM, H, C, panels, sums, bf16, X, Wx, Wh, b, masks, repack):
    """Forward pass of the layer.

    G      [T * B, 4n + lanes], set to i, f, g, o    X   [T * B or 4 T * B, m]
    Wx  [m, 4n]        Wh  [n, 4n]        b  [4n]
    H, C   [(T + 1) * B, n]: row b is the initial state of sequence b; the rest is set to h_t and c_t
    HM     [K * (T + 1) * B, n], set to h times each mask; H itself without masks
    masks  [K, B, n], K = 0, 1 or 4
    panels [threads * n_panels * n, WIDE lanes] and sums  [threads, B, n_panels * WIDE lanes]: scratch; n_panels must
           hold all gates of the units of one thread
    repack copy W_h into the panels; False if they already hold it
    bf16   scratch for X and HM packed along rows, W_x and each panel down columns; see bfloat16.py
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
        activate(G, H, C, sums, b, row, B, begin, end, units)
        hide(HM, H, masks, row + B, begin, end, hm_along)
        sync(worker)


@jit(relaxed=True)
def activate(G, H, C, sums, b, row, B, begin, end, units):
    """Compute gates, cells, and states of one step from G, which holds x_t W_x, and sums, which holds h_{t-1} W_h.

    Each inner loop writes only one array, because the compiler does not vectorize more complex loops.
    """
    n, own = b.size // GATES, end - begin
    for s in range(B):
        r, z = row + s, sums[s]
        c, h = C[r + B, begin:end], H[r + B, begin:end]
        i, f, g, o = z[:units], z[units : 2 * units], z[2 * units : 3 * units], z[3 * units : 4 * units]
        for gate in range(GATES):
            q, x, bias = z[gate * units :], G[r, gate * n + begin :], b[gate * n + begin :]
            if gate == 2:
                for j in range(own):
                    q[j] = tanh(q[j] + x[j] + bias[j])
            else:
                for j in range(own):
                    q[j] = sigmoid(q[j] + x[j] + bias[j])
        before = C[r, begin:end]
        for j in range(own):
            c[j] = f[j] * before[j] + i[j] * g[j]
        for j in range(own):
            h[j] = o[j] * tanh(c[j])
        for gate in range(GATES):
            q, x = z[gate * units :], G[r, gate * n + begin :]
            for j in range(own):
                x[j] = q[j]


@jit
def backward(
    worker, dX, dWx, dWh, db, G, dC, panels, WxT, XT, sums, block, bf16, dH, X, HM, C, Wx, Wh, masks, masks_x,
    accumulate_x, accumulate_h, accumulate_b,
):  # fmt: skip
    """Backward pass: gradients of X and the weights; G becomes the gradient of the gate preactivations.

    dX     [T * B, m]        dH  [T * B, n], the gradient of h_t
    dWx, dWh, db: the gradients, added if accumulate_x, accumulate_h, accumulate_b
    masks_x  [0 or 4, B, m], the masks of X
    panels [threads * n_panels * 4n, WIDE lanes], WxT  [4n, m], XT  [max(m, n), T * B], dC  [B, n],
           sums  [2, threads, n_panels * B, WIDE lanes] and, with masks per gate, block  [max(m, n, T * B), max(m, n)]:
           scratch; n_panels must hold the units of one thread
    bf16   scratch for G along rows, W_x^T down columns, X^T or H^T along, G down, panels down; gates are packed
           separately in G along, W_x^T, and panels
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
    for s in range(B):
        dC[s, begin:end] = 0
    dh[:] = 0
    size = weights.shape[0]
    packed = packed[thread * n_panels * size :]
    for row in range(rows - B, -1, -B):
        for unit in range(begin, end, across):
            deactivate(G, dC, dh, dH, C, n, row, B, (unit - begin) // across * B, unit, min(across, end - unit))
        for k in range(GATES):
            gate = slice(k * n + begin, k * n + end)
            add_rows(db[gate], G[row : row + B, gate], accumulate_b or row < rows - B)
            left(g_along, (row, k * half + begin // 2), G[row : row + B, gate])
        sync(worker)
        if row == 0:
            break
        carry_back(dh, masked, errors[row : row + B, :size], packed, masks, begin, end, False, row // B)
    begin, end = partition(worker, rows, 2)
    right(g_down, (begin // 2, 0), G[begin:end])
    add_inputs(worker, dX, errors, weights, block, masks_x, GATES)
    sync(worker)  # before block and XT are reused for other rows, here and below
    g = paired(g_down, G)
    add_weights(worker, dWx, X, rows, g, GATES, block, XT, xt_along, m, n, rows, accumulate_x)
    sync(worker)
    add_weights(worker, dWh, HM, rows + B, g, GATES, block, XT, xt_along, n, n, rows, accumulate_h)


@jit(relaxed=True)
def deactivate(G, dC, carried, dH, C, n, row, B, c, unit, units):
    """Compute the gate gradients of `units` units at one step from dH, dC and `carried`, dh from the next step."""
    for s in range(B):
        r, z = row + s, carried[c + s]
        gates = G[r, unit:]
        i, f, g, o = gates, gates[n:], gates[2 * n :], gates[3 * n :]
        dc, dh, now, before = dC[s, unit:], dH[r, unit:], C[r + B, unit:], C[r, unit:]
        for j in range(units):
            z[j] += dh[j]
        for j in range(units):
            th = tanh(now[j])
            dc[j] += z[j] * (o[j] - o[j] * th * th)
            z[j] *= th
        for j in range(units):
            o[j] = z[j] * (o[j] - o[j] * o[j])
        for j in range(units):
            z[j] = dc[j] * g[j] * (i[j] - i[j] * i[j])
        for j in range(units):
            g[j] = dc[j] * (i[j] - i[j] * g[j] * g[j])
        for j in range(units):
            i[j] = z[j]
        for j in range(units):
            z[j] = dc[j] * f[j]
            f[j] = dc[j] * before[j] * (f[j] - f[j] * f[j])
        for j in range(units):
            dc[j] = z[j]
