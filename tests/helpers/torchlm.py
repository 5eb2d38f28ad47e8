"""LstmLM implemented in PyTorch, as the reference for tests/models/lm/test_torch.py."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy, log_softmax


class Oracle(nn.Module):
    """The model of an LstmConfig with V words, initialized from `values`, a dict of arrays with LstmLM's names.

    nn.LSTM's second bias vector is 0.
    """

    def __init__(self, config, V, values):
        super().__init__()
        self.config, linear = config, config.tying == "linear"
        self.embedding = nn.Embedding(V, config.size)
        self.recurrent = nn.LSTM(config.size, config.hidden, config.layers)
        self.linear = nn.Identity()
        if config.projection:
            self.linear = nn.Linear(config.hidden, config.hidden)
        elif linear:
            self.linear = nn.Linear(config.hidden, config.size, bias=config.linear_bias)
        self.output = nn.Linear(config.size if linear else config.hidden, V)
        if config.tying != "untied":
            self.output.weight = self.embedding.weight
        self.to(getattr(torch, config.dtype))
        with torch.no_grad():
            for ours, theirs in self.names().items():
                theirs.copy_(
                    torch.tensor(np.asarray(values[ours]).T if ours.startswith(("lstm", "proj")) else values[ours])
                )
            for k in range(config.layers):
                self.freeze(getattr(self.recurrent, f"bias_hh_l{k}"))
            if not config.output_bias:
                self.freeze(self.output.bias)
        self.trained = [p for p in self.parameters() if p.requires_grad]

    def forward(self, ids, state):
        """Return scores [T * B, V] and the state (h, c) after `ids`, int64 [T, B]."""
        x, state = self.recurrent(self.embedding(ids), state)
        return self.output(self.linear(x).flatten(0, 1)), state

    def freeze(self, parameter):
        parameter.zero_()
        parameter.requires_grad = False

    def names(self):
        """Return a dict: LstmLM's name -> tensor; `lstm` and `proj` matrices are the transposes of LstmLM's."""
        found = {"emb_in": self.embedding.weight}
        for k in range(self.config.layers):
            parts = {"W_x": "weight_ih", "W_h": "weight_hh", "b": "bias_ih"}
            found |= {f"lstm{k + 1}.{part}": getattr(self.recurrent, f"{name}_l{k}") for part, name in parts.items()}
        if isinstance(self.linear, nn.Linear):
            found["proj.W"] = self.linear.weight
            if self.linear.bias is not None:
                found["proj.b"] = self.linear.bias
        if self.config.tying == "untied":
            found["emb_out"] = self.output.weight
        if self.config.output_bias:
            found["emb_out.b"] = self.output.bias
        return found

    def values(self):
        """Return the parameters as arrays with LstmLM's names and shapes."""
        arrays = {name: tensor.detach().numpy() for name, tensor in self.names().items()}
        return {name: a.T if name.startswith(("lstm", "proj")) else a for name, a in arrays.items()}

    def through(self, masks, ids, state):
        """Forward pass with dropout masks, a dict by site.

        "in", "up" (per layer), "after": masks [T or 1, B or 1, width], or 1, of embedding, layer outputs, linear map
        "h", "x" (per layer): masks [4 or 1, B, width], or 1, of the inputs of the gates
        """
        x, behind = self.embedding(ids) * masks["in"], []
        each = lambda mask: [1] * 4 if isinstance(mask, int) else list(mask) * (4 // len(mask))
        for k in range(self.config.layers):
            W_x, W_h, b = (
                getattr(self.recurrent, f"{name}_l{k}").chunk(4) for name in ("weight_ih", "weight_hh", "bias_ih")
            )
            ways = list(zip(each(masks["x"][k]), W_x, each(masks["h"][k]), W_h, b))
            h, c = state[0][k], state[1][k]
            outputs = []
            for row in x:
                i, f, g, o = ((row * over) @ W.T + (h * on) @ U.T + bias for over, W, on, U, bias in ways)
                c = f.sigmoid() * c + i.sigmoid() * g.tanh()
                h = o.sigmoid() * c.tanh()
                outputs.append(h)
            x = torch.stack(outputs) * masks["up"][k]
            behind.append((h, c))
        return self.output((self.linear(x) * masks["after"]).flatten(0, 1)), tuple(map(torch.stack, zip(*behind)))

    def step(self, ids, targets, state, lr, clip, masks=None, samples=None):
        """Do an SGD step on int64 ids and targets [T, B]; returns (cross entropy in nats, norm before clipping, state).

        samples  for sampled softmax: the sampled words, and a function from words to their expected counts
        """
        c = self.config
        run = self if masks is None else lambda *args: self.through(masks, *args)
        scores, state = run(ids, state)
        wanted = targets.flatten()
        if samples:
            scores, wanted = self.sampled(scores, wanted, *samples), wanted.clamp(max=0)
        nll = cross_entropy(scores, wanted, ignore_index=-1, reduction="sum")
        total = (1 - c.augment_share) * nll
        if c.projection:
            total = total + c.projection / 2 * self.linear.weight.square().sum()
        if weight := c.augment + c.augment_share * c.tau * scores.shape[1]:
            total = total + weight * c.tau * self.divergence(scores, targets.flatten())
        scale = 1 / (targets.shape[1] if c.loss_scale == "sum" else targets.numel())
        self.zero_grad()
        (scale * total).backward()
        norm = nn.utils.clip_grad_norm_(self.trained, clip)
        with torch.no_grad():
            for parameter in self.trained:
                parameter -= lr * parameter.grad
                parameter *= 1 - c.weight_decay
            if c.unit_embeddings:
                self.embedding.weight /= self.embedding.weight.norm(dim=1, keepdim=True)
        return nll.item(), norm.item(), tuple(part.detach() for part in state)

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
        E = self.embedding.weight.detach() if self.config.detach else self.embedding.weight
        wanted = log_softmax(E[targets[counted]] @ E.T / self.config.tau, -1)
        given = log_softmax((scores - self.output.bias)[counted] / self.config.tau, -1)
        return (wanted.exp() * (wanted - given)).sum()
