"""The translation model in PyTorch: a worker that trains it, and a translator with the methods for beam search."""

import itertools
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.clock import measured
from benchmarks.nmt import CLIP, LR, batches

SITES = "source", "target", "annotation", "out"  # of dropout


class Memory(NamedTuple):
    """Annotations c and their keys [S, B, 2n], padding [S, B], and means of the annotations [B, 2n]."""

    c: torch.Tensor
    keys: torch.Tensor
    padding: torch.Tensor
    mean: torch.Tensor

    def select(self, rows):
        rows = torch.from_numpy(rows)
        return Memory(self.c[:, rows], self.keys[:, rows], self.padding[:, rows], self.mean[rows])


class Model(nn.Module):
    """The model of models/translation/ with PyTorch modules; their GRU cells have a redundant second bias vector.

    words    sizes of both vocabularies  m, n, tie  `size`, `hidden`, and `tie` of a TranslationConfig
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

    def encode(self, source):
        """Return the Memory of `source`, int64 [S, B], padded with -1."""
        lengths = (source >= 0).sum(0)
        x = self.dropout["source"](self.emb_source(source.clamp(min=0)))
        packed, _ = self.encoder(pack_padded_sequence(x, lengths, enforce_sorted=False))
        c = self.dropout["annotation"](pad_packed_sequence(packed)[0])
        return Memory(c, self.keys(c), source < 0, c.sum(0) / lengths[:, None])

    def advance(self, word, s, memory):
        """Return the next state [B, n], the context [B, 2n], and its weights [S, B] after an embedded word [B, m]."""
        s = self.gru1(word, s)
        scores = self.energy((memory.keys + self.query(s)).tanh())[..., 0].masked_fill(memory.padding, -torch.inf)
        weights = scores.softmax(0)
        context = torch.einsum("sb,sbn->bn", weights, memory.c)
        return self.gru2(context, s), context, weights

    def scores(self, words, states, contexts):
        q = self.of_state(states) + self.of_word(words) + self.of_context(contexts)
        return self.output(self.dropout["out"](q.tanh()))

    def forward(self, source, target):
        """Return scores [T, B, V] of the words of `target` [T, B]; both int64, padded with -1."""
        memory, words = self.encode(source), self.emb_in(target.clamp(min=0))
        y = self.dropout["target"](torch.cat([torch.zeros_like(words[:1]), words[:-1]]))
        s, states, contexts = self.start(memory.mean).tanh(), [], []
        for word in y:
            s, context, _ = self.advance(word, s, memory)
            states.append(s)
            contexts.append(context)
        return self.scores(y, torch.stack(states), torch.stack(contexts))


class Training:
    """Worker that trains on a nmt.Task, a dict; answers a number of batches with the measurements."""

    def __init__(self, task):
        torch.set_num_threads(task["threads"])
        torch.manual_seed(1)
        self.bf16 = task["precision"] == "bfloat16"
        self.batches = [tuple(torch.from_numpy(side).long() for side in batch[:2]) for batch in batches(task)]
        words = (task["vocabulary"],) * 2
        self.model = Model(words, task["size"], task["hidden"], task["tie"], task["dropout"])
        self.loss = nn.CrossEntropyLoss(ignore_index=-1, reduction="sum")
        self.optimizer = torch.optim.Adam(self.model.parameters(), LR)
        self.next = itertools.cycle(self.batches)

    def step(self):
        """Train on the next batch; return the mean cross entropy in nats."""
        source, target = next(self.next)
        self.optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            nats = self.loss(self.model(source, target).flatten(0, 1), target.flatten())
        (nats / source.shape[1]).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        return nats.item() / int((target >= 0).sum())

    def __call__(self, steps):
        self.next = itertools.cycle(self.batches)
        return measured(steps, self.step) | dict(library=f"torch {torch.__version__}")


class Translator:
    """A translation model with random parameters, without gradients, for the search of models/translation/beam.py."""

    def __init__(self, vocabulary, m, n, tie, threads):
        torch.manual_seed(1)
        self.threads, self.model = threads, Model((vocabulary, vocabulary), m, n, tie).eval()

    @torch.no_grad()
    def encode(self, source):
        torch.set_num_threads(self.threads)
        return self.model.encode(torch.from_numpy(source).long())

    @torch.no_grad()
    def start(self, memory):
        return (self.model.start(memory.mean).tanh()[None],)

    @torch.no_grad()
    def advance(self, previous, state, memory):
        """Return log probabilities [B, V], the state, and weights [B, S]."""
        previous = torch.from_numpy(previous).long()
        word = self.model.emb_in(previous.clamp(min=0)) * (previous >= 0)[:, None]
        s, context, weights = self.model.advance(word, state[0][0], memory)
        return self.model.scores(word, s, context).log_softmax(1), (s[None],), weights.T.numpy()

    def score_next(self, words, previous, state, memory):
        logprobs, *after = self.advance(previous, state, memory)
        return logprobs.numpy()[np.arange(len(words)), words], *after

    def best(self, previous, state, memory, k):
        logprobs, *after = self.advance(previous, state, memory)
        values, ids = logprobs.topk(k, 1)
        return values.numpy(), ids.numpy().astype(np.int32), *after
