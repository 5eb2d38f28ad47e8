"""Dropout: numbers that are left out at random, and the rest larger for it."""

import numpy as np

from tiedtools.kernels.elementwise import apply_mask, draw_mask, draw_word_mask
from tiedtools.network.buffers import Buffers


class Dropout:
    """y = x * mask, where mask is 0 with probability `drop` and otherwise 1 / (1 - drop).

    same  of "steps", "sequences": along these the mask is the same. Neither: standard dropout (Zaremba et al. 2014);
          steps: variational (Gal and Ghahramani 2016); both: as Assylbekov and Takhanov's code has Inan et al.'s
    """

    def __init__(self, team, drop, same=(), dtype=np.float32):
        self.team, self.drop, self.same = team, drop, same
        self.buffers = Buffers(dtype)

    def draw(self, seed, T, B, n):
        """A mask [T or 1, B or 1, n] for arrays [T, B, n]."""
        mask = self.buffers("mask", 1 if "steps" in self.same else T, 1 if "sequences" in self.same else B, n)
        self.team.over(mask.size, draw_mask, mask.ravel(), self.drop, np.uint64(seed))
        return mask

    def forward(self, x, seed=None):
        """`seed` None: nothing is dropped."""
        self.mask = None
        if seed is None or not self.drop:
            return x
        self.mask = self.draw(seed, *x.shape)
        y = self.buffers("y", *x.shape)
        self.team.over(y.size, apply_mask, y, x, self.mask)
        return y

    def backward(self, dy):
        """Works in place."""
        if self.mask is not None:
            self.team.over(dy.size, apply_mask, dy, dy, self.mask)
        return dy


class WordDropout(Dropout):
    """All occurrences of a word in a sequence, or in all sequences where they are the same, are dropped together.

    Gal and Ghahramani 2016, section 4.2, as their published code has it: inverted scaling as elsewhere.
    """

    def forward(self, x, ids, seed=None):  # type: ignore[override]
        """x [T, B, m] without the words of ids int32 [T, B] that are dropped; `seed` None: none is."""
        self.mask = None
        if seed is None or not self.drop:
            return x
        T, B = ids.shape
        self.mask = self.buffers("mask", T, B, dtype=x.dtype)[:, :B, None]
        self.team.over(
            self.mask.size, draw_word_mask, self.mask, ids, self.drop, np.uint64(seed), "sequences" in self.same
        )
        y = self.buffers("y", *x.shape)
        self.team.over(y.size, apply_mask, y, x, self.mask)
        return y
