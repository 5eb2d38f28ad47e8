"""Softmax output layer with the augmented loss."""

import numpy as np

from tiedtools.kernels.base.elementwise import add_to_rows
from tiedtools.kernels.output import augmented as kernel
from tiedtools.network.buffers import Buffers
from tiedtools.network.layers.softmax import Softmax
from tiedtools.network.params import Params
from tiedtools.network.start import Fill
from tiedtools.network.step import Step
from tiedtools.network.tables import Table


class AugmentedSoftmax(Softmax):
    """Softmax with an additional loss that rewards words similar to the target: Inan et al. 2017, sections 3.1, 6.2.

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
        nll = buffer("nll", N, dtype=np.float64)
        distinct, kinds = zip(*(np.unique(targets[k : k + R], return_inverse=True) for k in range(0, N, R)))
        words, kinds = np.maximum(np.concatenate(distinct), 0), np.concatenate(kinds).astype(np.int32)
        firsts = np.cumsum([0, *map(len, distinct)])
        dx, dEt = buffer("dx", N, self.n), buffer("dEt", N, self.m)[: words.size]
        Et, E = buffer("Et", N, self.m)[: words.size], self.like.matrix()
        self.like.rows(Et, words)
        dW, add_w = self.table.gradient()
        db, add_b = params.gradient(self.b)
        dE, add_e = self.like.gradient() if self.flow else (dW, add_w)
        scratch = kernel.Scratch(
            Z, buffer("A", self.V, R), buffer("D", self.V, R), XT, buffer("EtT", self.m, R),
            buffer("stats of three", 2 * threads, kernel.N_STATS, R), parts, buffer("parts_e", threads, R, self.m),
            bf16, self.bf16(self.buffers_e, R, self.m),
        )  # fmt: skip
        number = params.dtype.type
        scale, scale_kl = (number(step.scale) * number(weight) for weight in self.weights_of_losses)
        W, b = self.weights()
        team(
            kernel.loss_and_gradient, nll, kernel.Gradients(dx, dW, db, dEt, dE, add_w, add_b, add_e), scratch,
            kernel.Inputs(flat, W, b, Et, E), kernel.Targets(targets, kinds, firsts),
            kernel.Objective(scale, scale_kl, number(1 / self.tau), self.flow),
        )  # fmt: skip
        if self.flow:
            team(add_to_rows, dE, dEt, words)
        return nll.reshape(shape[:2]), dx.reshape(shape)
