"""Sampled softmax output layer, for training with large vocabularies."""

import numpy as np

from tiedtools.network.buffers import stride
from tiedtools.network.layers.softmax import Softmax


class SampledSoftmax(Softmax):
    """Softmax whose training loss uses only the target and `samples` other words (Jean et al. 2015).

    The words are drawn without replacement, log-uniformly by frequency rank, once per step for all targets. The log of
    a word's expected count among the samples is subtracted from its score, and a sample that equals a target
    (accidental hit) is excluded for that target. `score` uses all words.

    counts  [V], word counts of the training text, which determine the ranks
    """

    def __init__(self, params, table, samples, counts, bias=None, biases=None):
        super().__init__(params, table, bias, biases, by_rows=True)
        V = self.V
        self.samples = min(samples, V - 1)
        self.by_rank = np.argsort(-np.asarray(counts), kind="stable")
        self.rank = np.empty(V, np.int64)
        self.rank[self.by_rank] = np.arange(V)

    def probability(self, words):
        """Return the log-uniform probability of each word."""
        rank = self.rank[words]
        return np.log1p(1 / (rank + 1.0)) / np.log(self.V + 1.0)

    def draw(self, seed):
        """Return (`samples` distinct words, a function from words to their expected counts in that many draws)."""
        rng, tries = np.random.default_rng(seed), 0
        seen = np.empty(0, np.int64)
        while seen.size < self.samples:
            ranks = np.exp(rng.random(self.samples) * np.log(self.V + 1.0)).astype(np.int64) - 1
            ranks = np.concatenate([seen, np.minimum(ranks, self.V - 1)])
            seen, first = np.unique(ranks, return_index=True)
            first = np.sort(first)[: self.samples]
            # Count the draws up to the last new word that is needed.
            tries += self.samples if first.size < self.samples else int(first[-1]) + 1 - (ranks.size - self.samples)
            seen = ranks[first]
        return self.by_rank[seen], lambda words: -np.expm1(tries * np.log1p(-self.probability(words)))

    def words(self, step):
        """Return the words whose vectors the loss of a training step needs, with repetitions."""
        return np.concatenate([self.draw(step.seed("samples"))[0], np.maximum(step.targets.ravel(), 0)])

    def rows(self, words):
        """Return the vectors of words, with padded rows."""
        rows = np.empty((len(words), stride(self.n, self.params.dtype)), self.params.dtype)
        self.table.rows(rows, words)
        return rows

    def loss(self, x, step):
        """Like Softmax.loss; the nats are those of the sampled loss."""
        params, shape, targets, scale = self.params, x.shape, step.targets.ravel(), step.scale
        x = x.reshape(-1, shape[-1])
        words, expected = self.draw(step.seed("samples"))
        true, counted = np.maximum(targets, 0), targets >= 0
        W, W_true, b = *(self.rows(which) for which in (words, true)), params[self.b]
        scores = x @ W.T - np.log(expected(words)).astype(x.dtype)
        own = np.einsum("ij,ij->i", x, W_true) - np.log(expected(true)).astype(x.dtype)
        if self.b:
            scores += b[words]
            own += b[true]
        scores[true[:, None] == words] = -np.inf
        top = np.maximum(scores.max(1), own)
        scores = np.exp(scores - top[:, None])
        total = scores.sum(1) + np.exp(own - top)
        nll = np.where(counted, np.log(total, dtype=float) + top - own, 0)

        factor = (scale * counted / total).astype(x.dtype)
        scores *= factor[:, None]
        d_own = factor * np.exp(own - top) - (scale * counted).astype(x.dtype)
        dx = self.buffers("dx", len(x), self.n)
        np.matmul(scores, W, out=dx)
        dx += d_own[:, None] * W_true
        self.table.add_to_rows(scores.T @ x, words)
        self.table.add_to_rows(d_own[:, None] * x, true)
        if self.b:
            db = params.row_gradient(self.b, np.concatenate([words, true]))
            db[words] += scores.sum(0)
            np.add.at(db, true, d_own)
        return nll.reshape(shape[:2]), dx.reshape(shape)
