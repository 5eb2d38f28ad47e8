"""Sampled softmax output layer, for training with large vocabularies."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tiedtools.kernels.output.softmax import Weights
from tiedtools.network.buffers import stride
from tiedtools.network.layers.softmax import Softmax
from tiedtools.network.params import Params
from tiedtools.network.start import Fill
from tiedtools.network.step import Step
from tiedtools.network.tables import Table

Draw = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]  # words, and a function from words to expected counts


class SampledSoftmax(Softmax):
    """Softmax whose training loss uses only the target and `samples` other words (Jean et al. 2015).

    The words are drawn without replacement, log-uniformly by frequency rank, once per step for all targets. The log of
    a word's expected count among the samples is subtracted from its score, and a sample that equals a target
    (accidental hit) counts once for that target. `score` uses all words.

    counts  [V], word counts of the training text, which determine the ranks
    """

    def __init__(
        self, params: Params, table: Table, samples: int, counts: Sequence[int] | np.ndarray, bias: str | None = None,
        biases: Fill | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, table, bias, biases, by_rows=True)
        V = self.V
        self.samples = min(samples, V - 1)
        self.by_rank = np.argsort(-np.asarray(counts), kind="stable")
        self.rank = np.empty(V, np.int64)
        self.rank[self.by_rank] = np.arange(V)
        self.last_draw: Any = None, None

    def probability(self, words: np.ndarray) -> np.ndarray:
        """Return the log-uniform probability of each word."""
        rank = self.rank[words]
        return np.log1p(1 / (rank + 1.0)) / np.log(self.V + 1.0)

    def draw(self, seed: Any) -> Draw:
        """Return (`samples` distinct words, a function from words to their expected counts in these draws)."""
        rng, draws = np.random.default_rng(seed), 0
        seen = np.empty(0, np.int64)
        while seen.size < self.samples:
            ranks = np.exp(rng.random(self.samples) * np.log(self.V + 1.0)).astype(np.int64) - 1
            ranks = np.concatenate([seen, np.minimum(ranks, self.V - 1)])
            seen, first = np.unique(ranks, return_index=True)
            first = np.sort(first)[: self.samples]
            # Count the draws up to the last new word that is needed.
            draws += self.samples if first.size < self.samples else int(first[-1]) + 1 - (ranks.size - self.samples)
            seen = ranks[first]
        return self.by_rank[seen], lambda words: -np.expm1(draws * np.log1p(-self.probability(words)))

    def samples_of(self, step: Step) -> Draw:
        """Return the result of `draw` for a step; cached, because a step needs it up to two times."""
        seed = step.seed("samples")
        if self.last_draw[0] != seed:
            self.last_draw = seed, self.draw(seed)
        return self.last_draw[1]

    def words(self, step: Step) -> np.ndarray:
        """Return the IDs of all words in the loss of a training step, with repetitions."""
        return np.concatenate([self.samples_of(step)[0], np.maximum(step.targets.ravel(), 0)])

    def rows(self, words: np.ndarray) -> np.ndarray:
        """Return the vectors of words, with padded rows."""
        rows = np.empty((len(words), stride(self.n, self.params.dtype)), self.params.dtype)
        self.table.rows(rows, words)
        return rows

    def loss(self, x: np.ndarray, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Like Softmax.loss, with the nats of the sampled loss."""
        params, buffer, S = self.params, self.buffers, self.samples
        targets, number = step.targets, params.dtype.type
        words, expected = self.samples_of(step)
        true = np.maximum(targets.ravel(), 0)
        index = np.full(self.V, S, np.int32)
        index[words] = np.arange(S, dtype=np.int32)
        index = np.where(targets < 0, np.int32(-1), index[np.maximum(targets, 0)])
        W, W_true, b = self.rows(words), self.rows(true), params[self.b]
        shift, true_shift = (-np.log(expected(which)).astype(number) for which in (words, true))
        if self.b:
            shift += b[words]
            true_shift += b[true]
        true_scores = np.einsum("ij,ij->i", x.reshape(W_true.shape), W_true) + true_shift
        dW, db, d_true = buffer("dW", S, self.n), buffer("db", S), buffer("d_own", true.size)
        weights = Weights(W, shift, true_scores)
        nll, dx = self.descend(x, weights, index, step.scale, dW, db, d_true, False, False)
        flat = dx.reshape(W_true.shape)
        flat += d_true[:, None] * W_true
        self.table.add_to_rows(dW, words)
        self.table.add_to_rows(d_true[:, None] * x.reshape(W_true.shape), true)
        if self.b:
            db_rows = params.row_gradient(self.b, np.concatenate([words, true]))
            db_rows[words] += db
            np.add.at(db_rows, true, d_true)
        return nll, dx
