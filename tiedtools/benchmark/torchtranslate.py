"""The translation model of torchnmt.py with the methods that beam search needs; see models/translation/beam.py."""

from typing import NamedTuple

import numpy as np
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tiedtools.benchmark.torchnmt import Model


class Memory(NamedTuple):
    """Annotations c and their keys [S, B, 2n], padding [S, B], and means of the annotations [B, 2n]."""

    c: torch.Tensor
    keys: torch.Tensor
    padding: torch.Tensor
    mean: torch.Tensor

    def select(self, rows):
        rows = torch.from_numpy(rows)
        return Memory(self.c[:, rows], self.keys[:, rows], self.padding[:, rows], self.mean[rows])


class TorchTranslator:
    """A translation model in PyTorch with random parameters, without gradients."""

    def __init__(self, vocabulary, m, n, tie, threads):
        torch.manual_seed(1)
        self.threads, self.model = threads, Model((vocabulary, vocabulary), m, n, tie).eval()

    @torch.no_grad()
    def encode(self, source):
        torch.set_num_threads(self.threads)
        model, source = self.model, torch.from_numpy(source).long()
        lengths = (source >= 0).sum(0)
        x = model.emb_source(source.clamp(min=0))
        c = pad_packed_sequence(model.encoder(pack_padded_sequence(x, lengths, enforce_sorted=False))[0])[0]
        return Memory(c, model.keys(c), source < 0, c.sum(0) / lengths[:, None])

    @torch.no_grad()
    def start(self, memory):
        return (self.model.start(memory.mean).tanh()[None],)

    @torch.no_grad()
    def advance(self, previous, state, memory):
        """Return log probabilities [B, V], the state, and weights [B, S]; see torchnmt.Model.forward."""
        model, previous = self.model, torch.from_numpy(previous).long()
        word = model.emb_in(previous.clamp(min=0)) * (previous >= 0)[:, None]
        s = model.gru1(word, state[0][0])
        scores = model.energy((memory.keys + model.query(s)).tanh())[..., 0].masked_fill(memory.padding, -torch.inf)
        weights = scores.softmax(0)
        k = torch.einsum("sb,sbn->bn", weights, memory.c)
        s = model.gru2(k, s)
        q = (model.of_state(s) + model.of_word(word) + model.of_context(k)).tanh()
        return model.output(q).log_softmax(1), (s[None],), weights.T.numpy()

    def score_next(self, words, previous, state, memory):
        logprobs, *after = self.advance(previous, state, memory)
        return logprobs.numpy()[np.arange(len(words)), words], *after

    def best(self, previous, state, memory, k):
        logprobs, *after = self.advance(previous, state, memory)
        values, ids = logprobs.topk(k, 1)
        return values.numpy(), ids.numpy().astype(np.int32), *after
