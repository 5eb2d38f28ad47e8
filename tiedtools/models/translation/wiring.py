"""Construction of the network of a translation model from its TranslationConfig.

source -> embedding -> dropout -> BiGRU -> dropout -> attention of the decoder
target -> embedding of the previous word -> dropout -> ConditionalGRU -> Readout -> dropout -> softmax
"""

import math

import numpy as np

from tiedtools.kernels.output.descent import add
from tiedtools.models.translation.config import TranslationConfig
from tiedtools.network.layers.feedforward import Embedding
from tiedtools.network.layers.output import Softmax
from tiedtools.network.layers.regularization import Dropout
from tiedtools.network.layers.translation import BiGRU, ConditionalGRU, Memory, Readout
from tiedtools.network.network import Step
from tiedtools.network.params import Params, Start, constant, normal
from tiedtools.network.tables import Lookup


class Translation:
    """Encoder and decoder; see network/layers/translation.py for their parameters and shapes.

    Parameters, in addition to the layers' own: emb_source [V_s, m], emb_in and emb_out [V_t, m], emb_out.b [V_t].
    """

    def __init__(self, params: Params, c: TranslationConfig, source_words: int, target_words: int) -> None:
        """Declare the parameters for vocabularies of these sizes, with the tying of a TranslationConfig `c`."""
        if c.tie != "none":
            params.tie("emb_out", "emb_in")
        if c.tie == "all":
            params.tie("emb_source", "emb_in")
        vectors = normal(1 / math.sqrt(c.size) if c.init is None else c.init)
        start = Start(normal(c.init), constant(0.0))
        self.read_source = Embedding(params, Lookup(params, "emb_source", source_words, c.size, vectors, by_rows=True))
        self.read_target = Embedding(params, Lookup(params, "emb_in", target_words, c.size, vectors, by_rows=True))
        self.encoder = BiGRU(params, "encoder", c.size, c.hidden, start)
        self.decoder = ConditionalGRU(params, c.size, c.hidden, start)
        self.readout = Readout(params, c.size, c.hidden, start)
        emb_out = Lookup(params, "emb_out", target_words, c.size, vectors)
        self.output = Softmax(params, emb_out, "emb_out.b", constant(0.0))
        self.drop_source, self.drop_target = (Dropout(params, site, c.drop_emb) for site in ("source", "target"))
        self.drop_annotation = Dropout(params, "annotation", c.drop_annotation)
        self.drop_out = Dropout(params, "out", c.drop_out)
        self.team = params.team

    def encode(self, ids: np.ndarray, step: Step) -> Memory:
        """Return the Memory of sentences, int32 [S, B] padded with -1 at the end, of Step.lengths words."""
        x = self.drop_source.forward(self.read_source.forward(ids, step), step)
        c = self.drop_annotation.forward(self.encoder.forward(x, step), step)
        return self.decoder.remember(c, step)

    def decode(
        self, ids: np.ndarray, state: np.ndarray, memory: Memory, step: Step
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the input of the softmax [T, B, m], the states, and the attention weights [T, B, S].

        ids  int32 [T, B], the previous words; -1: the zero vector        state  [B, n]
        """
        y = self.drop_target.forward(self.read_target.forward(ids, step), step)
        states, contexts, weights = self.decoder.forward(y, state, memory, step)
        q = self.drop_out.forward(self.readout.forward(states, y, contexts, step), step)
        return q, states, weights

    def forward(self, source: np.ndarray, step: Step) -> np.ndarray:
        """Return the input of the softmax for each target word in Step.ids, from the words before it."""
        memory = self.encode(source, step)
        previous = np.concatenate([np.full_like(step.ids[:1], -1), step.ids[:-1]])
        return self.decode(previous, self.decoder.start(memory, step), memory, step)[0]

    def train(self, source: np.ndarray, step: Step) -> np.ndarray:
        """Compute the gradient of a batch; returns nats [T, B]."""
        nats, dq = self.output.loss(self.forward(source, step), step)
        ds, dy, dk = self.readout.backward(self.drop_out.backward(dq))
        dx, dc = self.decoder.backward(ds, dk)
        self.team(add, dy.reshape(-1), dx.reshape(-1), 1.0)
        self.read_target.backward(self.drop_target.backward(dy))
        dx = self.encoder.backward(self.drop_annotation.backward(dc))
        self.read_source.backward(self.drop_source.backward(dx))
        return nats
