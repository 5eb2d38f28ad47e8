"""Dropout layers and masks, with inverted scaling, and layers that add activation regularization to the gradient."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any

import numpy as np

from tiedtools.kernels.base.elementwise import add_changes, apply_mask, draw_mask, draw_word_mask
from tiedtools.kernels.output.descent import add
from tiedtools.network.network import Step
from tiedtools.network.params import Buffers, Params


class Dropout:
    """Dropout layer: y = x * mask, where mask is 0 with probability `rate` and otherwise 1 / (1 - rate).

    site  where dropout is applied, the key for Step.seed
    same  any of "steps", "sequences": axes along which the mask is constant. Neither: standard dropout (Zaremba et al.
          2014); steps: variational (Gal and Ghahramani 2016); both: Inan et al. in Assylbekov and Takhanov's code
    """

    mask: Any = None  # of the last forward pass; None: no dropout

    def __init__(self, params: Params, site: Hashable, rate: float, same: Collection[str] = ()) -> None:
        self.team, self.site, self.rate, self.same = params.team, site, rate, same
        self.buffers = Buffers(params.dtype)

    def draw(self, step: Step, T: int, B: int, n: int) -> np.ndarray:
        """Draw a mask [T or 1, B or 1, n] for arrays [T, B, n]."""
        mask = self.buffers("mask", 1 if "steps" in self.same else T, 1 if "sequences" in self.same else B, n)
        self.team.over(mask.size, draw_mask, mask.ravel(), self.rate, np.uint64(step.seed(self.site)))
        return mask

    def drops(self, step: Step) -> bool:
        """Whether dropout is applied in this step."""
        return step.seed is not None and self.rate > 0

    def forward(self, x: np.ndarray, step: Step) -> np.ndarray:
        self.mask = None
        if not self.drops(step):
            return x
        self.mask, y = self.draw(step, *x.shape), self.buffers("y", *x.shape)
        self.team.over(y.size, apply_mask, y, x, self.mask)
        return y

    def backward(self, dy: np.ndarray) -> np.ndarray:
        """Apply the mask of `forward` to dy, in place."""
        if self.mask is not None:
            self.team.over(dy.size, apply_mask, dy, dy, self.mask)
        return dy


class WordDropout(Dropout):
    """Word dropout: drop all occurrences of a word type in a sequence, or in all sequences, together.

    Gal and Ghahramani 2016, section 4.2, following their published code: inverted scaling, as in other dropout, and no
    dropping of words in Monte Carlo testing.
    """

    def draw(self, step: Step, T: int, B: int, n: int) -> np.ndarray:
        mask = self.buffers("mask", T, B)[:, :B, None]
        words = step.ids, self.rate, np.uint64(step.seed(self.site)), "sequences" in self.same
        self.team.over(mask.size, draw_word_mask, mask, *words)
        return mask

    def drops(self, step: Step) -> bool:
        return step.seed is not None and step.training


class Masks:
    """Masks, constant over a window, for the inputs [B, n] of a cell's gates: one for all gates, or one per gate.

    sites  the site of each mask        same  may include "sequences": see Dropout
    """

    def __init__(self, params: Params, sites: Iterable[Hashable], n: int, rate: float, same: Collection[str]) -> None:
        self.drops, self.n, self.dtype = [Dropout(params, site, rate, same) for site in sites], n, params.dtype

    def draw(self, step: Step, B: int) -> np.ndarray:
        """Draw masks [K, B, n]."""
        masks = np.empty((len(self.drops), B, self.n), self.dtype)
        for mask, drop in zip(masks, self.drops):
            mask[:] = drop.draw(step, 1, B, self.n)[0, :, : self.n]
        return masks


class WeightDrop:
    """Dropout of the elements of a weight matrix, with one mask per window (weight drop, Merity et al. 2018)."""

    mask: Any = None  # as in Dropout

    def __init__(self, params: Params, site: Hashable, rate: float) -> None:
        self.params, self.team, self.site, self.rate = params, params.team, site, rate
        self.buffers = Buffers(params.dtype)

    def forward(self, name: str, step: Step) -> np.ndarray:
        """Return the parameter `name` [m, n], with padded rows, with dropped elements; unchanged without dropout."""
        W, (m, n), self.mask = self.params.padded(name), self.params[name].shape, None
        if step.seed is None:
            return W
        mask, y = self.buffers("mask", m * n), self.buffers("y", m, n)
        self.team.over(mask.size, draw_mask, mask, self.rate, np.uint64(step.seed(self.site)))
        self.mask = mask.reshape(m, 1, n)
        self.team.over(mask.size, apply_mask, y[:, None], W[:, None], self.mask)
        return y

    def backward(self, dW: np.ndarray) -> None:
        """Apply the mask of `forward` to the gradient dW of the matrix, in place."""
        if self.mask is not None:
            self.team.over(self.mask.size, apply_mask, dW[:, None], dW[:, None], self.mask)


class Activity:
    """Identity layer that adds weight * mean(x^2) to the objective (AR, Merity et al. 2018), for x [T, B, n].

    The term is on the scale of the mean nats, for which Step.scale is 1 / (T B). With the sum over time, both the nats
    and the term are T times as large. Reported nats do not include it.
    """

    def __init__(self, params: Params, n: int, weight: float) -> None:
        self.team, self.n, self.weight = params.team, n, weight

    def forward(self, x: np.ndarray, step: Step) -> np.ndarray:
        self.x, self.scale = x, step.scale
        return x

    def backward(self, dy: np.ndarray) -> np.ndarray:
        """Add the gradient to dy, in place."""
        self.team(add, dy.reshape(-1), self.x.reshape(-1), 2 * self.weight * self.scale / self.n)
        return dy


class TemporalActivity(Activity):
    """Identity layer that adds weight * mean((x_{t+1} - x_t)^2) to the objective (TAR); 0 if T = 1."""

    def backward(self, dy: np.ndarray) -> np.ndarray:
        T = len(dy)
        if T > 1:
            factor = 2 * self.weight * self.scale / self.n * T / (T - 1)
            self.team(add_changes, dy.reshape(T, -1), self.x.reshape(T, -1), factor)
        return dy
