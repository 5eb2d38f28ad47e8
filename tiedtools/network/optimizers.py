"""Optimizers: `update(lr)` applies the gradients to the parameters.

To add one, add a class to OPTIMIZERS below, and its name to OPTIMIZERS in config.py. With gradient g, learning rate lr,
clipping limit c, and the three weight decays of network.config.Optimization:

    g += l2 theta        g *= min(1, c / |g|)
    theta = optimizer(theta, lr, g) - lr lr_weight_decay theta        theta -= weight_decay theta
"""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tiedtools.files.modelfile import Arrays
from tiedtools.kernels.base.arrays import line_up
from tiedtools.kernels.output import descent
from tiedtools.network.params import Params

NONE, PART = np.empty(0, np.int64), 1 << 16  # PART: numbers exchanged at a time
Where = tuple[int, np.ndarray, np.ndarray]  # dense, starts, sizes; see kernels/output/descent.py


class Optimizer:
    """Base class of optimizers, which changes nothing.

    clip    maximum global norm of the gradient; 0: no clipping
    decay, lr_decay, l2
            the weight decays `weight_decay`, `lr_weight_decay`, `l2`
    state   names of the state arrays, which have the layout of Params.values and are initially 0
    whole   parameters without a gradient in this step, in arrays with sparse gradients, change too
    count   number of updates that the state arrays depend on
    """

    state: tuple[str, ...] = ()
    whole = False

    def __init__(
        self, params: Params, clip: float = 0.0, decay: float = 0.0, lr_decay: float = 0.0, l2: float = 0.0
    ) -> None:
        self.params, self.clip, self.decay, self.lr_decay, self.l2 = params, clip, decay, lr_decay, l2
        self.sums, self.count = np.zeros((params.team.threads, 8)), 0
        self.states = {name: line_up(params.values.size, params.dtype) for name in self.state}

    def update(self, lr: float) -> float:
        """Update the parameters. Returns the gradient norm before clipping; if it is not finite, nothing changes."""
        p = self.params
        if self.l2:
            p.densify()
            p.team(descent.add, p.grads[: p.trained.size], p.trained, self.l2)
        where = (p.trained.size, NONE, NONE) if self.whole else (p.dense, *p.segments())
        p.team(descent.square_sums, self.sums, p.grads, *where)
        norm = math.sqrt(sum(self.sums[:, 0].tolist()))
        if not math.isfinite(norm):
            return norm
        self.apply(lr, lr * self.lr_decay, self.clip / norm if self.clip and norm > self.clip else 1.0, where)
        if self.decay:
            p.team(descent.add, p.trained, p.trained, -self.decay)
        p.constrain() if lr else p.changed()  # with lr = 0, weight decay may still have changed the values
        self.after()
        return norm

    def apply(self, lr: float, shrink: float, scale: float, where: Where) -> None:
        """Update the parameters with `scale` times the gradient, less `shrink` times themselves.

        where  (dense, starts, sizes) of descent.py
        """

    def after(self) -> None:
        """Act after an update."""

    def epoch(self, losses: list[float]) -> bool:
        """Prepare for the next epoch, given the losses of all epochs so far; returns whether averaging begins."""
        return False

    def restart(self) -> None:
        """Forget all updates so far, because training continues from other parameters."""
        self.count = 0
        for array in self.states.values():
            array[:] = 0

    def arrays(self) -> Arrays:
        """Return the arrays for a checkpoint: the trained parameters and, after the first update, the state."""
        arrays = {"values": self.params.values}
        if self.states:
            arrays["optimizer_count"] = np.array([self.count])
        if self.count:
            arrays |= {f"optimizer_{name}": array for name, array in self.states.items()}
        return arrays

    def check(self, arrays: Arrays) -> list[str]:
        """Return the names of a checkpoint's arrays that must be like Params.values. Raises ValueError."""
        if not self.states:
            return ["values"]
        count = arrays["optimizer_count"]
        if count.shape != (1,) or count.dtype != np.int64 or count[0] < 0:
            raise ValueError("optimizer_count is not a count")
        return ["values"] + [f"optimizer_{name}" for name in self.states] * bool(count[0])

    def restore(self, arrays: Arrays) -> None:
        """Restore the arrays that `arrays` returned."""
        self.params.set(arrays["values"])
        self.count = int(arrays["optimizer_count"][0]) if self.states else 0
        for name, array in self.states.items():
            array[:] = arrays[f"optimizer_{name}"] if self.count else 0

    @contextlib.contextmanager
    def averaged(self) -> Iterator[None]:
        """Context manager in which the parameters are those to score and save: their average, if there is one."""
        self.swap()
        try:
            yield
        finally:
            self.swap()

    def swap(self) -> None:
        """Exchange the parameters and their average, if there is one."""


