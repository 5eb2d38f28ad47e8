"""AWD-LSTM in PyTorch, as a reference: its own LSTM layers and optimizers, with masks handed over."""

import torch
from torch.nn import functional as F
from torchsubwords import Composing


class Awd(Composing):
    """The model of an LstmLM with tied embeddings or composed word vectors, and its optimizer; see Composing."""

    def __init__(self, model, lr, clip):
        if not model.config.subwords:
            model.vocab.subwords = type("None", (), {"rows": [[0]]})
        super().__init__(model)
        self.lr, self.clip = lr, clip
        self.optimizer = torch.optim.SGD(self.p.values(), lr=lr, weight_decay=self.config.lr_weight_decay)

    def average(self):
        """Switch to averaged SGD, as awd-lstm-lm does."""
        options = dict(t0=0, lambd=0.0, weight_decay=self.config.lr_weight_decay)
        self.optimizer = torch.optim.ASGD(self.p.values(), lr=self.lr, **options)

    def forward(self, ids, state, masks, weight_masks):
        """Return scores [T, B, V], the top layer's output before and after dropout, and the state after `ids`."""
        E, after = self.table("emb_in") if self.config.subwords else self("emb_in"), []
        x = E[ids] * masks["word"] * masks["in"]
        for k, (h, c) in enumerate(state):
            W_x, W_h, b = (self(f"lstm{k + 1}.{part}") for part in ("W_x", "W_h", "b"))
            weights = [W_x.T, (W_h * weight_masks[f"lstm{k + 1}.W_h"]).T, b, torch.zeros_like(b)]
            raw, *end = torch._VF.lstm(x, (h[None], c[None]), weights, True, 1, 0.0, True, False, False)
            after.append([part[0].detach() for part in end])
            x = raw * masks[k]
        return x @ E.T + self("emb_out.b"), raw, x, after

    def step(self, ids, targets, state, masks, weight_masks, share):
        """Train on a window with `share` times the learning rate; returns (mean nats, norm before clipping, state)."""
        c = self.config
        scores, raw, dropped, state = self.forward(ids, state, masks, weight_masks)
        nats = F.cross_entropy(scores.flatten(0, 1), targets.flatten())
        total = nats + c.ar * dropped.pow(2).mean() + c.tar * (raw[1:] - raw[:-1]).pow(2).mean()
        self.optimizer.zero_grad()
        total.backward()
        norm = torch.cat([p.grad.flatten() for p in self.p.values()]).norm().item()
        for p in self.p.values():
            p.grad *= min(1, self.clip / norm)
        for group in self.optimizer.param_groups:
            group["lr"] = self.lr * share
        if isinstance(self.optimizer, torch.optim.ASGD):  # which reads its learning rate from the state
            for p in self.p.values():
                if self.optimizer.state[p]:
                    self.optimizer.state[p]["eta"] = torch.tensor(self.lr * share, dtype=torch.float64)
        self.optimizer.step()
        return nats.item(), norm, state

    def score(self, ids, targets, state):
        """Return the mean nats with the averaged parameters, without dropout."""
        raw, ones = {name: p.detach().clone() for name, p in self.p.items()}, dict.fromkeys(range(len(state)), 1)
        with torch.no_grad():
            for p in self.p.values():
                p.copy_(self.optimizer.state[p]["ax"])
            scores, *_ = self.forward(ids, state, {"word": 1, "in": 1, **ones}, {f"lstm{k + 1}.W_h": 1 for k in ones})
            for name, p in self.p.items():
                p.copy_(raw[name])
        return F.cross_entropy(scores.flatten(0, 1), targets.flatten()).item()
