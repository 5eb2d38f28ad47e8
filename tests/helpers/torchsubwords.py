"""LSTM language models with composed word vectors in PyTorch, by its own layers, as a reference."""

import torch
from torch.nn import functional as F


class Composing:
    """The model of an LstmLM without dropout; parameters by name, tied ones once, have its initial values.

    rows  the units of each word, 0 for padding: int64 [V, L]
    """

    def __init__(self, model):
        self.config, self.rows = model.config, torch.tensor(model.vocab.subwords.rows).long()
        self.p = {name: torch.tensor(array.copy(), requires_grad=True) for name, array in model.params.owners()}
        self.owner = model.params.names

    def __call__(self, name):
        return self.p[self.owner[name]]

    def table(self, side):
        """Return all composed vectors of a side, [V, m]."""
        c = self.config
        E = F.pad(self(f"{side}.emb.E"), (0, 0, 1, 0))
        x = F.embedding(self.rows, E)
        if c.subwords == "morphs":
            x = F.embedding_bag(self.rows, E, mode="sum")
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

    def scores(self, ids, state):
        """Return scores [T, B, V] and the state after `ids`, int64 [T, B]."""
        c = self.config
        x, behind = self.table("emb_in")[ids], []
        for k in range(c.layers):
            (h, c_), rows = state[k], []
            W_x, W_h, b = (self(f"lstm{k + 1}.{part}") for part in ("W_x", "W_h", "b"))
            for row in x:
                i, f, g, o = (row @ W_x + h @ W_h + b).chunk(4, 1)
                c_ = f.sigmoid() * c_ + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c_.tanh()
                rows.append(h)
            x = torch.stack(rows)
            behind.append((h.detach(), c_.detach()))
        if "proj.W" in self.owner:
            x = x @ self("proj.W")
        if c.reuse == "plain":
            out = self("emb_out")
        else:
            out = self.table("emb_in" if c.reuse == "all" else "emb_out")
        return x @ out.T + self("emb_out.b"), behind

    def step(self, ids, targets, state, lr, clip):
        """Do an SGD step; returns (nats, norm before clipping, state)."""
        scores, state = self.scores(ids, state)
        nats = F.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="sum")
        for tensor in self.p.values():
            tensor.grad = None
        (nats / targets.numel()).backward()
        norm = torch.cat([tensor.grad.flatten() for tensor in self.p.values()]).norm()
        with torch.no_grad():
            for tensor in self.p.values():
                tensor -= lr * min(1, clip / norm) * tensor.grad
        return nats.item(), norm.item(), state
