"""What the kernels of recurrent cells share: products with W_x and W_h, masks, and the gradients of both.

Rows are (step, sequence); columns of weights are (gate, unit). Each thread owns all gates of some units, whose number
is a multiple of the `lanes` of a vector register. It copies their columns of W_h once into n_panels panels, each as
wide as a tile, in the order in which the tiles read them. Odd steps read the panels from last to first: those read
last in the step before are still in the cache.

h_{t-1} may be masked before W_h: not at all, by one mask, or by one per gate. x_t is given once, or masked per gate.
"""

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.bfloat16 import left, paired, right
from tiedtools.kernels.base.elementwise import transpose
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import part, product
from tiedtools.kernels.base.tiles import ROWS, VECTOR, WIDE


@jit
def owned(worker, n, lanes):
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
    begin, end = partition(worker, m, 2)
    right(wx_down, (begin // 2, 0), Wx[begin:end])
    sync(worker)
    weights = paired(wx_down, Wx)
    if X.shape[0] == rows:
        begin, end, first, last = part(worker, G[:, : Wx.shape[1]])
        x = left(x_along, (begin, 0), X[begin:end, :m])
        product(G[begin:end, first:last], x, weights[:, first:last], False)
    else:
        begin, end = partition(worker, rows, ROWS)
        wide = -(-n // lanes) * lanes  # columns past a gate's own are overwritten by the next gate
        for k in range(gates):
            x = left(x_along, (begin, 0), X[k * rows + begin : k * rows + end, :m])
            product(G[begin:end, k * n : k * n + wide], x, weights[:, k * n :], False)
        G[begin:end, gates * n :] = 0


@jit
def pack(panels, W, gates, begin, end, units):
    """Copy the columns of W for units begin .. end - 1 into panels; each gate takes `units` columns, zero-padded."""
    n, lanes = W.shape[0], VECTOR // W.itemsize
    across = WIDE * lanes
    for column in range(0, gates * units, lanes):
        panel, vector = column // across * n, column % across
        gate, u = column // units, begin + column % units
        own = min(lanes, end - u)
        for k in range(n):
            to, source = panels[panel + k, vector : vector + lanes], W[k, gate * n + u :]
            if own == lanes:
                for j in range(lanes):
                    to[j] = source[j]
            else:
                for j in range(lanes):
                    to[j] = source[j] if j < own else 0


@jit
def pack_down(panels_down, panels, first, n_panels, n):
    """Pack n_panels panels of n rows, from panel `first` on, as bfloat16."""
    for panel in range(first, first + n_panels):
        right(panels_down, (panel * ((n + 1) // 2), 0), panels[panel * n : (panel + 1) * n])


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
def hide(HM, H, masks, row, begin, end, hm_along):
    """HM = H * mask, for each mask and for units begin .. end - 1 of one step; also pack HM as bfloat16."""
    K, B, _ = masks.shape
    for k in range(K):
        for s in range(B):
            hm, h, mask = HM[k * H.shape[0] + row + s, begin:end], H[row + s, begin:end], masks[k, s, begin:end]
            for u in range(h.size):
                hm[u] = h[u] * mask[u]
    for first in range(row, HM.shape[0], H.shape[0]):
        left(hm_along, (first, begin // 2), HM[first : first + B, begin:end])


@jit
def transpose_inputs(worker, WxT, Wx, wxt_down, gates, n):
    """W_x^T, also packed as bfloat16, each gate by itself."""
    begin, end = partition(worker, n, 2)
    for k in range(gates):
        gate = slice(k * n + begin, k * n + end)
        transpose(WxT[gate], Wx[:, gate])
        right(wxt_down, (k * ((n + 1) // 2) + begin // 2, 0), WxT[gate])


@jit
def pack_back(panels, panels_down, first, W, gates, begin, end):
    """Copy the rows of W for units begin .. end - 1, transposed, into panels from `first` on, each gate by itself."""
    n, across, half = W.shape[0], WIDE * (VECTOR // W.itemsize), (W.shape[0] + 1) // 2
    for unit in range(begin, end, across):
        panel = first + (unit - begin) // across
        own = panels[panel * gates * n :][: gates * n]
        transpose(own, W[unit : min(end, unit + across), : gates * n])
        for k in range(gates):
            right(panels_down, ((panel * gates + k) * half, 0), own[k * n : (k + 1) * n])


@jit
def carry_back(dh, masked, errors, packed, masks, begin, end, accumulate, t):
    """dh = errors W_h^T times masks for units begin .. end - 1, or dh += it if `accumulate`.

    dh, masked  [n_panels * B, WIDE lanes]: the gradient of h_{t-1}, and scratch        packed  the panels of pack_back
    errors      [B, gates * n], or packed: the gradient of the gate preactivations
    """
    (K, B, _), size, lanes = masks.shape, errors.shape[1], VECTOR // dh.itemsize
    across, terms = WIDE * lanes, size // max(1, K)
    last = (end - begin - 1) // across
    for turn in range(last + 1):
        panel = last - turn if t % 2 else turn
        unit = begin + panel * across
        own = min(across, end - unit)
        c, p, used = panel * B, panel * size, -(-own // lanes) * lanes
        target = (masked if K else dh)[c : c + B, :used]
        for k in range(0, size, terms):
            product(target, errors[:, k : k + terms], packed[p + k : p + k + terms, :used], accumulate and not K)
            if K:
                uncover(dh, masked, masks, k // terms, c, unit, own, accumulate or k > 0)


@jit
def uncover(dh, masked, masks, k, c, unit, units, accumulate):
    """dh = masked * mask k, or dh += it if `accumulate`."""
    for s in range(masks.shape[1]):
        for j in range(units):
            value = masked[c + s, j] * masks[k, s, unit + j]
            dh[c + s, j] = dh[c + s, j] + value if accumulate else value


@jit
def add_inputs(worker, dX, errors, weights, block, masks_x, gates):
    """dX = errors W_x^T, times masks_x [0, 1 or gates, B, m].        weights  W_x^T        block  [rows, m]: scratch"""
    (rows, _), (K, B, m), size = dX.shape, masks_x.shape, weights.shape[0]
    begin, end = partition(worker, rows, ROWS)
    if K < 2:
        product(dX[begin:end], errors[begin:end, :size], weights, False)
        for r in range(begin, end if K else begin):
            for j in range(m):
                dX[r, j] *= masks_x[0, r % B, j]
        return
    for k in range(gates):
        gate = slice(k * size // gates, (k + 1) * size // gates)
        product(block[begin:end, : dX.shape[1]], errors[begin:end, gate], weights[gate], False)
        for r in range(begin, end):
            for j in range(m):
                value = block[r, j] * masks_x[k, r % B, j]
                dX[r, j] = value if k == 0 else dX[r, j] + value


@jit
def add_weights(worker, dW, X, each, G, gates, block, XT, xt_along, m, n, rows, accumulate):
    """dW = X^T G, or dW += it if `accumulate`, gate by gate if X is [gates * each, m].

    dW  [m, gates * n]        block, XT, xt_along: scratch
    X is transposed by copying: with a view, tiles would read single elements from several hundred distant rows.
    """
    begin, end = partition(worker, m, ROWS)
    own = XT[begin:end, :rows]
    if X.shape[0] == each:
        transpose(own, X[:rows, begin:end])
        product(dW[begin:end], left(xt_along, (begin, 0), own), G[:, : dW.shape[1]], accumulate)
        dW[begin:end, gates * n :] = 0
        return
    wide = min(block.shape[1], G.shape[1] - (gates - 1) * n)
    for k in range(gates):
        transpose(own, X[k * each : k * each + rows, begin:end])
        product(block[begin:end, :wide], left(xt_along, (begin, 0), own), G[:, k * n :], False)
        gate = dW[:, k * n : (k + 1) * n]
        for i in range(begin, end):
            for j in range(n):
                gate[i, j] = block[i, j] + (gate[i, j] if accumulate else 0)
