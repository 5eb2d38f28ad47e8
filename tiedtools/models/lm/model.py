"""Recurrent language model: parameters, network, and model file."""

import copy
import dataclasses
import functools
from typing import Any, BinaryIO

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.files import modelfile
from tiedtools.files.modelfile import Arrays
from tiedtools.kernels.base.arrays import imagining
from tiedtools.models.batched import BatchedModel
from tiedtools.models.lm.config import OF_RHN, LstmConfig
from tiedtools.models.lm.wiring import network
from tiedtools.network.layers.feedforward import Highway
from tiedtools.network.network import Network, State, Step, mask_seed
from tiedtools.network.optimizers import SGD
from tiedtools.network.params import Params
from tiedtools.network.threads import exclusive, idle
from tiedtools.text.subwords import Subwords
from tiedtools.text.vocab import Vocab
from tiedtools.training.batches import RandomWindows, Windows
from tiedtools.vectors.vectors import Vectors

SUBWORDS = "subwords"  # prefix of the names of the Subwords' arrays in a model file


class LstmLM(BatchedModel):
    """Recurrent language model, P(w_t | w_1 .. w_{t-1}), with the interface that fit.py requires.

    LstmConfig describes all variants. A state concatenates the states of the cells: (h, c) for an LSTM, [1, B, n]
    each. If `config.subwords`, the Vocab has the Subwords of its words.

    frozen  whether training does not change the embeddings, and the layers that compose them
    """

    kind = "lstm"  # in files, whatever the cell, which is `config.cell`
    KERNELS = 80
    continued: dict[str, Any]  # see fit.py

    def __init__(self, vocab: Vocab, config: LstmConfig, values: Arrays | None = None, frozen: bool = False) -> None:
        self.vocab, self.frozen = vocab, frozen
        super().__init__(config, values)

    def wire(self, params: Params) -> Network:
        wired = network(params, self.config, self.vocab)
        if self.frozen:
            params.frozen = {name for name in params.shapes if name.startswith("emb_") and name != "emb_out.b"}
        return wired

    @classmethod
    def smallest(cls, config: LstmConfig) -> "LstmLM":
        vocab, sizes = Vocab.made_up(), dict[str, Any](size=16, hidden=16, layer_widths=None)
        if config.subwords:
            vocab.subwords, sizes = Subwords.learn("chars", vocab.words), {}
        return cls(vocab, dataclasses.replace(config, threads=1, sampled=min(config.sampled, 16), **sizes))

    @classmethod
    def memory(cls, vocab: Vocab, config: LstmConfig) -> int:
        """Return the bytes of a model's arrays in training: parameters, the best, gradients, optimizer, workspace."""
        with imagining() as sizes:
            model = idle(cls)(vocab, config)
            model.learner(0.0)
            steps = RandomWindows.longest(config.steps) if config.random_steps else config.steps
            ids = np.resize(np.arange(len(vocab), dtype=np.int32), (steps, config.batch))
            model.train_step(ids, ids, model.start(config.batch), 0)
            if config.subwords:
                model.score(ids, ids, model.start(config.batch))  # composes all words
        return sum(sizes) + model.params.values.nbytes

    @property
    def identity(self) -> Arrays:
        """See fit.py: the subwords of all words."""
        return {"segmentation": self.vocab.subwords.table(self.vocab.words)} if self.vocab.subwords else {}

    def start(self, batch: int) -> State:
        return self.network.start(batch)

    def begin(self) -> State:
        return self.start(self.config.batch)

    def compile(self) -> None:
        word, state = np.zeros((1, 1), np.int32), self.start(1)
        self.train_step(word, word, state, 0)
        SGD(self.params).update(0.0)
        self.score(word, word, state)

    def batches(self, ids: np.ndarray) -> Windows:
        c = self.config
        if c.random_steps:
            return RandomWindows(ids, c.steps, c.batch, c.seed, c.loss_scale == "mean")
        return Windows(ids, c.steps, c.batch)

    def train_step(self, ids: np.ndarray, targets: np.ndarray, state: State, number: int) -> tuple[float, int, State]:
        """See Learner. The objective of the gradient is cross entropy plus regularization."""
        ids, targets = map(np.ascontiguousarray, (ids, targets))
        scale = 1 / (targets.shape[1] if self.config.loss_scale == "sum" else targets.size)
        seed = functools.partial(mask_seed, self.config.seed, number)
        self.params.begin_step()
        nats, state = self.network.train(state, Step(ids, targets, seed, True, scale))
        return float(nats.sum()), int(np.count_nonzero(targets >= 0)), state

    @exclusive
    def score(
        self, ids: np.ndarray, targets: np.ndarray, state: State, sample: int | None = None, outputs: bool = False
    ) -> tuple[Any, ...]:
        """See fit.py. outputs: also return the input of the softmax, [T, B, n]."""
        seed = None if sample is None else functools.partial(mask_seed, self.config.seed, -1 - sample)
        step = Step(np.ascontiguousarray(ids), np.ascontiguousarray(targets), seed)
        x, state = self.network.forward(state, step)
        output = self.network.output
        return output.score(x, step).copy(), state, *[x[..., : output.n].copy()] * outputs

    @exclusive
    def predict(self, ids: np.ndarray, state: State, outputs: bool = False) -> tuple[Any, ...]:
        """Return log probabilities, float64 [B, V], of the words after ids, int32 [T, B], and the state after ids.

        outputs  also return the input of the softmax, [T, B, n]
        """
        x, state = self.network.forward(state, Step(np.ascontiguousarray(ids)))
        output = self.network.output
        return output.distribution(x[-1]), state, *[x[..., : output.n].copy()] * outputs

    def vectors(self, which: str) -> Vectors:
        """Return the Vectors of the input ("in") or output ("out") embeddings, or of their "sum" or "concat"."""
        matrices = dict(self.params.owners()) | self.composed()
        emb_in = matrices["emb_in"]
        return Vectors.of(self.vocab.words, which, emb_in, matrices.get("emb_out", emb_in))

    @exclusive
    def composed(self) -> Arrays:
        """Return copies of the composed word tables: "emb_in" and, if it differs, "emb_out" -> array [V, m]."""
        tables = self.network.tables
        for table in tables:
            table.begin(Step(None))
        return {name: table.matrix()[:, : table.m].copy() for name, table in zip(("emb_in", "emb_out"), tables)}

    @property
    def longest(self) -> int | None:
        """Maximum number of subwords in a composed vector: as many as the longest training word has.

        None: no maximum, in MorphSum, which only adds.
        """
        return None if self.config.subwords == "morphs" else self.network.layers[0].table.codes.shape[1]

    @exclusive
    def compose(self, words: list[str], which: str = "in") -> Vectors:
        """Return the Vectors of any words, composed from their known subwords. which: see `vectors`.

        Words with more subwords than `longest` are truncated. Raises TiedtoolsError if the model does not compose
        these vectors.
        """
        matrices: Any = {"in": None, "out": None}
        for side, table in ("in", self.network.layers[0].table), ("out", self.network.output.table):
            if which in (side, "sum", "concat"):
                if table not in self.network.tables:
                    problem = f"the {side}put vectors of this model are not composed"
                    raise TiedtoolsError(f"{problem}, with `reuse=plain`; train one with `reuse=all`")
                table.composed = None
                table.compose(self.vocab.subwords.table(words)[:, : self.longest] - 1, Step(None))
                matrices[side] = np.array(table.matrix()[:, : table.m], np.float32)
        return Vectors.of(words, which, *matrices.values())

    @exclusive
    def gates(self) -> list[list[np.ndarray]]:
        """Return the transform gates of all words: a list per composed table, with an array [V, m] per highway."""
        for table in self.network.tables:
            table.begin(Step(None))
        return [[layer.gates for layer in table.layers if isinstance(layer, Highway)] for table in self.network.tables]

    def of_words(self, words: list[str]) -> "LstmLM":
        """Return this model with another vocabulary, which begins with `</s>`, with vectors from `compose`.

        Its output embeddings must be composed. Known words keep their output bias, others have the mean.
        """
        subwords = copy.copy(self.vocab.subwords)
        subwords.longest = self.longest
        vocab = Vocab(words, np.zeros(len(words), np.int64), subwords)
        values = dict(self.params.owners())
        if self.config.output_bias:
            bias = values["emb_out.b"]
            known = dict(zip(self.vocab.words, bias.tolist()))
            values["emb_out.b"] = np.array([known.get(word, bias.mean()) for word in words], bias.dtype)
        model = type(self)(vocab, self.config, values)
        model.settings = self.settings  # of texts: how to tokenize them
        return model

    def save(self, file: BinaryIO) -> None:
        """Write a model file, with the composed word vectors, for readers of vectors, and the state of the Subwords.

        Raises TiedtoolsError for a model from `of_words`.
        """
        if self.config.subwords and self.vocab.subwords.words != self.vocab.words:
            raise TiedtoolsError("a model with a replaced vocabulary cannot be saved; save the original")
        arrays = dict(self.params.owners(), counts=self.vocab.counts, **self.composed())
        if self.config.subwords:
            arrays |= modelfile.pack(SUBWORDS, *self.vocab.subwords.state())
        config = dataclasses.asdict(self.config)
        config = {name: value for name, value in config.items() if value is not None or name not in OF_RHN}
        modelfile.save(file, self.kind, config, self.vocab.words, arrays, self.settings)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.vocab, self.config, dict(self.params.owners())), {"settings": self.settings}

    @classmethod
    def of_file(cls, config: dict[str, Any], words: list[str], arrays: Arrays) -> "LstmLM":
        config = modelfile.configured(LstmConfig, config)
        vocab = Vocab(words, arrays.pop("counts"))
        if config.subwords:
            header, state = modelfile.unpack(SUBWORDS, arrays)
            vocab.subwords = Subwords.from_state(header, state, words)
        return cls(vocab.check(), config, arrays)
