"""GRU and RHN layers in plain float64 NumPy, step by step. Parameters are dicts of arrays with the cells' names."""

import numpy as np
from lmreference import sigmoid


def gru(p, name, x, state, masks=None, masks_x=None):
    """Forward pass of a GRU: x [T, B, m], state (h,) [B, n]; masks [K, B, n], masks_x [K, B, m] -> h [T, B, n], state.

    Gates are c, r, u in W_x and b, and r, u, c in W_h.
    """
    (W_c, W_r, W_u), (U_r, U_u, U_c) = (np.split(p[f"{name}.{part}"], 3, -1) for part in ("W_x", "W_h"))
    b_c, b_r, b_u = np.split(p[f"{name}.b"], 3)
    (h,) = state
    m_r, m_u, m_c = np.broadcast_to(1 if masks is None else masks, (3, *h.shape))
    x_c, x_r, x_u = np.broadcast_to(1 if masks_x is None else masks_x, (3, *x[0].shape))
    outputs = []
    for row in x:
        r = sigmoid((row * x_r) @ W_r + (h * m_r) @ U_r + b_r)
        u = sigmoid((row * x_u) @ W_u + (h * m_u) @ U_u + b_u)
        c = np.tanh((row * x_c) @ W_c + b_c + r * ((h * m_c) @ U_c))
        h = u * h + (1 - u) * c
        outputs.append(h)
    return np.array(outputs), (h,)


def rhn(p, name, x, state, masks=None, masks_x=None):
    """Forward pass of an RHN: as `gru`, with masks [1, B, n] and masks_x [1, B, m]."""
    (s,) = state
    W, R, b = (p[f"{name}.{part}"] for part in ("W_x", "R", "b"))
    mask, mask_x = (1 if given is None else given[0] for given in (masks, masks_x))
    n, outputs = s.shape[1], []
    for row in x:
        for depth in range(len(R)):
            scores = (s * mask) @ R[depth] + b[depth] + ((row * mask_x) @ W if depth == 0 else 0)
            k, g = np.tanh(scores[:, :n]), sigmoid(scores[:, n:])
            s = s + g * (k - s)
        outputs.append(s)
    return np.array(outputs), (s,)
