"""Translation model: parameters, network, and model file."""

import dataclasses
import functools
import math
from typing import Any, BinaryIO

import numpy as np

from tiedtools.base.errors import Contradiction
from tiedtools.files import modelfile
from tiedtools.files.modelfile import Arrays
from tiedtools.kernels.base.arrays import imagining
from tiedtools.kernels.output.descent import add
from tiedtools.models.batched import BatchedModel
from tiedtools.models.translation.config import TranslationConfig
from tiedtools.network.layers.feedforward import Embedding
from tiedtools.network.layers.output import Softmax
from tiedtools.network.layers.regularization import Dropout
from tiedtools.network.layers.translation import BiGRU, ConditionalGRU, Memory, Readout
from tiedtools.network.network import State, Step, mask_seed
from tiedtools.network.optimizers import SGD
from tiedtools.network.params import Params, Start, constant, normal
from tiedtools.network.tables import Lookup
from tiedtools.network.threads import exclusive, idle
from tiedtools.text.bitext import check_codes
from tiedtools.text.vocab import Vocab
from tiedtools.training.batches import Pairs
from tiedtools.vectors.vectors import Vectors


class EncoderDecoder:
    """Encoder and decoder; see network/layers/translation.py for their parameters and shapes.

    source -> embedding -> dropout -> BiGRU -> dropout -> attention of the decoder
    target -> embedding of the previous word -> dropout -> ConditionalGRU -> Readout -> dropout -> softmax

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


class Translator(BatchedModel):
    """Attention model of translation, P(y_t | y_1 .. y_{t-1}, x), with the interface that fit.py requires.

    source_vocab, target_vocab  Vocabs, the same object if joint        vocab   target_vocab
    codes                       text of the BPE merges that segment both sides

    Sentences are int32 columns that end in 0, `</s>`, and are padded with -1. Raises Contradiction if source and
    target embeddings are tied, but the vocabularies differ.
    """

    kind = "nmt"
    KERNELS = 90

    def __init__(
        self, source_vocab: Vocab, target_vocab: Vocab, config: TranslationConfig, values: Arrays | None = None,
        codes: str = "",
    ) -> None:  # fmt: skip
        if config.tie == "all" and source_vocab is not target_vocab:
            raise Contradiction("`tie=all` needs one vocabulary for source and target; give the same twice")
        self.source_vocab, self.target_vocab, self.vocab = source_vocab, target_vocab, target_vocab
        self.codes = codes
        super().__init__(config, values)

    def wire(self, params: Params) -> EncoderDecoder:
        return EncoderDecoder(params, self.config, len(self.source_vocab), len(self.target_vocab))

    @classmethod
    def smallest(cls, config: TranslationConfig) -> "Translator":
        vocab = Vocab.made_up()
        return cls(vocab, vocab, dataclasses.replace(config, threads=1, size=16, hidden=16))

    @classmethod
    def memory(cls, vocabs: tuple[Vocab, Vocab], config: TranslationConfig) -> int:
        """Return the bytes of a model's arrays in training: parameters, the best, gradients, optimizer, workspace.

        vocabs  (source, target)
        """
        with imagining() as sizes:
            model = idle(cls)(*vocabs, config)
            model.learner(0.0)
            ids = np.zeros((config.max_length + 1, config.batch), np.int32)
            model.train_step(ids, ids, (), 0)
        return sum(sizes) + model.params.values.nbytes

    def compile(self) -> None:
        word = np.zeros((1, 1), np.int32)
        self.train_step(word, word, (), 0)
        SGD(self.params).update(0.0)
        memory = self.encode(word)
        self.best(word[0], self.start(memory), memory, 1)
        self.score(word, word)

    @property
    def identity(self) -> Arrays:
        words = "\n".join(self.source_vocab.words)
        return {"source_vocabulary": modelfile.as_array(words), "merges": modelfile.as_array(self.codes)}

    def batches(self, ids: tuple[np.ndarray, np.ndarray]) -> Pairs:
        """See fit.py; ids: (source, target), 0 at the end of each sentence."""
        (source, target), c = ids, self.config
        return Pairs(source, target, c.batch, c.seed, c.max_length + 1)

    def train_step(self, source: np.ndarray, target: np.ndarray, state: State, number: int) -> tuple[float, int, State]:
        """See Learner. The objective of the gradient is the mean over sentences of the cross entropy."""
        seed = functools.partial(mask_seed, self.config.seed, number)
        self.params.begin_step()
        source, step = prepare(source, target, seed, True)
        nats = self.network.train(source, step)
        return float(nats.sum()), int(np.count_nonzero(step.targets >= 0)), state

    @exclusive
    def score(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the log probabilities of the words of `target` [T, B], float64, 0 in the padding."""
        source, step = prepare(source, target)
        return self.network.output.score(self.network.forward(source, step), step).copy()

    @exclusive
    def encode(self, source: np.ndarray) -> Memory:
        """Return the Memory of sentences, int32 [S, B]."""
        source, step = prepare(source)
        memory = self.network.encode(source, step)
        return memory._replace(C=memory.C.copy(), P=memory.P.copy())

    @exclusive
    def start(self, memory: Memory) -> State:
        """Return the decoder's state before the first word: a tuple of an array [1, B, n]."""
        return (self.network.decoder.start(memory, Step(None))[None, memory.rows],)

    @exclusive
    def best(self, previous: np.ndarray, state: State, memory: Memory, k: int) -> tuple[Any, ...]:
        """Return the k most probable next words, highest first: log probabilities, float64 [B, k], and int32 ids.

        Also returns the state and the attention weights [B, S].

        previous  int32 [B], the previous words; -1 before the first word
        """
        q, *after = self.advance(previous, state, memory)
        return *self.network.output.best(q, k), *after

    @exclusive
    def score_next(self, words: np.ndarray, previous: np.ndarray, state: State, memory: Memory) -> tuple[Any, ...]:
        """Return log probabilities of the next words, int32 [B], 0 for word -1, then state and weights as `best`."""
        q, *after = self.advance(previous, state, memory)
        return self.network.output.score(q[None], Step(None, words[None]))[0].copy(), *after

    def advance(self, previous: np.ndarray, state: State, memory: Memory) -> tuple[np.ndarray, State, np.ndarray]:
        """Return the readout after the words `previous`, [B, m], the state, and the attention weights."""
        step, n = Step(None), self.config.hidden
        q, states, weights = self.network.decode(np.ascontiguousarray(previous)[None], state[0][0], memory, step)
        return q[0], (states[-1:, :, :n].copy(),), weights[0].copy()

    def vectors(self, which: str) -> Vectors:
        """Return the Vectors of the "source" words, or of the target words: "in", "out", their "sum" or "concat"."""
        emb_in, emb_out, emb_source = (self.params[name] for name in ("emb_in", "emb_out", "emb_source"))
        if which == "source":
            return Vectors.of(self.source_vocab.words, "in", emb_source, emb_source)
        return Vectors.of(self.target_vocab.words, which, emb_in, emb_out)

    def save(self, file: BinaryIO) -> None:
        """Write a model file with the target's words; "source_words" is absent if the vocabularies are the same."""
        arrays = dict(self.params.owners(), counts=self.vocab.counts, codes=modelfile.as_array(self.codes))
        if self.source_vocab is not self.target_vocab:
            arrays["source_words"] = modelfile.as_array("\n".join(self.source_vocab.words))
            arrays["source_counts"] = self.source_vocab.counts
        modelfile.save(file, self.kind, dataclasses.asdict(self.config), self.vocab.words, arrays, self.settings)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = self.source_vocab, self.target_vocab, self.config, dict(self.params.owners()), self.codes
        return type(self), arguments, {"settings": self.settings}

    @classmethod
    def of_file(cls, config: dict[str, Any], words: list[str], arrays: Arrays) -> "Translator":
        config = modelfile.configured(TranslationConfig, config)
        target = source = Vocab(words, arrays.pop("counts")).check()
        codes = check_codes(modelfile.as_bytes(arrays.pop("codes")).decode())
        if "source_words" in arrays:
            words = modelfile.as_bytes(arrays.pop("source_words")).decode().split("\n")
            source = Vocab(words, arrays.pop("source_counts")).check()
        return cls(source, target, config, arrays, codes)


def prepare(
    source: np.ndarray, target: np.ndarray | None = None, seed: Any = None, training: bool = False
) -> tuple[np.ndarray, Step]:
    """Return `source` as the network reads it, and its Step with `target` as words and targets."""
    source = np.ascontiguousarray(source, np.int32)
    if target is not None:
        target = np.ascontiguousarray(target, np.int32)
    lengths = (source >= 0).sum(0, dtype=np.int32)
    return source, Step(target, target, seed, training, 1 / source.shape[1], lengths)
