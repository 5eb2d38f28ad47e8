"""The softmax over the vocabulary, with its loss."""

import numpy as np

from tiedtools.kernels import softmax
from tiedtools.kernels.softmax import WORDS
from tiedtools.network.buffers import Buffers

# Predictions that kernels/softmax.py takes at a time. With a large vocabulary they are fewer, so that their scores, so
# many at most, fit memory; but a quarter at least, since each time all of W is read.
ROWS, SCORES = 704, 1 << 24


class Softmax:
    """P(w | x) = softmax(x W^T + b).

    Parameters: name  [V, n], which may be tied to the input embeddings        name.b  [V], where there is a bias
    """

    def __init__(self, params, team, name, V, n, bias=True, by_rows=False):
        self.W, self.b = name, f"{name}.b" if bias else None
        params.add(name, (V, n), by_rows)
        if bias:
            params.add(self.b, (V,), by_rows)
        self.params, self.team, self.V, self.n = params, team, V, n
        self.buffers = Buffers(params.dtype)

    def prepare(self, x, words):
        """Flat x [N, n] and scratch, with scores of so many words."""
        buffer, threads = self.buffers, self.team.threads
        x = x.reshape(-1, x.shape[-1])
        blocks = -(-len(x) // max(ROWS // 4, min(ROWS, SCORES // self.V)))
        rows = -(-len(x) // blocks)
        scratch = buffer("scores", words, rows), buffer("xt", self.n, rows), buffer("peaks", -(-self.V // WORDS), rows)
        return x, (*scratch, buffer("stats", threads, 4, rows)), buffer("parts", threads, rows, self.n)

    def bf16(self, buffers, rows, n):
        """Room for the kernel's pairs of bfloat16: `rows` predictions at a time, vectors [n] of them and of words."""
        words = self.team.threads * WORDS
        return buffers.bf16(
            self.params.half, x_down=(rows, n), xt_down=(n, rows),
            w_along=(words, n), w_down=(words, n), z_along=(words, rows), z_down=(words, rows),
        )  # fmt: skip

    def weights(self):
        """W [V, n], with padded rows, and b [V] or, without a bias, [0]."""
        return self.params.padded(self.W), self.params[self.b]

    def loss(self, x, targets, scale, seed=None):
        """The cross entropy of the targets, and the gradient of `scale` times its sum; layers that sample use `seed`.

        x [T, B, n], targets int32 [T, B], -1: not counted -> nats float64 [T, B], dx [T, B, n]
        """
        flat, scratch, parts = self.prepare(x, self.V)
        nll = self.buffers("nll", targets.size, dtype=np.float64)
        dx = self.buffers("dx", *targets.shape, self.n)
        bf16 = self.bf16(self.buffers, parts.shape[1], self.n)
        dW, accumulate = self.params.gradient(self.W)
        db, accumulate_b = self.params.gradient(self.b)
        self.team(
            softmax.loss_and_gradient, nll, dx.reshape(flat.shape), dW, db, *scratch, parts, bf16,
            flat, *self.weights(), targets.ravel(), self.params.dtype.type(scale), accumulate, accumulate_b,
        )  # fmt: skip
        return nll.reshape(targets.shape), dx

    def score(self, x, targets):
        """Log-probabilities of the targets, nats, float64 [T, B], 0 where the target is -1."""
        flat, scratch, _ = self.prepare(x, self.team.threads * WORDS)
        logp = self.buffers("nll", targets.size, dtype=np.float64)
        self.team(softmax.log_probabilities, logp, *scratch, flat, *self.weights(), targets.ravel())
        return logp.reshape(targets.shape)
