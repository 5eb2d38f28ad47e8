"""Translator in PyTorch, as a reference for tests/models/translation/test_translator_torch.py."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

SITES = "source", "target", "annotation", "out"  # of dropout

# Translator's name -> attribute; matrices of linear maps and cells are transposed
NAMES = {
    **{
        f"encoder.{way}.{ours}": f"encoder.{theirs}_l0{end}"
        for way, end in (("forward", ""), ("backward", "_reverse"))
        for ours, theirs in (("x.W", "weight_ih"), ("x.b", "bias_ih"), ("W_h", "weight_hh"))
    },
    "start.W": "start.weight", "start.b": "start.bias",
    "gru1.x.W": "gru1.weight_ih", "gru1.x.b": "gru1.bias_ih", "gru1.W_h": "gru1.weight_hh",
    "gru2.W_x": "gru2.weight_ih", "gru2.W_h": "gru2.weight_hh", "gru2.b": "gru2.bias_hh",
    "attention.memory.W": "keys.weight", "attention.memory.b": "keys.bias", "attention.state.W": "query.weight",
    "attention.v": "energy.weight",
    "readout.state.W": "of_state.weight", "readout.state.b": "of_state.bias",
    "readout.word.W": "of_word.weight", "readout.context.W": "of_context.weight",
    "emb_source": "emb_source.weight", "emb_in": "emb_in.weight",
    "emb_out": "output.weight", "emb_out.b": "output.bias",
}  # fmt: skip
UNUSED = "encoder.bias_hh_l0", "encoder.bias_hh_l0_reverse", "gru1.bias_hh", "gru2.bias_ih"
OPTIMIZERS = {
    "sgd": torch.optim.SGD,
    "adam": torch.optim.Adam,
    "adadelta": lambda p, lr: torch.optim.Adadelta(p, lr, rho=0.95, eps=1e-6),
}


class Given(nn.Module):
    """Dropout with the mask that is given."""

    mask = None

    def forward(self, x):
        return x if self.mask is None else x * self.mask


class Model(nn.Module):
    """The model of models/translation/ with modules of PyTorch, whose GRU cells each have one bias vector too many.

    words  of source and target        m, n, tie  `size`, `hidden`, and `tie` of a TranslationConfig
    """

    def __init__(self, words, m, n, tie):
        super().__init__()
        self.dropout = nn.ModuleDict({site: Given() for site in SITES})
        self.emb_source, self.emb_in = (nn.Embedding(V, m) for V in words)
        self.encoder = nn.GRU(m, n, bidirectional=True)
        self.start = nn.Linear(2 * n, n)
        self.gru1, self.gru2 = nn.GRUCell(m, n), nn.GRUCell(2 * n, n)
        self.keys, self.query = nn.Linear(2 * n, 2 * n), nn.Linear(n, 2 * n, bias=False)
        self.energy = nn.Linear(2 * n, 1, bias=False)
        self.of_state, self.of_word, self.of_context = nn.Linear(n, m), *(nn.Linear(k, m, False) for k in (m, 2 * n))
        self.output = nn.Linear(m, words[1])
        if tie != "none":
            self.output.weight = self.emb_in.weight
        if tie == "all":
            self.emb_source.weight = self.emb_in.weight

    def forward(self, source, target):
        """Return scores [T, B, V] of the words of `target` [T, B]; both int64, padded with -1."""
        lengths, padding = (source >= 0).sum(0), source < 0
        x = self.dropout["source"](self.emb_source(source.clamp(min=0)))
        annotations, _ = self.encoder(pack_padded_sequence(x, lengths, enforce_sorted=False))
        c = self.dropout["annotation"](pad_packed_sequence(annotations)[0])
        keys, s = self.keys(c), self.start(c.sum(0) / lengths[:, None]).tanh()
        words = self.emb_in(target.clamp(min=0))
        previous = self.dropout["target"](torch.cat([torch.zeros_like(words[:1]), words[:-1]]))
        states, contexts = [], []
        for word in previous:
            s = self.gru1(word, s)
            scores = self.energy((keys + self.query(s)).tanh())[..., 0].masked_fill(padding, -torch.inf)
            contexts.append((scores.softmax(0)[..., None] * c).sum(0))
            s = self.gru2(contexts[-1], s)
            states.append(s)
        q = self.of_state(torch.stack(states)) + self.of_word(previous) + self.of_context(torch.stack(contexts))
        return self.output(self.dropout["out"](q.tanh()))


class Oracle:
    """The model of a Translator with its values, trained with clipping at `clip`."""

    def __init__(self, model, lr, clip):
        c, words = model.config, (len(model.source_vocab), len(model.target_vocab))
        self.model, self.clip = Model(words, c.size, c.hidden, c.tie).double(), clip
        parameters = dict(self.model.named_parameters(remove_duplicate=False))
        self.p = {name: parameters[NAMES[name]] for name in model.params.layout}
        with torch.no_grad():
            for name, tensor in self.p.items():
                array = torch.tensor(model.params[name].copy())
                whole = name.startswith("emb") or array.ndim == 1
                tensor.copy_(array if whole else array.T)
            for name in UNUSED:
                parameters[name].zero_()
        self.optimizer = OPTIMIZERS[c.optimizer](list(self.p.values()), lr=lr)

    def values(self):
        """Return the parameters as arrays with Translator's names and shapes."""
        arrays = {name: tensor.detach().numpy() for name, tensor in self.p.items()}
        return {
            name: a.ravel() if name == "attention.v" else a if name.startswith("emb") or a.ndim == 1 else a.T
            for name, a in arrays.items()
        }

    def step(self, source, target, masks):
        """Train on a batch with these masks by site; returns (nats, gradient norm before clipping)."""
        for site, mask in masks.items():
            self.model.dropout[site].mask = torch.tensor(mask)
        source, target = (torch.tensor(side).long() for side in (source, target))
        self.optimizer.zero_grad()
        loss = nn.CrossEntropyLoss(ignore_index=-1, reduction="sum")
        nats = loss(self.model(source, target).flatten(0, 1), target.flatten())
        (nats / source.shape[1]).backward()
        grads = [tensor.grad for tensor in self.p.values()]
        norm = torch.cat([grad.flatten() for grad in grads]).norm()
        for grad in grads:  # clip_grad_norm_ adds 1e-6 to the norm
            grad *= min(1, self.clip / norm)
        self.optimizer.step()
        return nats.item(), norm.item()
