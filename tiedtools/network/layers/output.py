"""Output layers: softmax with cross-entropy loss, sampled softmax, and softmax with the augmented loss."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tiedtools.kernels.base.elementwise import add_to_rows, gather_rows
from tiedtools.kernels.output import augmented as kernel
from tiedtools.kernels.output import softmax, topk
from tiedtools.kernels.output.softmax import WORDS, Weights
from tiedtools.network.network import Step
from tiedtools.network.params import Buffers, Fill, Params
from tiedtools.network.tables import Table

# Predictions per block of kernels/output/softmax.py. With a large vocabulary, blocks shrink to limit the number of
# scores to SCORES and save memory, but to no less than a quarter of ROWS, because each block reads all of W.
ROWS, SCORES = 704, 1 << 24
Draw = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]  # words, and a function from words to expected counts


class Softmax:
    """Softmax output layer: P(w | x) = softmax(x W^T + b), with W [V, n] from a word table.

    bias  the name of the parameter b [V], or None; biases, by_rows: start and by_rows of Params.add for b
    """

    def __init__(
        self, params: Params, table: Table, bias: str | None = None, biases: Fill | None = None, by_rows: bool = False
    ) -> None:
        if bias:
            params.add(bias, (table.V,), biases, by_rows)
        self.params, self.team, self.table, self.b, self.V, self.n = params, params.team, table, bias, table.V, table.m
        self.buffers = Buffers(params.dtype)

    def prepare(self, x: np.ndarray, words: int, training: bool = True) -> tuple[np.ndarray, softmax.Scratch]:
        """Return x flattened to [N, n], and the kernel's Scratch with scores for `words` words."""
        buffer, n, threads, x = self.buffers, self.n, self.team.threads, x.reshape(-1, x.shape[-1])
        blocks = -(-len(x) // max(ROWS // 4, min(ROWS, SCORES // self.V)))
        rows = -(-len(x) // blocks)
        Z, XT = buffer("scores", words, rows), buffer("xt", n, rows)
        peaks = buffer("peaks", -(-self.V // WORDS) + threads, rows)
        stats, parts = buffer("stats", threads, 5, rows), buffer("parts", threads, rows, n)
        return x, softmax.Scratch(Z, XT, peaks, stats, parts, self.bf16(buffer, rows, n, training))

    def bf16(self, buffers: Buffers, rows: int, n: int, used: bool = True) -> tuple[np.ndarray | None, ...]:
        """Return scratch for the kernel's bfloat16 operands, for blocks of `rows` predictions with vectors [n]."""
        words = self.team.threads * WORDS
        return buffers.bf16(
            self.params.half, used, x_down=(rows, n), xt_down=(n, rows),
            w_along=(words, n), w_down=(words, n), z_along=(words, rows), z_down=(words, rows),
        )  # fmt: skip

    def weights(self) -> Weights:
        """Return the kernel's Weights: W [V, n], with padded rows, and b [V], or [0] without a bias."""
        return Weights(self.table.matrix(), self.params[self.b], self.params.none)

    def loss(self, x: np.ndarray, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Return the cross entropy of the targets, nats float64 [T, B], and the gradient dx for x, both [T, B, n]."""
        dW, accumulate = self.table.gradient()
        db, accumulate_b = self.params.gradient(self.b)
        gradients = dW, db, self.params.none, accumulate, accumulate_b
        return self.descend(x, self.weights(), step.targets, step.scale, *gradients)

    def descend(
        self, x: np.ndarray, weights: Weights, targets: np.ndarray, scale: float, *gradients: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return nats and dx like `loss`, for targets in the kernel's Weights, and compute its other Gradients."""
        flat, scratch = self.prepare(x, len(weights.W))
        nll = self.buffers("nll", targets.size, dtype=np.float64)
        dx = self.buffers("dx", *targets.shape, self.n)
        gradients = softmax.Gradients(dx.reshape(flat.shape), *gradients)
        scale = self.params.dtype.type(scale)
        self.team(softmax.loss_and_gradient, nll, gradients, scratch, flat, weights, targets.ravel(), scale)
        return nll.reshape(targets.shape), dx

    def score(self, x: np.ndarray, step: Step) -> np.ndarray:
        """Return log probabilities of the targets in nats, float64 [T, B]; 0 if the target is -1."""
        targets, (flat, scratch) = step.targets, self.prepare(x, self.team.threads * WORDS, training=False)
        logp = self.buffers("nll", targets.size, dtype=np.float64)
        self.team(softmax.log_probabilities, logp, scratch, flat, self.weights(), targets.ravel())
        return logp.reshape(targets.shape)

    def distribution(self, x: np.ndarray) -> np.ndarray:
        """Return log probabilities of all words in nats, float64 [B, V], for x [B, n]."""
        Z = self.buffers("all scores", self.V, len(x))
        self.team(softmax.scores, Z, self.buffers("x transposed", self.n, len(x)), x, self.table.matrix())
        scores = Z[:, : len(x)].T.astype(float)
        if self.b:
            scores += self.params[self.b]
        scores -= scores.max(1, keepdims=True)
        return scores - np.log(np.exp(scores).sum(1, keepdims=True))

    def best(self, x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k most probable words for x [B, n]: log probabilities in nats, float64 [B, k], and int32 ids."""
        (B, _), threads, buffer = x.shape, self.team.threads, self.buffers
        logprobs, ids = np.empty((threads, B, k)), np.empty((threads, B, k), np.int32)
        scratch = buffer("best scores", threads * topk.WORDS, B), buffer("x transposed", self.n, B)
        stats = buffer("best stats", threads, 4, B)
        self.team(topk.most_probable, logprobs, ids, *scratch, stats, x, *self.weights()[:2])
        return logprobs[0], ids[0]


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

    def rows(self, words: np.ndarray, name: str) -> np.ndarray:
        """Return the vectors of words, with padded rows, in the buffer `name`."""
        rows = self.buffers(name, len(words), self.n)
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
        W, W_true, b = self.rows(words, "W"), self.rows(true, "W_true"), params[self.b]
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


class AugmentedSoftmax(Softmax):
    """Softmax with an additional loss that rewards words similar to the target: Inan et al. 2017, sections 3, 6.2.

    like      a word table [V, m] that defines similarity: the input embeddings
    weights   weights of the cross entropy and of tau KL; `tau` is the temperature of the latter
    detach    stop gradients through the soft targets
    """

    def __init__(
        self, params: Params, table: Table, like: Table, weights: tuple[float, float], tau: float, detach: bool,
        bias: str | None = None, biases: Fill | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, table, bias, biases)
        self.like, self.m, self.weights_of_losses, self.tau, self.flow = like, like.m, weights, tau, not detach
        self.buffers_e = Buffers(params.dtype)

    def loss(self, x: np.ndarray, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Like Softmax.loss: nats of the cross entropy only, but the gradient of both losses."""
        params, team, buffer, targets = self.params, self.team, self.buffers, step.targets.ravel()
        shape, (flat, (Z, XT, _, _, parts, bf16)) = x.shape, self.prepare(x, self.V)
        N, (threads, R) = targets.size, parts.shape[:2]
        starts = range(0, N, R)
        orders, sizes = zip(*(in_levels(targets[start : start + R]) for start in starts))
        order = np.concatenate([start + rows for start, rows in zip(starts, orders)])
        targets = targets[order]
        words = np.concatenate([targets[start:][: size[0]] for start, size in zip(starts, sizes)])
        np.maximum(words, 0, out=words)
        nll = buffer("nll", N, dtype=np.float64)
        ordered, dx, dEt = buffer("ordered", N, self.n), buffer("dx", N, self.n), buffer("dEt", N, self.m)[: words.size]
        team.over(ordered.size, gather_rows, ordered, flat, order.astype(np.int32))
        Et, E = buffer("Et", N, self.m)[: words.size], self.like.matrix()
        self.like.rows(Et, words)
        dW, add_w = self.table.gradient()
        db, add_b = params.gradient(self.b)
        dE, add_e = self.like.gradient() if self.flow else (dW, add_w)
        scratch = kernel.Scratch(
            Z, buffer("A", self.V, R), buffer("D", threads * WORDS, R), XT, buffer("EtT", self.m, R),
            buffer("stats of three", 2 * threads, kernel.N_STATS, R), parts, buffer("parts_e", threads, R, self.m),
            bf16, self.bf16(self.buffers_e, R, self.m),
        )  # fmt: skip
        number = params.dtype.type
        scale, scale_kl = (number(step.scale) * number(weight) for weight in self.weights_of_losses)
        W, b, _ = self.weights()
        team(
            kernel.loss_and_gradient, nll, kernel.Gradients(dx, dW, db, dEt, dE, add_w, add_b, add_e), scratch,
            kernel.Inputs(ordered, W, b, Et, E),
            kernel.Targets(targets, np.concatenate(sizes), np.cumsum([0, *map(len, sizes)])),
            kernel.Objective(scale, scale_kl, number(1 / self.tau), self.flow),
        )  # fmt: skip
        if self.flow:
            team(add_to_rows, dE, dEt, words)
        back = np.argsort(order)
        team.over(ordered.size, gather_rows, ordered, dx, back.astype(np.int32))
        return nll[back].reshape(shape[:2]), ordered.reshape(shape)


def in_levels(targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an order of targets [N], in the levels of kernels/output/augmented.py, and the size of each level."""
    _, kinds, counts = np.unique(targets, return_inverse=True, return_counts=True)
    level = np.arange(targets.size) - np.repeat(np.cumsum(counts) - counts, counts)
    order = np.argsort(kinds, kind="stable")[np.lexsort((np.repeat(-counts, counts), level))]
    return order, np.bincount(level)
