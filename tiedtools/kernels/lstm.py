"""The LSTM layer over T steps of B sequences, and its gradient.

Zaremba, Sutskever and Vinyals 2014, equations of section 3.1; Gal and Ghahramani 2016 for the masks. At step t,

    i, f, g, o = act(x_t W_x + h_{t-1} W_h + b)        sigmoid, sigmoid, tanh, sigmoid
    c_t = f c_{t-1} + i g        h_t = o tanh(c_t)

Rows are (step, sequence); columns of G and the weights are (gate, unit), with gates in the order i, f, g, o. Each
thread owns all gates of some units, whose number is a multiple of the `lanes` of a vector register. It copies their
columns of W_h once into n_panels panels, each as wide as a tile, in the order in which the tiles read them.

h_{t-1} may be masked before W_h: not at all, by one mask, or by one per gate. x_t is given once, or masked per gate.
"""

from tiedtools.kernels.barrier import partition, sync
from tiedtools.kernels.bfloat16 import left, paired, right
from tiedtools.kernels.elementwise import add_rows, transpose
from tiedtools.kernels.jit import jit
from tiedtools.kernels.product import part, product
from tiedtools.kernels.scalar import sigmoid, tanh
from tiedtools.kernels.tiles import ROWS, VECTOR, WIDE

GATES = 4


