"""Language models with GRU and RHN cells in PyTorch, as a reference; see tests/models/lm/test_cells_torch.py."""

import torch
from torch.nn import functional as F


def gru(p, x, h, masks, masks_x):
    """A GRU over x [T, B, m] from h [B, n]; masks: one for all gates, one per gate, or 1. Gates are c, r, u in p."""
    (W_c, W_r, W_u), (U_r, U_u, U_c), (b_c, b_r, b_u) = (p(part).chunk(3, -1) for part in ("W_x", "W_h", "b"))
    (m_r, m_u, m_c), (x_c, x_r, x_u) = (list(each) * (3 // len(each)) for each in (masks, masks_x))
    rows = []
    for row in x:
        r = torch.sigmoid((row * x_r) @ W_r + (h * m_r) @ U_r + b_r)
        u = torch.sigmoid((row * x_u) @ W_u + (h * m_u) @ U_u + b_u)
        c = torch.tanh((row * x_c) @ W_c + b_c + r * ((h * m_c) @ U_c))
        h = u * h + (1 - u) * c
        rows.append(h)
    return torch.stack(rows)


def rhn(p, x, s, masks, masks_x):
    """An RHN, as `gru`."""
    W, R, b = p("W_x"), p("R"), p("b")
    rows = []
    for row in x:
        inputs = (row * masks_x[0]) @ W
        for depth in range(len(R)):
            new, gate = (F.linear(s * masks[0], R[depth].T, b[depth]) + inputs * (depth == 0)).chunk(2, -1)
            s = torch.lerp(s, new.tanh(), gate.sigmoid())
        rows.append(s)
    return torch.stack(rows)


class Oracle:
    """The model of an LstmLM whose cell is "gru" or "rhn"; parameters by name, tied ones once, have its values."""

    def __init__(self, model):
        self.config = model.config
        self.p = {name: torch.tensor(array.copy(), requires_grad=True) for name, array in model.params.owners()}
        self.owner = model.params.names

    def __call__(self, name):
        return self.p[self.owner[name]]

    def scores(self, ids, state, masks):
        """Return scores [T, B, V] and the state after `ids`, int64 [T, B]; masks as in torchlm.Oracle.through."""
        x, behind = self("emb_in")[ids] * masks["in"], []
        listed = lambda mask: [1] if isinstance(mask, int) else mask
        for k, s in enumerate(state):
            layer, run = f"{self.config.cell}{k + 1}.", {"gru": gru, "rhn": rhn}[self.config.cell]
            x = run(lambda part, layer=layer: self(layer + part), x, s, listed(masks["h"][k]), listed(masks["x"][k]))
            behind.append(x[-1].detach())
            x = x * masks["up"][k]
        return x @ self("emb_out").T + self("emb_out.b"), behind

    def step(self, ids, targets, state, lr, clip, masks):
        """Do an SGD step; returns (nats, norm before clipping, state)."""
        scores, state = self.scores(ids, state, masks)
        nats = F.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="sum")
        for tensor in self.p.values():
            tensor.grad = None
        (nats / targets.numel()).backward()
        norm = torch.cat([tensor.grad.flatten() for tensor in self.p.values()]).norm()
        with torch.no_grad():
            for tensor in self.p.values():
                tensor -= lr * min(1, clip / norm) * tensor.grad
        return nats.item(), norm.item(), state
