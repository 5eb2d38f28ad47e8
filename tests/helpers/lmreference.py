"""Reference LSTM language model in plain float64 NumPy, step by step.

Parameters are a dict of arrays with the names that the layers use.
"""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(p, name, x, state, masks=None, masks_x=None):
    """Forward pass of an LSTM layer, gate by gate.

    x [T, B, m], state (h, c) [B, n] each; masks [K, B, n] and masks_x [K, B, m] multiply the gates' inputs h and x
    -> h [T, B, n], state after it
    """
    W_x, W_h, b = (np.split(p[f"{name}.{part}"], 4, -1) for part in ("W_x", "W_h", "b"))
    h, c = state
    masks = np.broadcast_to(1 if masks is None or not len(masks) else masks, (4, *h.shape))
    masks_x = np.broadcast_to(1 if masks_x is None or not len(masks_x) else masks_x, (4, *x[0].shape))
    outputs = []
    for x_t in x:
        i, f, g, o = ((masks_x[k] * x_t) @ W_x[k] + (masks[k] * h) @ W_h[k] + b[k] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outputs.append(h)
    return np.array(outputs), (h, c)


def log_softmax(scores):
    scores = scores - scores.max(-1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(-1, keepdims=True))


def cross_entropy(scores, targets):
    """Return the nats [T, B] of targets (0 if a target is -1), and the gradient [T, B, V] of their sum."""
    logp, counts = log_softmax(scores), targets >= 0
    chosen = np.eye(scores.shape[-1])[np.maximum(targets, 0)]
    nll = -np.where(chosen, logp, 0).sum(-1) * counts
    return nll, (np.exp(logp) - chosen) * counts[..., None]


def augmentation(z0, E, targets, tau):
    """tau KL(softmax(a) || softmax(z0 / tau)) [T, B], a_j = e_target . e_j / tau (Inan et al. 2017, section 3)."""
    log_y, log_z = log_softmax(E[targets] @ E.T / tau), log_softmax(z0 / tau)
    return (targets >= 0) * tau * (np.exp(log_y) * (log_y - log_z)).sum(-1)


def language_model(p, c, ids, targets, state, masks, gate_masks, weight_masks=None):
    """Return nats [T, B], and the state after them.

    c           an LstmConfig
    masks       dict: site -> mask. Sites: "word", "in", a layer's number, "after" the linear map; missing ones: 1
    gate_masks  for each layer (masks, masks_x), as in `lstm`
    weight_masks  dict: name of a parameter -> mask of its elements
    """
    p = {name: array * (weight_masks or {}).get(name, 1) for name, array in p.items()}
    mask = lambda site: 1 if masks.get(site) is None else masks[site]
    x, ends = p["emb_in"][ids] * mask("word") * mask("in"), []
    for k in range(c.layers):
        h, end = lstm(p, f"lstm{k + 1}", x, [part[0] for part in state[2 * k : 2 * k + 2]], *gate_masks[k])
        ends += [part[None] for part in end]
        x = h * mask(k)
    if "proj.W" in p:
        x = (x @ p["proj.W"] + p.get("proj.b", 0)) * mask("after")
    return cross_entropy(x @ p["emb_out"].T + p.get("emb_out.b", 0), targets)[0], tuple(ends)
