"""Softmax output layer with cross-entropy loss."""

from typing import Any

import numpy as np

from tiedtools.kernels.output import softmax, topk
from tiedtools.kernels.output.softmax import WORDS
from tiedtools.network.buffers import Buffers
from tiedtools.network.params import Params
from tiedtools.network.start import Fill
from tiedtools.network.step import Step
from tiedtools.network.tables import Table

# Predictions per block of kernels/output/softmax.py. With a large vocabulary, blocks shrink to limit the number of
# scores to SCORES and save memory, but to no less than a quarter of ROWS, because each block reads all of W.
ROWS, SCORES = 704, 1 << 24


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
        Z, XT, peaks = buffer("scores", words, rows), buffer("xt", n, rows), buffer("peaks", -(-self.V // WORDS), rows)
        stats, parts = buffer("stats", threads, 4, rows), buffer("parts", threads, rows, n)
        return x, softmax.Scratch(Z, XT, peaks, stats, parts, self.bf16(buffer, rows, n, training))

    def bf16(self, buffers: Buffers, rows: int, n: int, used: bool = True) -> tuple[np.ndarray | None, ...]:
        """Return scratch for the kernel's bfloat16 operands, for blocks of `rows` predictions with vectors [n]."""
        words = self.team.threads * WORDS
        return buffers.bf16(
            self.params.half, used, x_down=(rows, n), xt_down=(n, rows),
            w_along=(words, n), w_down=(words, n), z_along=(words, rows), z_down=(words, rows),
        )  # fmt: skip

    def weights(self) -> tuple[np.ndarray, np.ndarray]:
        """Return W [V, n], with padded rows, and b [V], or [0] without a bias."""
        return self.table.matrix(), self.params[self.b]

    def loss(self, x: np.ndarray, step: Step) -> tuple[np.ndarray, np.ndarray]:
        """Return the cross entropy of the targets, nats float64 [T, B], and the gradient dx for x, both [T, B, n]."""
        dW, accumulate = self.table.gradient()
        db, accumulate_b = self.params.gradient(self.b)
        (W, b), none = self.weights(), self.params.none
        weights = softmax.Weights(W, b, none)
        return self.descend(x, weights, step.targets, step.scale, dW, db, none, accumulate, accumulate_b)

    def descend(
        self, x: np.ndarray, weights: softmax.Weights, targets: np.ndarray, scale: float, *gradients: Any
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
        logp, (W, b) = self.buffers("nll", targets.size, dtype=np.float64), self.weights()
        weights = softmax.Weights(W, b, self.params.none)
        self.team(softmax.log_probabilities, logp, scratch, flat, weights, targets.ravel())
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
        self.team(topk.most_probable, logprobs, ids, *scratch, stats, x, *self.weights())
        return logprobs[0], ids[0]
