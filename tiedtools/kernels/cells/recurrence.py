"""The recurrent layer over T steps of B sequences, and its gradient: the same for all cells but for their activations.

A cell CELL is a NamedTuple of its states, CellStates, whose first fields are G and H, and two kernels in its module:

    activate_cell(states, sums, b, row, before, after, units, n)
        Compute gates and states of one micro-step from G, which holds x_t W_x, and `sums`, h W_h.
    deactivate_cell(states, scratch, carried, row, before, after, unit, units, n)
        Turn the gates of `units` units, from `unit` on, into the gradients of what they were computed from, and
        `carried` [R, units], the gradient of the state after a micro-step, into the part of the gradient of the state
        before it that does not flow through W_h. scratch  [R, n], 0 before the last step

A step has D micro-steps, 1 except in recurrent highway networks. `row`, `before`, and `after` are the first rows of a
micro-step in G and of the states before and after it, for R sequences; `units` is (begin, end, number with padding).

Rows are (micro-step, step, sequence), in H with another step, the state after the window; columns of weights are
(gate, unit). Groups of threads each run some sequences through all steps, and only a group waits for its threads at
each step (network/division.py). A thread computes all gates of some units, whose number is a multiple of the `lanes` of
a vector register. Their columns of W_h are copied once into n_panels panels, each as wide as a tile, in the order in
which tiles read them; all groups read the same panels. Odd steps read them from last to first: those read last in the
step before are still in the cache. Threads in no group take part in the other products.

h may be masked before W_h: not at all, by one mask, or by one per gate. x_t is passed once, or masked per gate. The
carry path of highway networks is never masked, and one mask serves all micro-steps.
"""

import sys
from typing import Any, NamedTuple

from tiedtools.kernels.base import inner
from tiedtools.kernels.base.barrier import GROUPS, partition, sync
from tiedtools.kernels.base.bfloat16 import left, paired, right
from tiedtools.kernels.base.elementwise import LINE, add_rows, transpose
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import pack_down, part, product
from tiedtools.kernels.base.shared import caller
from tiedtools.kernels.base.tiles import ROWS, VECTOR, WIDE
from tiedtools.kernels.output import linear


class Weights(NamedTuple):
    Wx: Any  # [m, gates * n]
    Wh: Any  # [D, n, gates * n]
    b: Any  # [D, gates * n]


class Masked(NamedTuple):
    """x and h times their masks, and the masks, of which there are K: 0, 1, or one per gate."""

    X: Any  # [max(1, K) * T * B, m]
    HM: Any  # [max(1, K) * D * (T + 1) * B, n], set by `forward`; H itself without masks
    masks_x: Any  # [K, B, m]
    masks: Any  # [K, B, n]


class Forward(NamedTuple):
    """Scratch of the forward pass; n_panels panels must hold all gates of the units of one thread."""

    panels: Any  # [threads of a group * D * n_panels * n, WIDE lanes]
    sums: Any  # [threads, B, n_panels * WIDE lanes]
    bf16: Any  # X and HM packed along rows, W_x and each panel down columns: see bfloat16.py


class Backward(NamedTuple):
    """Scratch of the backward pass; n_panels panels must hold the units of one thread."""

    scratch: Any  # [B, n], for `deactivate`
    panels: Any  # [threads of a group * D * n_panels * gates * n, WIDE lanes]
    WxT: Any  # [gates * n, m]
    XT: Any  # [max(m, n), T * B]
    sums: Any  # [2, threads, n_panels * B, WIDE lanes]
    block: Any  # with masks per gate [max(m, n, T * B), max(m, n)]
    bf16: Any  # G along rows, W_x^T down columns, X^T or H^T along, one micro-step of G down, panels down; in G along,
    # W_x^T, and panels, gates are packed separately


class Gradients(NamedTuple):
    """Gradients of the inputs and the weights."""

    dX: Any  # [T * B, m]
    dW: Weights
    accumulate: Any  # for each of the Weights, whether to add to its gradient instead of overwriting it