@jit
def forward(worker, G, HM, H, C, panels, sums, bf16, X, Wx, Wh, b, masks, fresh):
    """Forward pass of the layer.

    G      [T * B, 4n + lanes], set to i, f, g, o    X   [T * B or 4 T * B, m]
    Wx  [m, 4n]        Wh  [n, 4n]        b  [4n]
    H, C   [(T + 1) * B, n]: row b is the initial state of sequence b; the rest is set to h_t and c_t
    HM     [K * (T + 1) * B, n], set to h times each mask; H itself without masks
    masks  [K, B, n], K = 0, 1 or 4
    panels [threads * n_panels * n, WIDE lanes] and sums  [threads, B, n_panels * WIDE lanes]: scratch; n_panels must
           hold all gates of the units of one thread
    fresh  copy W_h into the panels; False if they already hold it
    bf16   scratch for X and HM packed along rows, W_x and each panel down columns; see bfloat16.py
    """
    m, n, (K, B, _), (thread, threads, _) = Wx.shape[0], Wh.shape[0], masks.shape, worker
    rows, lanes = G.shape[0], VECTOR // sums.itemsize
    across = WIDE * lanes
    x_along, hm_along, wx_down, panels_down = bf16
    sums, n_panels = sums[thread], panels.shape[0] // n // threads
    begin, end = partition(worker, m, 2)
    right(wx_down, (begin // 2, 0), Wx[begin:end])
    sync(worker)
    weights = paired(wx_down, Wx)
    if X.shape[0] == rows:
        begin, end, first, last = part(worker, G)
        x = left(x_along, (begin, 0), X[begin:end, :m])
        product(G[begin:end, first:last], x, weights[:, first:last], False)
    else:
        begin, end = partition(worker, rows, ROWS)
        wide = -(-n // lanes) * lanes  # columns past a gate's own are overwritten by the next gate
        for k in range(GATES):
            x = left(x_along, (begin, 0), X[k * rows + begin : k * rows + end, :m])
            product(G[begin:end, k * n : k * n + wide], x, weights[:, k * n :], False)
        G[begin:end, GATES * n :] = 0
    begin, end = partition(worker, -(-n // lanes))
    begin, end = begin * lanes, end * lanes
    units = end - begin
    end = min(n, end)
    own = panels[thread * n_panels * n :]
    if fresh:
        pack(own, Wh, begin, end, units, lanes)
    for panel in range(n_panels):
        right(panels_down, ((thread * n_panels + panel) * ((n + 1) // 2), 0), own[panel * n : (panel + 1) * n])
    states, packed = paired(hm_along, HM), paired(panels_down, panels)
    terms = packed.shape[0] // n_panels // threads
    packed = packed[thread * n_panels * terms :]
    hide(HM, H, masks, 0, begin, end, hm_along)
    sync(worker)
    for row in range(0, rows, B):
        step = lanes if K == GATES else across  # with masks per gate, a panel may hold vectors of several gates
        for u in range(0, GATES * units, step):
            width = min(step, GATES * units - u)
            h, p, d = row + (u // units * (rows + B) if K == GATES else 0), u // across * terms, u % across
            product(sums[:, u : u + width], states[h : h + B, :terms], packed[p : p + terms, d : d + width], False)
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
def hide(HM, H, masks, row, begin, end, hm_along):
    """HM = H * mask, for each mask and for units begin .. end - 1 of one step; also pack HM as bfloat16."""
    K, B, _ = masks.shape
    for k in range(K):
        for s in range(B):
            for u in range(begin, end):
                HM[k * H.shape[0] + row + s, u] = H[row + s, u] * masks[k, s, u]
    for first in range(row, HM.shape[0], H.shape[0]):
        left(hm_along, (first, begin // 2), HM[first : first + B, begin:end])


@jit
def pack(panels, Wh, begin, end, units, lanes):
    """Copy the columns of W_h for units begin .. end - 1 into panels; each gate takes `units` columns, zero-padded."""
    n, across = Wh.shape[0], WIDE * lanes
    for column in range(0, GATES * units, lanes):
        panel, vector = column // across * n, column % across
        gate, u = column // units, begin + column % units
        own = min(lanes, end - u)
        for k in range(n):
            to, source = panels[panel + k, vector : vector + lanes], Wh[k, gate * n + u :]
            if own == lanes:
                for j in range(lanes):
                    to[j] = source[j]
            else:
                for j in range(lanes):
                    to[j] = source[j] if j < own else 0


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
    m, n, (K, B, _), (thread, threads, _) = Wx.shape[0], Wh.shape[0], masks.shape, worker
    rows, lanes, half = dH.shape[0], VECTOR // sums.itemsize, (n + 1) // 2
    g_along, wxt_down, xt_along, g_down, panels_down = bf16
    across = WIDE * lanes
    dh, masked, n_panels = sums[0, thread], sums[1, thread], panels.shape[0] // (GATES * n) // threads
    begin, end = partition(worker, n, 2)
    for k in range(GATES):
        gate = slice(k * n + begin, k * n + end)
        transpose(WxT[gate], Wx[:, gate])
        right(wxt_down, (k * half + begin // 2, 0), WxT[gate])
    begin, end = partition(worker, -(-n // lanes))
    begin, end = begin * lanes, min(n, end * lanes)
    for unit in range(begin, end, across):
        panel = thread * n_panels + (unit - begin) // across
        own = panels[panel * GATES * n :][: GATES * n]
        transpose(own, Wh[unit : min(end, unit + across), : GATES * n])
        for k in range(GATES):
            right(panels_down, ((panel * GATES + k) * half, 0), own[k * n : (k + 1) * n])
    errors, packed, weights = paired(g_along, G), paired(panels_down, panels), paired(wxt_down, WxT)
    for s in range(B):
        dC[s, begin:end] = 0
    dh[:] = 0
    products = max(1, K)
    size = weights.shape[0]
    terms = size // products
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
        for unit in range(begin, end, across):
            panel = (unit - begin) // across
            c, p = panel * B, (thread * n_panels + panel) * size
            used = -(-min(across, end - unit) // lanes) * lanes
            target = (masked if K else dh)[c : c + B, :used]
            for k in range(0, size, terms):
                product(target, errors[row : row + B, k : k + terms], packed[p + k : p + k + terms, :used], False)
                if K:
                    uncover(dh, masked, masks, k // terms, c, unit, min(across, end - unit))
    begin, end = partition(worker, rows, 2)
    right(g_down, (begin // 2, 0), G[begin:end])
    begin, end = partition(worker, rows, ROWS)
    if X.shape[0] == rows:
        product(dX[begin:end], errors[begin:end, :size], weights, False)
    else:
        for k in range(GATES):
            gate = slice(k * size // GATES, (k + 1) * size // GATES)
            product(block[begin:end, : dX.shape[1]], errors[begin:end, gate], weights[gate], False)
            for r in range(begin, end):
                for j in range(m):
                    value = block[r, j] * masks_x[k, r % B, j]
                    dX[r, j] = value if k == 0 else dX[r, j] + value
    sync(worker)  # before block and XT are reused for other rows, here and below
    add_weights(worker, dWx, X, rows, paired(g_down, G), block, XT, xt_along, m, n, rows, accumulate_x)
    sync(worker)
    add_weights(worker, dWh, HM, rows + B, paired(g_down, G), block, XT, xt_along, n, n, rows, accumulate_h)


@jit
def add_weights(worker, dW, X, each, G, block, XT, xt_along, m, n, rows, accumulate):
    """dW = X^T G, or dW += it if `accumulate`, gate by gate if X is [4 * each, m].

    dW  [m, 4n]        block, XT, xt_along: scratch
    X is transposed by copying: with a view, tiles would read single elements from several hundred distant rows.
    """
    begin, end = partition(worker, m, ROWS)
    own = XT[begin:end, :rows]
    if X.shape[0] == each:
        transpose(own, X[:rows, begin:end])
        product(dW[begin:end], left(xt_along, (begin, 0), own), G[:, : dW.shape[1]], accumulate)
        return
    wide = min(block.shape[1], G.shape[1] - (GATES - 1) * n)
    for k in range(GATES):
        transpose(own, X[k * each : k * each + rows, begin:end])
        product(block[begin:end, :wide], left(xt_along, (begin, 0), own), G[:, k * n :], False)
        gate = dW[:, k * n : (k + 1) * n]
        for i in range(begin, end):
            for j in range(n):
                gate[i, j] = block[i, j] + (gate[i, j] if accumulate else 0)


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


@jit
def uncover(dh, masked, masks, k, c, unit, units):
    """dh = masked * mask k, or dh += it for masks after the first."""
    for s in range(masks.shape[1]):
        for j in range(units):
            value = masked[c + s, j] * masks[k, s, unit + j]
            dh[c + s, j] = value if k == 0 else dh[c + s, j] + value
