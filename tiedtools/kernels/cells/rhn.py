"""The recurrent highway network over T steps of B sequences, and its gradient.

Zilly et al. 2017, equations 6 to 9, with coupled gates. A step has D micro-steps l = 1 .. D, from s_0, the state after
the step before:

    k, g = tanh, sigmoid(s_{l-1} R_l + b_l + [l = 1] x_t W_x)        s_l = s_{l-1} + g (k - s_{l-1})

s_{l-1} may be masked before R_l, by one mask for all micro-steps; the carry path is never masked.

Rows are (micro-step, step, sequence), so that the gradient of each R_l is one product; columns are (k or g, unit). S
has the state before each micro-step. Its rows of the first one include another step, the state after the window. See
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

GATES = COLUMNS = 2


@jit
def forward(worker, G, SM, S, panels, sums, bf16, X, Wx, R, b, masks, repack):
    """Forward pass of the layer: arguments as in lstm.py.

    G      [D * T * B, 2n + lanes], set to k and g        X  [T * B, m]
    S, SM  [D * (T + 1) * B, n]: the first B rows are the initial state; the rest is set. SM is S times the mask
    Wx  [m, 2n]        R  [D, n, 2n]        b  [D, 2n]        masks  [K, B, n], K = 0 or 1
    panels [threads * D * n_panels * n, WIDE lanes]
    """
    (D, n, _), (K, B, _), (thread, threads, _) = R.shape, masks.shape, worker
    rows, lanes = G.shape[0] // D, VECTOR // sums.itemsize
    x_along, sm_along, wx_down, panels_down = bf16
    multiply_inputs(worker, G[:rows], X, Wx, GATES, n, x_along, wx_down)
    sums, n_panels = sums[thread], panels.shape[0] // n // threads // D
    begin, end, units = owned(worker, n, lanes)
    for depth in range(D):
        first = (thread * D + depth) * n_panels
        if repack:
            pack(panels[first * n :], R[depth], GATES, begin, end, units)
        pack_down(panels_down, panels, first, n_panels, n)
    states, packed = paired(sm_along, SM), paired(panels_down, panels)
    terms = packed.shape[0] // n_panels // threads // D
    hide(SM, S, masks, 0, begin, end, sm_along)
    sync(worker)
    for row in range(0, rows, B):
        for depth in range(D):
            before = depth * (rows + B) + row
            after = row + B if depth + 1 == D else before + rows + B
            first = (thread * D + depth) * n_panels * terms
            own = packed[first:]
            multiply_states(sums[:, : GATES * units], states[before:, :terms], own, GATES, units, K, 0, row // B)
            activate(G, S, sums, b[depth], n, depth * rows + row, before, after, B, begin, end, units, depth == 0)
            hide(SM, S, masks, after, begin, end, sm_along)
            sync(worker)


@jit(relaxed=True)
def activate(G, S, sums, b, n, row, before, after, B, begin, end, units, inputs):
    """Compute k, g, and the state after a micro-step from `sums` and, if `inputs`, from G, which holds x_t W_x.

    Each inner loop writes only one array, because the compiler does not vectorize more complex loops.
    """
    own = end - begin
    for s in range(B):
        k, g, z_k, z_g = G[row + s, begin:], G[row + s, n + begin :], sums[s], sums[s, units:]
        b_k, b_g, old, new = b[begin:], b[n + begin :], S[before + s, begin:end], S[after + s, begin:end]
        if not inputs:
            k[:own] = 0
            g[:own] = 0
        for j in range(own):
            k[j] = tanh(k[j] + z_k[j] + b_k[j])
        for j in range(own):
            g[j] = sigmoid(g[j] + z_g[j] + b_g[j])
        for j in range(own):
            new[j] = old[j] + g[j] * (k[j] - old[j])


@jit
def backward(
    worker, dX, dWx, dR, db, G, scratch, panels, WxT, XT, sums, block, bf16, dH, X, SM, S, Wx, R, masks, masks_x,
    accumulate_x, accumulate_r, accumulate_b,
):  # fmt: skip
    """Backward pass: arguments as in lstm.py. G becomes the gradient of the preactivations of k and g.

    scratch  [B, n]        panels  [threads * D * n_panels * 2n, WIDE lanes]        masks_x  [0 or 1, B, m]
    bf16   G along is [D * T * B, 2n], and G down [T * B, 2n]
    """
    (D, n, _), m, B, (thread, threads, _) = R.shape, Wx.shape[0], masks.shape[1], worker
    rows, lanes, half = dH.shape[0], VECTOR // sums.itemsize, (n + 1) // 2
    g_along, wxt_down, xt_along, g_down, panels_down = bf16
    across = WIDE * lanes
    ds, masked, n_panels = sums[0, thread], sums[1, thread], panels.shape[0] // (GATES * n) // threads // D
    transpose_inputs(worker, WxT, Wx, wxt_down, GATES, n)
    begin, end, _ = owned(worker, n, lanes)
    for depth in range(D):
        pack_back(panels, panels_down, (thread * D + depth) * n_panels, R[depth], GATES, begin, end)
    errors, packed, weights = paired(g_along, G), paired(panels_down, panels), paired(wxt_down, WxT)
    ds[:] = 0
    size = weights.shape[0]
    for row in range(rows - B, -1, -B):
        add_states(ds, dH, row, B, begin, end, across)
        for depth in range(D - 1, -1, -1):
            at, before = depth * rows + row, depth * (rows + B) + row
            for unit in range(begin, end, across):
                c = (unit - begin) // across * B
                deactivate(G, scratch, ds, S, n, at, before, B, c, unit, min(across, end - unit))
            for k in range(GATES):
                gate = slice(k * n + begin, k * n + end)
                add_rows(db[depth, gate], G[at : at + B, gate], accumulate_b or row < rows - B)
                left(g_along, (at, k * half + begin // 2), G[at : at + B, gate])
            sync(worker)
            if row + depth > 0:
                own = packed[(thread * D + depth) * n_panels * size :]
                carry_back(ds, masked, errors[at : at + B, :size], own, masks, begin, end, True, row // B)
    add_inputs(worker, dX, errors[:rows], weights, block, masks_x, GATES)
    for depth in range(D):
        g, sm = G[depth * rows : (depth + 1) * rows], SM[depth * (rows + B) :]
        begin, end = partition(worker, rows, 2)
        right(g_down, (begin // 2, 0), g[begin:end])
        sync(worker)
        g = paired(g_down, g)
        if depth == 0:
            add_weights(worker, dWx, X, rows, g, GATES, block, XT, xt_along, m, n, rows, accumulate_x)
            sync(worker)  # before XT is reused for other rows
        add_weights(worker, dR[depth], sm[:rows], rows, g, GATES, block, XT, xt_along, n, n, rows, accumulate_r)
        sync(worker)  # before g_down is


@jit
def add_states(ds, dH, row, B, begin, end, across):
    """Add the gradient of the states after a step to ds."""
    for unit in range(begin, end, across):
        for s in range(B):
            to, dh = ds[(unit - begin) // across * B + s], dH[row + s, unit:]
            for j in range(min(across, end - unit)):
                to[j] += dh[j]


@jit(relaxed=True)
def deactivate(G, scratch, ds, S, n, row, before, B, c, unit, units):
    """Turn k and g of `units` units at one micro-step into gradients, and ds into that of the carry path."""
    for s in range(B):
        z, d, old = ds[c + s], scratch[s, unit:], S[before + s, unit:]
        k, g = G[row + s, unit:], G[row + s, n + unit :]
        for j in range(units):
            d[j] = z[j] * (k[j] - old[j]) * (g[j] - g[j] * g[j])
        for j in range(units):
            k[j] = z[j] * g[j] * (1 - k[j] * k[j])
        for j in range(units):
            z[j] -= z[j] * g[j]
        for j in range(units):
            g[j] = d[j]
