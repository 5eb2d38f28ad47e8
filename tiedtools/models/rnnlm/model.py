"""Class-based RNN language model (Mikolov et al. 2011) with an online document vector (Rei 2015)."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from tiedtools.files import modelfile
from tiedtools.files.modelfile import Arrays
from tiedtools.kernels.base.arrays import imagining
from tiedtools.kernels.base.tiles import DOTS, ROWS
from tiedtools.kernels.rnnlm import rnnlm
from tiedtools.kernels.rnnlm.classes import BLOCK
from tiedtools.kernels.rnnlm.rnnlmtypes import Rules, Weights, Workspace
from tiedtools.models.batched import Model
from tiedtools.models.rnnlm.batches import OnlineLearner, Pieces
from tiedtools.models.rnnlm.config import START_DOC, RnnlmConfig
from tiedtools.network.network import State
from tiedtools.network.params import Buffers, Params, constant
from tiedtools.network.threads import exclusive, idle
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.vectors import Vectors

PROGRESS = dict(iter=int, position=int, alpha=float, halving=int, llogp=float, train=str, valid=str)


def word_classes(counts: np.ndarray, n: int, old: bool = False) -> np.ndarray:
    """Return the bounds, int64 [C + 1], of at most `n` classes: class k has words bounds[k] .. bounds[k + 1] - 1.

    As in rnnlm, words fill the classes in order of their IDs, each class up to 1 / n of the sum of the square roots of
    the counts (of the counts if `old`); the word that crosses a bound still belongs to the earlier class.
    """
    mass = counts / counts.sum()
    mass = np.cumsum(mass if old else np.sqrt(mass) / np.sqrt(mass).sum())
    bounds, k = [0], 0
    for word in range(len(counts) - 1):
        if k < n - 1 and min(mass[word], 1) > (k + 1) / n:
            k += 1
            bounds.append(word + 1)
    return np.array([*bounds, len(counts)], np.int64)


class Rnnlm(Model):
    """Class-based RNN language model, P(w_t | w_1 .. w_{t-1}), with the interface that fit.py requires.

    RnnlmConfig describes all variants.

    params     emb_in [V, M], hid [M, M], class_hid [M, C], word_out [V, M + D], start_hid [M]; with a document vector
               class_doc [D, C] and start_doc [D]; with n-gram features direct [features]
    starts     int64 [C + 1], bounds of the classes' words; class_of  int32 [V]
    progress   dict of the training progress recorded in rnnlm's model files

    A state is (h [1, B, M], d [1, B, D], last words int32 [1, B, order], newest first, and int32 [1, B, 1]: whether d
    must still be updated for the next word read, which was not known as a target). The model may read an
    out-of-vocabulary word, ID -1: it has no vector, and no n-gram spans it.
    """

    kind = "rnnlm"
    KERNELS = 55
    racing = True  # see fit.py

    def __init__(
        self, vocab: Vocab, config: RnnlmConfig, values: Arrays | None = None, starts: np.ndarray | None = None
    ) -> None:
        """Create the model.

        values  initial arrays of the parameters; None: initialize randomly
        starts  bounds of the classes; None: word_classes
        """
        self.vocab, self.config, self.progress = vocab, config, {}
        c, V = config, len(vocab)
        self.starts = word_classes(vocab.counts, c.classes, c.old_classes) if starts is None else starts
        self.class_of = np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))
        M, C, D = c.hidden, len(self.starts) - 1, c.doc_dim
        self.params = params = Params(self.Team(c.threads), c.dtype, odd=False)
        shapes: dict[str, tuple[int, ...]] = dict(word_out=(V, M + D), class_hid=(M, C), class_doc=(D, C), hid=(M, M))
        shapes |= dict(emb_in=(V, M), start_hid=(M,), start_doc=(D,), direct=(c.direct,))
        initializers = dict(start_hid=constant(0.1), direct=None)
        for name, shape in shapes.items():
            if 0 not in shape:
                params.add(name, shape, initializers.get(name, sum_of_three))
        self.build(values, gradients=False)
        emb, hid, class_hid, word_out = map(params.padded, ("emb_in", "hid", "class_hid", "word_out"))
        class_doc = params.padded("class_doc") if D else class_hid[:0]
        start_doc, direct = (params[x] if x in params.shapes else class_hid[0, :0] for x in ("start_doc", "direct"))
        arrays = emb, hid, class_hid, class_doc, word_out, params["start_hid"], start_doc, direct
        restart = params["start_hid"] if c.learn_start else np.ones(M, params.dtype)
        self.weights = Weights(*arrays, self.class_of, self.starts, restart)
        self.top = max(c.reach + 1, c.direct_order)
        self.training, self.scoring = Buffers(c.dtype, odd=False), Buffers(c.dtype, odd=False)

    @classmethod
    def warm_up(cls, config: RnnlmConfig) -> None:
        """Compile the kernels with a small model, so that later memory checks include the memory compilation takes."""
        sizes = {name: min(getattr(config, name), 16) for name in ("hidden", "classes", "doc_dim", "direct")}
        cls(Vocab.made_up(), dataclasses.replace(config, threads=1, **sizes)).compile()

    @classmethod
    def memory(cls, vocab: Vocab, config: RnnlmConfig) -> int:
        """Return the bytes of a model's arrays in training: parameters, workspace, and best parameters.

        Pieces.memory returns the bytes of the text.
        """
        with imagining() as sizes:
            model = idle(cls)(vocab, config)
            model.space(model.training, config.block, True)
            model.space(model.scoring, 2 * BLOCK, False)
        # Initialization needs two float64 copies, but neither best parameters nor workspace exist then.
        values, V, M = model.params.values.nbytes, len(vocab), config.hidden
        initialization = 16 * V * (M + config.doc_dim)
        return values + max(sum(sizes), initialization)

    def space(self, buffers: Buffers, segment: int, learning: bool) -> Workspace:
        """Return the Workspace of all threads."""
        c, n, largest = self.config, self.config.threads, int(np.diff(self.starts).max())
        M, C, X, late = c.hidden, len(self.starts) - 1, c.hidden + c.doc_dim, segment if c.defer and learning else 1
        rows, tall = self.top + segment + ROWS, segment + ROWS
        shapes = dict(H=(rows, M), A=(rows, M), input_errors=(rows, M), G=(tall, M), Z=(tall, C), E=(tall, C))
        shapes |= dict(X=(late, X), F=(late, largest), scores=(1, max(largest, X) + DOTS), B=(1, X))
        shapes |= dict(gram=(BLOCK, BLOCK), doc=(5, X))
        copied = learning and n > 1
        for name, shape in dict(hid=(M, M), class_hid=(M, C), class_doc=(c.doc_dim, C)).items():
            shapes[name] = shapes[f"{name}_then"] = shape if copied else (0, shape[1])
        arrays = {name: buffers(name, n, *shape) for name, shape in shapes.items()}
        arrays["slots"] = buffers("slots", n, 2, c.direct_order, dtype=np.int64)
        arrays["words"] = buffers("words", n, 1, rows, dtype=np.int32)[:, 0]
        arrays["counts"] = buffers("counts", n, 1, 8, dtype=np.int64)[:, 0]
        return Workspace(**arrays)

    def rules(self, lr: float, segment: int) -> Rules:
        c, number = self.config, self.params.dtype.type
        numbers = number(lr), number(c.doc_lr), number(1 - lr * c.beta), number(c.cutoff or math.inf)
        flags = c.defer and segment > 1, c.independent, c.learn_start
        return Rules(*numbers, c.direct_order, *flags, START_DOC.index(c.start_doc), segment, c.reach)

    def start(self, batch: int) -> State:
        c = self.config
        h, d = np.empty((1, batch, c.hidden), c.dtype), np.zeros((1, batch, c.doc_dim), c.dtype)
        h[:] = self.params["start_hid"]
        if c.doc_dim:
            d[:] = self.params["start_doc"]
        return h, d, np.zeros((1, batch, c.direct_order), np.int32), np.zeros((1, batch, 1), np.int32)

    def compile(self) -> None:
        """Compile the kernels without changing the parameters."""
        word = np.zeros((1, 1), np.int32)
        self.score(word, word, self.start(1))
        self.train(np.zeros(1, np.int32), np.zeros((self.config.threads, 2), np.int64), 0.0)

    def train(self, text: np.ndarray, cuts: np.ndarray, lr: float) -> np.ndarray:
        """Train thread k on text[cuts[k, 0] + 1 .. cuts[k, 1]]; return log probabilities, float64 [threads, words]."""
        logs = np.zeros((len(cuts), int((cuts[:, 1] - cuts[:, 0]).max())))
        none = np.empty((len(cuts), 0, 0), self.params.dtype)
        self.run(logs, none, text, text[1:], cuts, [part[0] for part in self.start(0)], lr, True)
        return logs

    def run(
        self, logs: np.ndarray, hidden: np.ndarray, text: np.ndarray, targets: np.ndarray, cuts: np.ndarray,
        state: Sequence[np.ndarray], lr: float, learning: bool,
    ) -> None:  # fmt: skip
        segment, buffers = (self.config.block, self.training) if learning else (2 * BLOCK, self.scoring)
        model = self.weights, self.space(buffers, segment, learning), self.rules(lr, segment)
        self.params.team(rnnlm.run, logs, hidden, text, targets, cuts, tuple(state), *model, learning)

    def learn(self, ids: np.ndarray, lr: float) -> np.ndarray:
        """Return log probabilities, float64 [n], of a text, each word scored before training on it: rnnlm's -dynamic.

        Out-of-vocabulary words, ID -1, are read as a zero vector, and not scored.
        """
        text, cuts = np.concatenate([[0], ids]).astype(np.int32), np.zeros((self.config.threads, 2), np.int64)
        cuts[0, 1] = len(ids)
        self.begin()
        return self.train(text, cuts, lr)[0]

    def begin(self) -> None:
        """Reset the state of each thread to the start of a text."""
        H, words, doc, counts = self.carried()
        H[:, -1, : self.config.hidden] = self.params["start_hid"]
        for array in (words, doc, counts):
            array[:] = 0
        if self.config.doc_dim:
            doc[:, 0, : self.config.doc_dim] = self.params["start_doc"]

    def carried(self) -> State:
        """Return the state that threads carry from one piece of text to the next.

        Views of hidden states, words, document vectors, and counts.
        """
        space = self.space(self.training, self.config.block, True)
        return space.H[:, : self.top], space.words[:, : self.top], space.doc, space.counts

    def batches(self, ids: np.ndarray) -> Pieces:
        return Pieces(ids, self.config)

    def learner(self, clip: float) -> OnlineLearner:
        return OnlineLearner(self)

    @exclusive
    def score(self, ids: np.ndarray, targets: np.ndarray, state: State, outputs: bool = False) -> tuple[Any, ...]:
        """See fit.py. outputs: also return the hidden states, [T, B, M]."""
        T, B = ids.shape
        state = [np.array(part[0], order="C") for part in state]
        ids, targets = (np.ascontiguousarray(array.T, np.int32).ravel() for array in (ids, targets))
        logs, cuts = np.zeros((B, T)), np.arange(B)[:, None] * T + [0, T]
        hidden = np.empty((B, T * outputs, self.config.hidden), self.params.dtype)
        self.run(logs, hidden, ids, targets, cuts, state, 0, False)
        scores = np.ascontiguousarray(logs.T), tuple(part[None] for part in state)
        return *scores, *[np.ascontiguousarray(hidden.swapaxes(0, 1))] * outputs

    @exclusive
    def predict(self, ids: np.ndarray, state: State, outputs: bool = False) -> tuple[Any, ...]:
        """Return log probabilities, float64 [B, V], of the words after ids, int32 [T, B], and the state after ids.

        outputs  also return the hidden states, [T, B, M]
        """
        targets = np.full_like(ids, -1)
        targets[:-1] = ids[1:]
        _, state, *hidden = self.score(ids, targets, state, outputs)
        h, d, last, _ = (part[0] for part in state)
        logs = np.empty((ids.shape[1], len(self.vocab)))
        model = self.weights, self.space(self.scoring, 2 * BLOCK, False), self.rules(0, 2 * BLOCK)
        self.params.team(rnnlm.distributions, logs, h, d, last, *model)
        return logs, state, *hidden

    def vectors(self, which: str) -> Vectors:
        """Return the Vectors of the input ("in") or output ("out") embeddings, or of their "sum" or "concat"."""
        emb_in, word_out = self.params["emb_in"], self.params["word_out"][:, : self.config.hidden]
        return Vectors.of(self.vocab.words, which, emb_in, word_out)

    def save(self, file: BinaryIO) -> None:
        arrays = dict(self.params.owners(), counts=self.vocab.counts, starts=self.starts)
        config = dict(dataclasses.asdict(self.config), progress=self.progress)
        modelfile.save(file, self.kind, config, self.vocab.words, arrays, self.settings)

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = self.vocab, self.config, dict(self.params.owners()), self.starts
        return type(self), arguments, {"progress": self.progress, "settings": self.settings}

    @classmethod
    def of_file(cls, config: dict[str, Any], words: list[str], arrays: Arrays) -> "Rnnlm":
        progress = config.pop("progress")
        check_progress(progress)
        vocab, starts = Vocab(words, arrays.pop("counts")).check(), arrays.pop("starts")
        check_starts(starts, len(vocab))
        model = cls(vocab, modelfile.configured(RnnlmConfig, config), arrays, starts)
        model.progress = progress
        return model


def sum_of_three(rng: np.random.Generator, array: np.ndarray) -> None:
    """Initialize as rnnlm does: sums of three numbers uniform in +-0.1."""
    drawn = rng.uniform(-0.1, 0.1, array.shape)
    for _ in range(2):
        drawn += rng.uniform(-0.1, 0.1, array.shape)
    array[:] = drawn


def check_progress(progress: dict[str, Any]) -> None:
    """Raise ValueError unless training can continue from the `progress` of an Rnnlm."""
    modelfile.check_types(PROGRESS, progress)
    if not all(0 <= progress.get(name, 0) <= 1e30 for name in ("iter", "position", "alpha")):
        raise ValueError("inconsistent training progress")


def check_starts(starts: np.ndarray, V: int) -> None:
    """Raise ValueError unless `starts`, int [C + 1], are bounds of classes of V words; kernels do not check them."""
    bounds = starts.ndim == 1 and starts.dtype.kind == "i" and len(starts) > 1
    if not bounds or starts[0] != 0 or starts[-1] != V or (starts[1:] < starts[:-1]).any():
        raise ValueError("invalid class bounds in starts")
