"""Reference LSTM language model and gradient in plain float64 NumPy, step by step.

Parameters are a dict of arrays with the names that the layers use.
"""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(p, name, x, state, masks=None, masks_x=None):
    """Forward pass of an LSTM layer, gate by gate.

    x [T, B, m], state (h, c) [B, n] each; masks [K, B, n] and masks_x [K, B, m] multiply the gates' inputs h and x
    -> h [T, B, n], state after it, data for `lstm_backward`
    """
    W_x, W_h, b = (np.split(p[f"{name}.{part}"], 4, -1) for part in ("W_x", "W_h", "b"))
    h, c = state
    masks = np.broadcast_to(1 if masks is None or not len(masks) else masks, (4, *h.shape))
    masks_x = np.broadcast_to(1 if masks_x is None or not len(masks_x) else masks_x, (4, *x[0].shape))
    outputs, tape = [], []
    for x_t in x:
        i, f, g, o = ((masks_x[k] * x_t) @ W_x[k] + (masks[k] * h) @ W_h[k] + b[k] for k in range(4))
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        before, c = (h, c), f * c + i * g
        h = o * np.tanh(c)
        outputs.append(h)
        tape.append((x_t, *before, i, f, g, o, c))
    return np.array(outputs), (h, c), (masks, masks_x, tape)


def lstm_backward(p, name, dh, kept):
    """Backward pass: dh [T, B, n] -> dx [T, B, m], dict of gradients."""
    names = [f"{name}.{part}" for part in ("W_x", "W_h", "b")]
    W_x, W_h = (np.split(p[k], 4, 1) for k in names[:2])
    dW_x, dW_h, db = grads = [np.zeros_like(p[k]) for k in names]
    masks, masks_x, tape = kept
    dx, dh_next, dc = np.empty((*dh.shape[:2], len(p[names[0]]))), 0, 0
    for t, (x, h, c_before, i, f, g, o, c) in reversed(list(enumerate(tape))):
        d = dh[t] + dh_next
        dc = dc + d * o * (1 - np.tanh(c) ** 2)
        dz = [dc * g * i * (1 - i), dc * c_before * f * (1 - f), dc * i * (1 - g**2), d * np.tanh(c) * o * (1 - o)]
        dc = dc * f
        dW_x += np.hstack([(masks_x[k] * x).T @ dz[k] for k in range(4)])
        dW_h += np.hstack([(masks[k] * h).T @ dz[k] for k in range(4)])
        db += np.hstack(dz).sum(0)
        dx[t] = sum(masks_x[k] * (dz[k] @ W_x[k].T) for k in range(4))
        dh_next = sum(masks[k] * (dz[k] @ W_h[k].T) for k in range(4))
    return dx, dict(zip(names, grads))


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
    """tau KL(softmax(a) || softmax(z0 / tau)) [T, B] with a_j = e_target . e_j / tau (Inan et al. 2017, section 3.1).

    Also returns the gradients of its sum with respect to z0 and to the products e_target . e_j, [T, B, V] each.
    """
    counts = (targets >= 0)[..., None]
    log_y, log_z = log_softmax(E[targets] @ E.T / tau), log_softmax(z0 / tau)
    y, z = np.exp(log_y), np.exp(log_z)
    kl = (y * (log_y - log_z)).sum(-1, keepdims=True)
    return (counts * tau * kl)[..., 0], counts * (z - y), counts * y * (log_y - log_z - kl)


def language_model(p, c, ids, targets, state, masks, gate_masks, weight_masks=None):
    """Return nats [T, B], the state after them, and the gradient of the objective, with emb_in and emb_out separate.

    c           an LstmConfig
    masks       dict: site -> mask. Sites: "word", "in", a layer's number, "after" the linear map; missing ones: 1
    gate_masks  for each layer (masks, masks_x), as in `lstm`
    weight_masks  dict: name of a parameter -> mask of its elements
    """
    weight_masks = weight_masks or {}
    p = {name: array * weight_masks.get(name, 1) for name, array in p.items()}
    mask = lambda site: 1 if masks.get(site) is None else masks[site]
    T, B = ids.shape
    E, W = p["emb_in"], p["emb_out"]
    tapes, ends = [], []
    x = E[ids] * mask("word") * mask("in")
    for k in range(c.layers):
        h, end, tape = lstm(p, f"lstm{k + 1}", x, [part[0] for part in state[2 * k : 2 * k + 2]], *gate_masks[k])
        tapes.append(tape)
        ends += [part[None] for part in end]
        x = h * mask(k)
    top, raw = x, h
    if "proj.W" in p:
        x = (top @ p["proj.W"] + p.get("proj.b", 0)) * mask("after")
    z0 = x @ W.T
    nll, dz = cross_entropy(z0 + p.get("emb_out.b", 0), targets)

    scale = 1 / (B if c.loss_scale == "sum" else T * B)
    dz, weight = (1 - c.augment_share) * dz, c.augment + c.augment_share * c.tau * len(E)
    grads = {"emb_in": np.zeros_like(E), "emb_out.b": scale * dz.sum((0, 1))}
    if weight:
        _, dz_more, d_products = augmentation(z0, E, targets, c.tau)
        dz = dz + weight * dz_more
        if not c.detach:
            d_products *= scale * weight
            grads["emb_in"] += np.einsum("tbv,tbm->vm", d_products, E[targets])
            np.add.at(grads["emb_in"], targets, d_products @ E)
    dz *= scale
    grads["emb_out"] = np.einsum("tbv,tbn->vn", dz, x)
    dx = dz @ W
    if "proj.W" in p:
        dx = dx * mask("after")
        grads["proj.W"] = np.einsum("tbm,tbn->mn", top, dx) + scale * c.projection * p["proj.W"]
        grads["proj.b"] = dx.sum((0, 1))
        dx = dx @ p["proj.W"].T
    dx = dx + scale * T * B * c.ar * 2 * top / top.size
    change = np.diff(raw, axis=0) / raw[1:].size
    later, earlier = (np.pad(change, (ends, (0, 0), (0, 0))) for ends in ((1, 0), (0, 1)))
    for k in reversed(range(c.layers)):
        dx = dx * mask(k)
        if k + 1 == c.layers:
            dx += 2 * c.tar * scale * T * B * (later - earlier)
        dx, found = lstm_backward(p, f"lstm{k + 1}", dx, tapes[k])
        grads |= found
    np.add.at(grads["emb_in"], ids, dx * mask("in") * mask("word"))
    return nll, tuple(ends), {name: grads[name] * weight_masks.get(name, 1) for name in p}
