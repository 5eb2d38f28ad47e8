"""The language model in PyTorch, and a worker that trains it."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from benchmarks.clock import measured
from benchmarks.subwords import Synthetic
from benchmarks.torchcells import AWD, RHN, Locked
from benchmarks.zipf import Windows
from tiedtools.models.lm.config import LstmConfig


class Model(nn.Module):
    """Recurrent language model: int64 words [T, B], state -> scores [T * B, V], state.

    The state is (h, c) of an LSTM, otherwise h, [layers, B, hidden] each.

    Follows PyTorch's word language model example, with dropout at Zaremba's three sites; `tying` as in LstmConfig.
    nn.LSTM has a redundant second bias vector; in nn.GRU, only the candidate state needs it. `depth` selects an RHN,
    `widths` the layers of AWD-LSTM; dropout masks are then the same in all steps.

    ar, tar  weights of the (temporal) activation regularization; each call sets `penalty` to the sum of both terms
    """

    penalty: torch.Tensor | float = 0.0

    def __init__(
        self, V, size, hidden, layers, tying, dropout=0.0, init=0.1, cell="lstm", depth=None, widths=(),
        drop_weights=0.0, ar=0.0, tar=0.0,
    ):  # fmt: skip
        super().__init__()
        width, self.ar, self.tar = size if tying == "linear" else hidden, ar, tar
        self.embedding = nn.Embedding(V, size)
        self.dropout = Locked(dropout) if depth or widths else nn.Dropout(dropout)
        if depth:
            self.recurrent: nn.Module = RHN(size, hidden, depth, dropout)
        elif widths:
            self.recurrent = AWD(size, widths, dropout, drop_weights)
        else:
            kind = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
            self.recurrent = kind(size, hidden, layers, dropout=dropout if layers > 1 else 0)
        self.linear = nn.Linear(hidden, size, bias=False) if tying == "linear" else nn.Identity()
        self.output = nn.Linear(width, V)
        if tying != "untied":
            self.output.weight = self.embedding.weight
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -init, init)

    def forward(self, ids, state):
        x, state = self.recurrent(self.dropout(self.embedding(ids)), state)
        y = self.dropout(x)
        if self.ar or self.tar:
            self.penalty = self.ar * y.pow(2).mean() + self.tar * (x[1:] - x[:-1]).pow(2).mean()
        return self.output(self.linear(y).flatten(0, 1)), state


class ComposedModel(nn.Module):
    """Language model with word vectors composed from subwords, once per window, for input and output.

    config  an LstmConfig        rows  the subwords of each word, int32 [V, L], 0: padding
    """

    penalty = 0.0

    def __init__(self, config: Any, rows, types, dropout=0.0, init=0.1):
        super().__init__()
        c, m = config, config.width
        self.kind, self.rows = c.subwords, torch.from_numpy(rows).long()
        if c.subwords == "morphs":
            self.embedding: nn.Module = nn.EmbeddingBag(types + 1, c.subword_dim, padding_idx=0, mode="sum")
        else:
            self.embedding = nn.Embedding(types + 1, c.subword_dim, padding_idx=0)
        self.project = nn.Linear(rows.shape[1] * c.subword_dim, m, bias=False) if self.kind == "syllables" else None
        widths = enumerate(c.widths, 1) if self.kind == "chars" else ()
        self.convolutions = nn.ModuleList(nn.Conv1d(c.subword_dim, f, width) for width, f in widths)
        self.highways = nn.ModuleList(nn.Linear(m, 2 * m) for _ in range(c.highways))
        self.dropout = nn.Dropout(dropout)
        self.recurrent = nn.LSTM(m, c.hidden, c.layers, dropout=dropout)
        self.linear = nn.Linear(c.hidden, m, bias=False) if c.tying == "linear" else nn.Identity()
        self.bias = nn.Parameter(torch.empty(len(rows)))
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -init, init)

    def table(self):
        """Return the vectors of all words, [V, m]."""
        x = self.embedding(self.rows)
        if self.project:
            x = self.project(x.flatten(1))
        if self.convolutions:
            chars = x.transpose(1, 2).contiguous()
            x = torch.cat([convolve(chars).amax(2).tanh() for convolve in self.convolutions], 1)
        for highway in self.highways:
            gate, new = highway(x).chunk(2, 1)
            x = torch.lerp(x.to(new.dtype), new.relu(), gate.sigmoid())
        return x

    def forward(self, ids, state):
        table = self.table()
        x, state = self.recurrent(self.dropout(functional.embedding(ids, table)), state)
        return functional.linear(self.linear(self.dropout(x).flatten(0, 1)), table, self.bias), state


def detached(state):
    """Return a state, a tensor or tuples of them, without its history."""
    return tuple(map(detached, state)) if isinstance(state, tuple) else state.detach()


class Training:
    """Worker that trains on a lm.Task, a dict; answers a number of windows with the measurements."""

    def __init__(self, task):
        torch.set_num_threads(task["threads"])
        torch.manual_seed(1)
        self.task, self.text, self.bf16 = task, Windows(task), task["precision"] == "bfloat16"
        widths = [int(n) for n in (task["layer_widths"] or "").split(",") if n]
        if task["subwords"]:
            config = LstmConfig(**{name: task[name] for name in ("size", "hidden", "layers", "tying", "subwords")})
            synthetic = Synthetic(config.subwords, task["vocabulary"])
            self.model = ComposedModel(config, synthetic.rows, len(synthetic.units) - 1, task["dropout"])
        else:
            shape = "size", "hidden", "layers", "tying", "dropout", "cell", "depth", "drop_weights", "ar", "tar"
            self.model = Model(task["vocabulary"], **{name: task[name] for name in shape}, widths=widths)
        if task["compile"] and isinstance(self.model.recurrent, RHN):
            self.model.recurrent.compile_step()
        self.parameters = list(self.model.parameters())
        self.loss = nn.CrossEntropyLoss()
        sizes = [(1, n) for n in widths] or [(task["layers"], task["hidden"])]
        states = tuple((torch.zeros(layers, task["batch"], n),) * 2 for layers, n in sizes)
        self.state = states if widths else states[0]
        if task["cell"] != "lstm":
            self.state = self.state[0]

    def step(self):
        """Train on the next window; return the mean cross entropy in nats."""
        ids, targets = (torch.from_numpy(part).long() for part in self.text.next())
        self.model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            scores, state = self.model(ids, self.state)
            loss = self.loss(scores, targets.flatten())
        (loss + self.model.penalty).backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, self.task["clip"])
        with torch.no_grad():
            for parameter in self.parameters:
                parameter.add_(parameter.grad, alpha=-self.task["lr"])
        self.state = detached(state)
        return loss.item()

    def __call__(self, windows):
        return measured(windows, self.step) | dict(library=f"torch {torch.__version__}")