def of_cell(name):
    """Return a function that calls the kernel `name`_cell in the module of CellStates, its first argument's type."""

    def kernel(kinds):
        states = kinds[0].instance_class
        return getattr(sys.modules[states.__module__], f"{name}_{states.__name__.removesuffix('States').lower()}")

    return caller(kernel, inner.call)


activate, deactivate = of_cell("activate"), of_cell("deactivate")


@jit
def forward(worker, states, masked, space, weights, gates, repack, division):
    """Compute the states and gates of all steps from block 0 of H, the initial states of the B sequences.

    states    NamedTuple of a cell: G  [D * T * B, columns * n + 2 lanes], H  [D * (T + 1) * B, n], ...
    repack    copy W_h into the panels; False if they already hold it
    division  (groups, threads of a group): see network/division.py
    """
    G, H, HM, masks = states.G, states.H, masked.HM, masked.masks
    (D, n, _), (K, B, _), (thread, _, gate) = weights.Wh.shape, masks.shape, worker
    rows, panels, sums = G.shape[0] // D, space.panels, space.sums[thread]
    x_along, hm_along, wx_down, panels_down = space.bf16
    multiply_inputs(worker, G[:rows], masked.X, weights.Wx, gates, n, x_along, wx_down)
    (groups, side), group, place = division, thread // division[1], thread % division[1]
    member = place, side, gate[GROUPS + group * LINE :]
    first, last = partition((min(group, groups), groups, gate), B)
    R = last - first
    # Copy the columns of W_h for this thread's units into their panels, together with the other groups.
    n_panels, half = panels.shape[0] // n // side // D, (n + 1) // 2
    units = units_of(member, n, VECTOR // sums.itemsize)
    begin, end, wide = units
    for depth in range(D if group < groups else 0):
        start = (place * D + depth) * n_panels
        if repack:
            copy_columns(panels[start * n :], weights.Wh[depth], gates, begin, end, wide, group, groups)
        for panel in range(start + group, start + n_panels, groups):
            right(panels_down, (panel * half, 0), panels[panel * n : (panel + 1) * n])
    h, packed = paired(hm_along, HM), paired(panels_down, panels)
    terms = packed.shape[0] // n_panels // side // D
    hide(HM, H, masks, 0, first, last, begin, end, hm_along)
    sync(worker)
    # Each micro-step: one product, the activations, and the masks of the new state, which the group waits for.
    for row in range(0, rows if R else 0, B):
        for depth in range(D):
            before = depth * (rows + B) + row
            after = row + B if depth + 1 == D else before + rows + B
            panels_of_depth = packed[(place * D + depth) * n_panels * terms :]
            z = sums[:R, : gates * wide]
            multiply_states(z, h[before + first :, :terms], panels_of_depth, gates, wide, K, rows + B, row // B)
            at = depth * rows + row + first
            activate(states, sums[:R], weights.b[depth], at, before + first, after + first, units, n)
            hide(HM, H, masks, after, first, last, begin, end, hm_along)
            sync(member)


@jit
def backward(worker, gradients, space, states, masked, weights, dH, gates, columns, division):
    """Compute the Gradients from dH [T * B, n], the gradient of h_t. G becomes the gradient of the preactivations.

    columns  blocks of n columns of G: the first `gates` of them belong to W_x, and the last ones to W_h
    """
    dX, (dWx, dWh, db), (accumulate_x, accumulate_h, accumulate_b) = gradients
    scratch, panels, WxT, XT, sums, block, bf16 = space
    G, (X, HM, masks_x, masks) = states.G, masked
    (D, n, _), (K, B, _), (thread, threads, gate) = weights.Wh.shape, masks.shape, worker
    rows, half, lanes = dH.shape[0], (n + 1) // 2, VECTOR // sums.itemsize
    across = WIDE * lanes
    g_along, wxt_down, xt_along, g_down, panels_down = bf16
    (groups, side), group, place = division, thread // division[1], thread % division[1]
    member = place, side, gate[GROUPS + group * LINE :]
    first, last = partition((min(group, groups), groups, gate), B)
    R = last - first
    # Transpose the weights: W_h for this thread's units, in panels, together with the other groups.
    n_panels = panels.shape[0] // (gates * n) // side // D
    transpose_inputs(worker, WxT, weights.Wx, wxt_down, gates, n)
    begin, end, _ = units_of(member, n, lanes)
    for depth in range(D if group < groups else 0):
        start = (place * D + depth) * n_panels
        copy_rows(panels, panels_down, start, weights.Wh[depth], gates, begin, end, group, groups)
    errors, packed, WxT = paired(g_along, G), paired(panels_down, panels), paired(wxt_down, WxT)
    size, dh = WxT.shape[0], sums[0, thread]
    left_of = size // gates * (columns - gates)
    dh[:] = 0
    for s in range(first, last):
        scratch[s, begin:end] = 0
    sync(worker)

    # Each micro-step in reverse: gate gradients, bias gradients, and the product that carries dh to the state before.
    for row in range(rows - B if R else -1, -1, -B):
        add_states(dh, dH, row + first, R, begin, end, across)
        for depth in range(D - 1, -1, -1):
            at, before = depth * rows + row + first, depth * (rows + B) + row + first
            after = row + B + first if depth + 1 == D else before + rows + B
            for unit in range(begin, end, across):
                carried = dh[(unit - begin) // across * R :][:R]
                deactivate(states, scratch[first:], carried, at, before, after, unit, min(across, end - unit), n)
            for k in range(columns):
                units = slice(k * n + begin, k * n + end)
                if k < gates and side == threads:
                    add_rows(db[depth, units], G[at : at + B, units], accumulate_b or row < rows - B)
                left(g_along, (at, k * half + begin // 2), G[at : at + R, units])
            sync(member)
            if row + depth > 0:
                panels_of_depth = packed[(place * D + depth) * n_panels * size :]
                z = errors[at : at + R, left_of : left_of + size]
                carry_back(dh, sums[1, thread], z, panels_of_depth, masks, first, begin, end, row // B)
    if side < threads:  # a group has only the errors of some sequences
        sync(worker)
        begin, end = partition(worker, gates * n, LINE)
        for depth in range(D):
            add_rows(db[depth, begin:end], G[depth * rows : (depth + 1) * rows, begin:end], accumulate_b)

    add_inputs(worker, dX, errors[:rows], WxT, block, masks_x, gates)
    # One micro-step of G at a time is packed. Before it and XT are overwritten, all threads must have read them.
    for depth in range(D):
        dz = G[depth * rows : (depth + 1) * rows]
        pack_down(worker, g_down, dz)
        sync(worker)
        z = paired(g_down, dz)
        if depth == 0:
            add_weights(worker, dWx, (block, XT, xt_along), X, rows, z, rows, gates, n, accumulate_x)
            sync(worker)
        h = HM if K > 1 else HM[depth * (rows + B) : (depth + 1) * (rows + B)]
        z = z[:, (columns - gates) * n :]
        add_weights(worker, dWh[depth], (block, XT, xt_along), h, rows + B, z, rows, gates, n, accumulate_h)
        sync(worker)


@jit
def add_states(dh, dH, row, R, begin, end, across):
    """Add the gradient of the states after a step, from the layer above, to dh."""
    for unit in range(begin, end, across):
        for s in range(R):
            to, source = dh[(unit - begin) // across * R + s], dH[row + s, unit:]
            for j in range(min(across, end - unit)):
                to[j] += source[j]


@jit
def units_of(worker, n, lanes):
    """Return (begin, end, units): the first and last + 1 of this thread's units, and their number with padding."""
    begin, end = partition(worker, -(-n // lanes))
    begin, end = begin * lanes, end * lanes
    return begin, min(n, end), end - begin


@jit
def multiply_inputs(worker, G, X, Wx, gates, n, x_along, wx_down):
    """G = X W_x.        G  [rows, gates * n + lanes or more]        X  [rows, m], or [gates * rows, m]: masked per gate

    x_along, wx_down  scratch for X packed along rows and W_x down columns; see bfloat16.py
    """
    m, rows, lanes = Wx.shape[0], G.shape[0], VECTOR // G.itemsize
    if X.shape[0] == rows:
        linear.multiply(worker, G[:, : Wx.shape[1]], X, Wx, x_along, wx_down, False)
        return
    pack_down(worker, wx_down, Wx)
    sync(worker)
    weights = paired(wx_down, Wx)
    begin, end = partition(worker, rows, ROWS)
    wide = -(-n // lanes) * lanes  # columns past the gate's n are overwritten by the next gate
    for k in range(gates):
        x = left(x_along, (begin, 0), X[k * rows + begin : k * rows + end, :m])
        product(G[begin:end, k * n : k * n + wide], x, weights[:, k * n :], False)
    G[begin:end, gates * n :] = 0


@jit
def copy_columns(panels, W, gates, begin, end, units, group, groups):
    """Copy the columns of W for units begin .. end - 1 into a group's share of the panels, every `groups`-th one.

    Each gate takes `units` columns, zero-padded.
    """
    n, lanes = W.shape[0], VECTOR // W.itemsize
    across = WIDE * lanes
    for column in range(0, gates * units, lanes):
        if column // across % groups != group:
            continue
        panel, vector = column // across * n, column % across
        gate, u = column // units, begin + column % units
        used = min(lanes, end - u)
        for k in range(n):
            to, source = panels[panel + k, vector : vector + lanes], W[k, gate * n + u :]
            if used == lanes:
                for j in range(lanes):
                    to[j] = source[j]
            else:
                for j in range(lanes):
                    to[j] = source[j] if j < used else 0


@jit
def multiply_states(sums, states, packed, gates, units, K, each, t):
    """sums = h_{t-1} W_h for a thread's units.

    sums    [B, gates * units]
    states  h of K * each rows, of which the first B are masked for the first gate, or for all gates
    packed  the panels
    """
    B, terms, lanes = sums.shape[0], states.shape[1], VECTOR // sums.itemsize
    across = WIDE * lanes
    step = lanes if K == gates else across  # with masks per gate, a panel may hold vectors of several gates
    last = (gates * units - 1) // step * step
    for turn in range(0, last + 1, step):
        u = last - turn if t % 2 else turn
        width = min(step, gates * units - u)
        h, p, d = u // units * each if K == gates else 0, u // across * terms, u % across
        product(sums[:, u : u + width], states[h : h + B], packed[p : p + terms, d : d + width], False)


@jit
def hide(HM, H, masks, row, first, last, begin, end, hm_along):
    """HM = H * mask, for each mask and a thread's sequences and units of one step; also pack HM as bfloat16."""
    for k in range(masks.shape[0]):
        for s in range(first, last):
            hm, h, mask = HM[k * H.shape[0] + row + s, begin:end], H[row + s, begin:end], masks[k, s, begin:end]
            for u in range(h.size):
                hm[u] = h[u] * mask[u]
    for base in range(row, HM.shape[0], H.shape[0]):
        left(hm_along, (base + first, begin // 2), HM[base + first : base + last, begin:end])


@jit
def transpose_inputs(worker, WxT, Wx, wxt_down, gates, n):
    """Transpose W_x, and pack each gate of the result as bfloat16."""
    begin, end = partition(worker, n, 2)
    for k in range(gates):
        gate = slice(k * n + begin, k * n + end)
        transpose(WxT[gate], Wx[:, gate])
        right(wxt_down, (k * ((n + 1) // 2) + begin // 2, 0), WxT[gate])


@jit
def copy_rows(panels, panels_down, first, W, gates, begin, end, group, groups):
    """Transpose rows of W into a group's share of the panels from `first` on, and pack each gate; see copy_columns."""
    n, across, half = W.shape[0], WIDE * (VECTOR // W.itemsize), (W.shape[0] + 1) // 2
    for unit in range(begin + group * across, end, groups * across):
        panel = first + (unit - begin) // across
        rows = panels[panel * gates * n :][: gates * n]
        transpose(rows, W[unit : min(end, unit + across), : gates * n])
        for k in range(gates):
            right(panels_down, ((panel * gates + k) * half, 0), rows[k * n : (k + 1) * n])


@jit
def carry_back(dh, masked, errors, packed, masks, first, begin, end, t):
    """dh += errors W_h^T times masks, for units begin .. end - 1.

    dh, masked  [n_panels * R, WIDE lanes]: the gradient of h before W_h, and scratch       packed  panels of copy_rows
    errors      [R, gates * n], or packed: the gradient of the gate preactivations, from sequence `first` on
    """
    K, (R, size), lanes = masks.shape[0], errors.shape, VECTOR // dh.itemsize
    across, terms = WIDE * lanes, size // max(1, K)
    last = (end - begin - 1) // across
    for turn in range(last + 1):
        panel = last - turn if t % 2 else turn
        unit = begin + panel * across
        units = min(across, end - unit)
        c, p, padded = panel * R, panel * size, -(-units // lanes) * lanes
        target = (masked if K else dh)[c : c + R, :padded]
        for k in range(0, size, terms):
            product(target, errors[:, k : k + terms], packed[p + k : p + k + terms, :padded], K == 0)
            for s in range(R if K else 0):
                mask = masks[k // terms, first + s, unit:]
                for j in range(units):
                    dh[c + s, j] += masked[c + s, j] * mask[j]


@jit
def add_inputs(worker, dX, errors, weights, block, masks_x, gates):
    """dX = errors W_x^T, times masks_x [0, 1 or gates, B, m].        weights  W_x^T        block  [rows, m]: scratch"""
    (rows, _), (K, B, m), size = dX.shape, masks_x.shape, weights.shape[0]
    if K < 2:
        linear.multiply_packed(worker, dX, errors, weights, False)
        begin, end, first, last = part(worker, dX)
        for r in range(begin, end if K else begin):
            for j in range(first, min(last, m)):
                dX[r, j] *= masks_x[0, r % B, j]
        return
    begin, end = partition(worker, rows, ROWS)
    for k in range(gates):
        gate = slice(k * size // gates, (k + 1) * size // gates)
        product(block[begin:end, : dX.shape[1]], errors[begin:end, gate], weights[gate], False)
        for r in range(begin, end):
            for j in range(m):
                value = block[r, j] * masks_x[k, r % B, j]
                dX[r, j] = value if k == 0 else dX[r, j] + value


@jit
def add_weights(worker, dW, scratch, X, each, G, rows, gates, n, accumulate):
    """dW = X^T G, or dW += it if `accumulate`, gate by gate if X is [gates * each, m], for the first `rows` of each.

    dW  [m, gates * n]        scratch  (block, XT, bfloat16 scratch for X^T packed along rows)
    X is transposed by copying: with a view, tiles would read single elements from several hundred distant rows.
    """
    block, XT, xt_along = scratch
    if X.shape[0] == each:
        linear.multiply_transposed(worker, dW, XT, xt_along, X[:rows], G, accumulate)
        begin, end, first, last = part(worker, dW)
        dW[begin:end, max(first, gates * n) : last] = 0
        return
    begin, end = partition(worker, dW.shape[0], ROWS)
    xt = XT[begin:end, :rows]
    wide = min(block.shape[1], G.shape[1] - (gates - 1) * n)
    for k in range(gates):
        transpose(xt, X[k * each : k * each + rows, begin:end])
        product(block[begin:end, :wide], left(xt_along, (begin, 0), xt), G[:, k * n :], False)
        gate = dW[:, k * n : (k + 1) * n]
        for i in range(begin, end):
            for j in range(n):
                gate[i, j] = block[i, j] + (gate[i, j] if accumulate else 0)