class SGD(Optimizer):
    """Stochastic gradient descent."""

    def apply(self, lr: float, shrink: float, scale: float, where: Where) -> None:
        p = self.params
        p.team(descent.step, p.trained, p.grads, *where, lr * scale, shrink)


class ASGD(SGD):
    """SGD with Polyak averaging of the parameters after each update; the average is scored and saved.

    As in torch.optim.ASGD with t0 = 0 and lambd = 0, the average does not include the first update.
    """

    state = ("average",)
    begun, swapped = True, False

    def after(self) -> None:
        if self.begun:
            self.count += 1
            p = self.params
            p.team(descent.average, self.states["average"], p.values, 1 / max(1, self.count - 1))

    def swap(self) -> None:
        if self.count:
            p, average = self.params, self.states["average"]
            for part in (slice(start, start + PART) for start in range(0, average.size, PART)):
                p.values[part], average[part] = average[part], p.values[part].copy()
            p.changed()
            self.swapped = not self.swapped

    def arrays(self) -> Arrays:
        arrays = super().arrays()
        if self.swapped:
            arrays["values"], arrays["optimizer_average"] = arrays["optimizer_average"], arrays["values"]
        return arrays


class NTASGD(ASGD):
    """SGD that begins to average when validation no longer improves (Merity et al. 2018, algorithm 1).

    nonmono        averaging begins after an epoch whose loss exceeds the lowest loss more than this many epochs earlier
    average_after  number of epochs after which averaging begins in any case; 0: none
    """

    begun = False

    def __init__(self, *args: Any, nonmono: int = 5, average_after: int = 0, **options: Any) -> None:
        super().__init__(*args, **options)
        self.nonmono, self.average_after = nonmono, average_after

    def epoch(self, losses: list[float]) -> bool:
        n, before = self.nonmono, self.begun
        # As in the authors' code, the minimum excludes the n losses before the last.
        self.begun = any(loss > min(losses[: k - n]) for k, loss in enumerate(losses) if k > n)
        self.begun |= 0 < self.average_after <= len(losses)
        return self.begun != before


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015); with lr_weight_decay AdamW (Loshchilov and Hutter 2019)."""

    state = "first", "second"
    whole = True
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8

    def apply(self, lr: float, shrink: float, scale: float, where: Where) -> None:
        p, b1, b2 = self.params, self.beta1, self.beta2
        self.count += 1
        numbers = lr / (1 - b1**self.count), shrink, scale, b1, b2, 1 - b2**self.count, self.epsilon
        p.team(descent.adam, p.trained, p.grads, *self.states.values(), *numbers)


class Adadelta(Optimizer):
    """Adadelta (Zeiler 2012)."""

    state = "squares", "changes"
    whole = True
    rho, epsilon = 0.95, 1e-6

    def apply(self, lr: float, shrink: float, scale: float, where: Where) -> None:
        p = self.params
        self.count += 1
        p.team(descent.adadelta, p.trained, p.grads, *self.states.values(), lr, shrink, scale, self.rho, self.epsilon)


OPTIMIZERS = {"sgd": SGD, "asgd": ASGD, "nt-asgd": NTASGD, "adadelta": Adadelta, "adam": Adam}


def optimizer(params: Params, c: Any, clip: float) -> Optimizer:
    """Return the optimizer of a configuration `c` with the fields of network.config.Optimization."""
    options = dict(nonmono=c.nonmono, average_after=c.average_after) if c.optimizer == "nt-asgd" else {}
    return OPTIMIZERS[c.optimizer](params, clip, c.weight_decay, c.lr_weight_decay, c.l2, **options)
