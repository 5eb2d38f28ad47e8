"""Worker process that trains the translation model of `tiedtools bench nmt` in PyTorch.

python -m tiedtools.benchmark.torchnmt TASK        a Worker's process; TASK is a nmt.Task as JSON
"""

import json
import sys
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tiedtools.base import memory
from tiedtools.benchmark.nmt import CLIP, LR, batches
from tiedtools.benchmark.processes import serve

SITES = "source", "target", "annotation", "out"  # of dropout


class Model(nn.Module):
    """The model of models/translation/ with modules of PyTorch, whose GRU cells each have one bias vector too many.

    words    of source and target        m, n, tie  `size`, `hidden`, and `tie` of a TranslationConfig
    dropout  probability at all SITES
    """

    def __init__(self, words, m, n, tie="none", dropout=0.0):
        super().__init__()
        self.dropout = nn.ModuleDict({site: nn.Dropout(dropout) for site in SITES})
        self.emb_source, self.emb_in = (nn.Embedding(V, m) for V in words)
        self.encoder = nn.GRU(m, n, bidirectional=True)
        self.start = nn.Linear(2 * n, n)
        self.gru1, self.gru2 = nn.GRUCell(m, n), nn.GRUCell(2 * n, n)
        self.keys, self.query = nn.Linear(2 * n, 2 * n), nn.Linear(n, 2 * n, bias=False)
        self.energy = nn.Linear(2 * n, 1, bias=False)
        self.of_state, self.of_word, self.of_context = nn.Linear(n, m), *(nn.Linear(k, m, False) for k in (m, 2 * n))
        self.output = nn.Linear(m, words[1])
        for table in self.emb_source, self.emb_in, self.output:
            nn.init.normal_(table.weight, std=m**-0.5)
        if tie != "none":
            self.output.weight = self.emb_in.weight
        if tie == "all":
            self.emb_source.weight = self.emb_in.weight

    def forward(self, source, target):
        """Return scores [T, B, V] of the words of `target` [T, B]; both int64, padded with -1."""
        lengths = (source >= 0).sum(0)
        x = self.dropout["source"](self.emb_source(source.clamp(min=0)))
        packed, _ = self.encoder(pack_padded_sequence(x, lengths, enforce_sorted=False))
        c = self.dropout["annotation"](pad_packed_sequence(packed)[0])
        mean = c.sum(0) / lengths[:, None]
        keys, padding = self.keys(c), source < 0
        words = self.emb_in(target.clamp(min=0))
        y = self.dropout["target"](torch.cat([torch.zeros_like(words[:1]), words[:-1]]))
        s, states, contexts = self.start(mean).tanh(), [], []
        for word in y:
            s = self.gru1(word, s)
            scores = self.energy((keys + self.query(s)).tanh())[..., 0].masked_fill(padding, -torch.inf)
            k = torch.einsum("sb,sbn->bn", scores.softmax(0), c)
            s = self.gru2(k, s)
            states.append(s)
            contexts.append(k)
        q = self.of_state(torch.stack(states)) + self.of_word(y) + self.of_context(torch.stack(contexts))
        return self.output(self.dropout["out"](q.tanh()))


class Training:
    """Training run on a nmt.Task, given as a dict."""

    def __init__(self, task):
        torch.set_num_threads(task["threads"])
        torch.manual_seed(1)
        self.done, self.bf16 = 0, task["precision"] == "bfloat16"
        self.batches = [tuple(torch.from_numpy(side).long() for side in batch[:2]) for batch in batches(task)]
        words = (task["vocabulary"],) * 2
        self.model = Model(words, task["size"], task["hidden"], task["tie"], task["dropout"])
        self.loss = nn.CrossEntropyLoss(ignore_index=-1, reduction="sum")
        self.optimizer = torch.optim.Adam(self.model.parameters(), LR)

    def step(self):
        """Train on the next batch; returns the mean cross entropy in nats."""
        source, target = self.batches[self.done % len(self.batches)]
        self.done += 1
        self.optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            nats = self.loss(self.model(source, target).flatten(0, 1), target.flatten())
        (nats / source.shape[1]).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        return nats.item() / int((target >= 0).sum())

    def __call__(self, steps):
        """Answer a nmt.Contender: train on the first `steps` batches and return a dict of the measurements."""
        self.done, began = 0, time.perf_counter()
        nats = [self.step() for _ in range(steps)]
        seconds, library = time.perf_counter() - began, f"torch {torch.__version__}"
        return dict(seconds=seconds, nats=sum(nats) / steps, bytes=memory.peak(), library=library)


if __name__ == "__main__":
    serve(Training(json.loads(sys.argv[1])))
