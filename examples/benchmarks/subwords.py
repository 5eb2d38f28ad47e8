"""Synthetic subwords of language models, and the floating-point operations that compose word vectors from them."""

from typing import Any, NamedTuple

import numpy as np

from benchmarks import zipf
from tiedtools.models.lm.config import LstmConfig


class Kind(NamedTuple):
    """Subwords of Penn Treebank's 10,000 words, and the sizes of Assylbekov and Takhanov's small models.

    types          number of distinct subwords
    mean, longest  mean and maximum number of subwords in a word
    """

    types: int
    mean: float
    longest: int
    sizes: dict


KINDS = {
    "morphs": Kind(3_400, 2.04, 7, dict(size=200, hidden=200)),
    "syllables": Kind(5_900, 2.11, 7, dict(size=200, hidden=200)),
    "chars": Kind(51, 9.2, 21, dict(size=200, hidden=200)),
}


class Synthetic:
    """Stand-in for text.subwords.Subwords: random subwords with Zipfian frequencies, for a vocabulary of V words."""

    def __init__(self, kind, V):
        types, mean, longest, _ = KINDS[kind]
        rng = np.random.default_rng(1)
        sizes = np.minimum(1 + rng.poisson(mean - 1, V), longest)
        rows = 1 + zipf.draw(rng, V * longest, zipf.shares(types)).reshape(V, longest)
        self.rows = np.where(np.arange(longest) < sizes[:, None], rows, 0).astype(np.int32)
        self.units = [""] * (types + 1)

    def table(self, words):
        return self.rows


def flops(task):
    """Return {part of a step: floating-point operations per token of a window}, as lm.Task.flops."""
    c: Any = LstmConfig(subwords=task.subwords, **KINDS[task.subwords].sizes)
    types, _, longest, _ = KINDS[c.subwords]
    weights = 0
    if c.subwords == "syllables":
        rows = Synthetic(c.subwords, task.vocabulary).rows
        pairs = np.unique((rows + (types + 1) * np.arange(longest))[rows > 0]).size
        weights = pairs * c.subword_dim * c.width
    elif c.subwords == "chars":
        weights = types * c.subword_dim * sum(width * f for width, f in enumerate(c.widths, 1))
    highways = c.highways * task.vocabulary * c.width * 2 * c.width
    tokens = task.steps * task.batch
    return {"subwords": 6 * weights / tokens, "highways": 6 * highways / tokens}
