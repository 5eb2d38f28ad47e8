"""Language models of every kind in PyTorch, whose gradients are those of its automatic differentiation."""

import numpy as np
import torch
from torch.nn import functional as F


def each(mask, n):
    """Return a mask for each of n gates: of one for all, one per gate, or 1."""
    return [1] * n if isinstance(mask, int) else list(mask) * (n // len(mask))


def lstm(p, x, state, masks, masks_x):
    """An LSTM over x [T, B, m] from the state (h, c) [B, n] -> h [T, B, n], state; p: its parameters by name."""
    W_x, W_h, b = (p(part).chunk(4, -1) for part in ("W_x", "W_h", "b"))
    gates = list(zip(each(masks_x, 4), W_x, each(masks, 4), W_h, b))
    (h, c), rows = state, []
    for row in x:
        i, f, g, o = ((row * over) @ W + (h * on) @ U + bias for over, W, on, U, bias in gates)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        rows.append(h)
    return torch.stack(rows), (h, c)


def gru(p, x, state, masks, masks_x):
    """A GRU, as `lstm`; gates are c, r, u in W_x and b, and r, u, c in W_h."""
    (W_c, W_r, W_u), (U_r, U_u, U_c), (b_c, b_r, b_u) = (p(part).chunk(3, -1) for part in ("W_x", "W_h", "b"))
    (m_r, m_u, m_c), (x_c, x_r, x_u) = each(masks, 3), each(masks_x, 3)
    (h,), rows = state, []
    for row in x:
        r = torch.sigmoid((row * x_r) @ W_r + (h * m_r) @ U_r + b_r)
        u = torch.sigmoid((row * x_u) @ W_u + (h * m_u) @ U_u + b_u)
        c = torch.tanh((row * x_c) @ W_c + b_c + r * ((h * m_c) @ U_c))
        h = u * h + (1 - u) * c
        rows.append(h)
    return torch.stack(rows), (h,)


def rhn(p, x, state, masks, masks_x):
    """An RHN, as `lstm`."""
    W, R, b = p("W_x"), p("R"), p("b")
    ((mask,), (mask_x,)), (s,), rows = (each(masks, 1), each(masks_x, 1)), state, []
    for row in x:
        inputs = (row * mask_x) @ W
        for depth in range(len(R)):
            new, gate = (F.linear(s * mask, R[depth].T, b[depth]) + inputs * (depth == 0)).chunk(2, -1)
            s = torch.lerp(s, new.tanh(), gate.sigmoid())
        rows.append(s)
    return torch.stack(rows), (s,)


class Oracle:
    """The model of an LstmLM, with its values: parameters by name, tied ones once; `step` trains it."""

    def __init__(self, model):
        self.config, self.owner, subwords = model.config, model.params.names, getattr(model.vocab, "subwords", None)
        self.p = {name: torch.tensor(array.copy(), requires_grad=True) for name, array in model.params.owners()}
        self.units = torch.tensor(subwords.rows).long() if self.config.subwords else None  # [V, L], 0 for padding
        self.optimizer = torch.optim.SGD(self.p.values(), lr=1.0, weight_decay=self.config.lr_weight_decay)

    def __call__(self, name, default=None):
        return self.p[self.owner[name]] if name in self.owner else default

    def start(self, model, batch):
        """Return the model's start state: a list with a tuple (h, c), or (h,), of each layer."""
        parts, n = [torch.tensor(part[0]) for part in model.start(batch)], 2 if self.config.cell == "lstm" else 1
        return [tuple(parts[k : k + n]) for k in range(0, len(parts), n)]

    def table(self, side):
        """Return all word vectors of a side, [V, m], which may be composed from those of subwords."""
        c = self.config
        if not c.subwords or (side, c.reuse) == ("emb_out", "plain"):
            return self(side)
        side = "emb_in" if c.reuse == "all" else side
        E = F.pad(self(f"{side}.emb.E"), (0, 0, 1, 0))
        x = F.embedding(self.units, E)
        if c.subwords == "morphs":
            x = F.embedding_bag(self.units, E, mode="sum")
        elif c.subwords == "syllables":
            x = F.linear(x.flatten(1), self(f"{side}.proj.W").T)
        else:
            x = torch.cat([self.convolved(side, x, width) for width in range(1, len(c.widths) + 1)], 1)
        for k in range(c.highways):
            gate, new = F.linear(x, self(f"{side}.hw{k + 1}.W").T, self(f"{side}.hw{k + 1}.b")).chunk(2, 1)
            x = torch.lerp(x, new.relu(), gate.sigmoid())
        return x

    def convolved(self, side, x, width):
        W = self(f"{side}.cnn.W{width}").reshape(width, x.shape[2], -1).permute(2, 1, 0)
        return F.conv1d(x.transpose(1, 2), W, self(f"{side}.cnn.b{width}")).tanh().amax(2)

    def forward(self, ids, state, masks):
        """Return scores [T * B, V], the top layer's output before and after dropout, and the state after `ids`.

        masks  by site: "in", "after", and for each layer "up": masks [T or 1, B or 1, width] of embeddings, of the
               linear map, and of outputs; "h", "x": [K, B, width] of the gates' inputs; "W_h": of weights; 1: none
        """
        x, after = self.table("emb_in")[ids] * masks["in"], []
        for k, start in enumerate(state):
            names = lambda part, k=k: (
                self(f"{self.config.cell}{k + 1}.{part}") * (masks["W_h"][k] if part == "W_h" else 1)
            )
            cell = {"lstm": lstm, "gru": gru, "rhn": rhn}[self.config.cell]
            raw, end = cell(names, x, start, masks["h"][k], masks["x"][k])
            after.append(tuple(part.detach() for part in end))
            top = x = raw * masks["up"][k]
        if "proj.W" in self.owner:
            x = (x @ self("proj.W") + self("proj.b", 0)) * masks["after"]
        return (x @ self.table("emb_out").T + self("emb_out.b", 0)).flatten(0, 1), raw, top, after

    def step(self, ids, targets, state, lr, clip, masks, samples=None):
        """Do a step on int64 ids and targets [T, B]; returns (nats, norm before clipping, state).

        samples  for sampled softmax: the sampled words, and a function from words to their expected counts
        """
        c, wanted = self.config, targets.flatten()
        scores, raw, top, state = self.forward(ids, state, masks)
        chosen, labels = (self.sampled(scores, wanted, *samples), wanted.clamp(max=0)) if samples else (scores, wanted)
        nats = F.cross_entropy(chosen, labels, ignore_index=-1, reduction="sum")
        total = (1 - c.augment_share) * nats
        if c.projection:
            total = total + c.projection / 2 * self("proj.W").square().sum()
        if weight := c.augment + c.augment_share * c.tau * scores.shape[1]:
            total = total + weight * c.tau * self.divergence(scores, wanted)
        total = total / (targets.shape[1] if c.loss_scale == "sum" else targets.numel())
        total = total + c.ar * top.square().mean() + c.tar * (raw[1:] - raw[:-1]).square().mean()
        self.optimizer.zero_grad()
        total.backward()
        norm = torch.cat([tensor.grad.flatten() for tensor in self.p.values()]).norm()
        for tensor in self.p.values():
            tensor.grad *= min(1, clip / norm)
        self.update(lr)
        return nats.item(), norm.item(), state

    def update(self, lr):
        self.optimizer.param_groups[0]["lr"] = lr
        for state in self.optimizer.state.values():  # ASGD reads its learning rate from its state
            if "eta" in state:
                state["eta"] = torch.tensor(lr, dtype=torch.float64)
        self.optimizer.step()
        with torch.no_grad():
            for tensor in self.p.values():
                tensor *= 1 - self.config.weight_decay
            if self.config.unit_embeddings:
                self.p["emb_in"] /= self.p["emb_in"].norm(dim=1, keepdim=True)

    @staticmethod
    def sampled(scores, targets, words, expected):
        """Return corrected scores (Jean et al. 2015): target in column 0, then the samples except the target."""
        counted = targets.clamp(min=0)
        corrected = scores - torch.tensor(np.log(expected(np.arange(scores.shape[1])))).to(scores)
        words = torch.tensor(words)
        others = corrected[:, words].masked_fill(counted[:, None] == words, -torch.inf)
        return torch.cat([corrected.gather(1, counted[:, None]), others], 1)

    def divergence(self, scores, targets):
        """Sum KL(softmax(e_t E^T / tau) || softmax(z / tau)), z without bias (Inan et al. 2017, section 3)."""
        counted = targets >= 0
        E = self("emb_in").detach() if self.config.detach else self("emb_in")
        wanted = F.log_softmax(E[targets[counted]] @ E.T / self.config.tau, -1)
        given = F.log_softmax((scores - self("emb_out.b", 0))[counted] / self.config.tau, -1)
        return (wanted.exp() * (wanted - given)).sum()

    def average(self, lr):
        """Switch to averaged SGD, as awd-lstm-lm does."""
        options = dict(t0=0, lambd=0.0, weight_decay=self.config.lr_weight_decay)
        self.optimizer = torch.optim.ASGD(self.p.values(), lr=lr, **options)

    def score(self, ids, targets, state, masks):
        """Return the mean nats with the averaged parameters."""
        with torch.no_grad():
            raw = {name: tensor.clone() for name, tensor in self.p.items()}
            for tensor in self.p.values():
                tensor.copy_(self.optimizer.state[tensor]["ax"])
            nats = F.cross_entropy(self.forward(ids, state, masks)[0], targets.flatten()).item()
            for name, tensor in self.p.items():
                tensor.copy_(raw[name])
        return nats
