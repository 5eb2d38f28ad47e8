"""How fast training could be: what a centre word needs, and what the machine has of it."""

import numpy as np

from tiedtools.benchmark.machine import Peaks, touched
from tiedtools.kernels import probe, sampling
from tiedtools.kernels.w2vtiles import PROJ_EVERY
from tiedtools.models.word2vec.tables import subsampling_thresholds
from tiedtools.models.word2vec.workspaces import layout


def needs(config, context):
    """(floating point operations, bytes) that one kept centre needs, `context` being its words of context on average.

    With m the size, K the negatives, c the context and r = each / run negatives of a run's own to a centre of it, in
    models.word2vec.workspaces.layout's terms, in pairs of a multiplication and an addition:

        a score, its part of du and of do         3 m for each output row that a centre meets:
            tiles: each + c (skip-gram), each + 1 (CBOW); --exact: (1 + K) c (skip-gram), 1 + K (CBOW)
        CBOW's mean and its gradient              2 m c
        L: u, dh and its own gradient             (2 + 1 / PROJ_EVERY) m^2, in bfloat16 half of that; --exact: 3 m^2

    and in rows that were not there for the centre before, each read once and written once at 4 m bytes:

        the word itself, in each matrix           2; where tied 1
        negatives                                 tiles: r; --exact: K c (skip-gram), K (CBOW)
        --exact with L, where the centres of a batch lie apart: the whole window anew, c + 1, in place of the 2 or 1

    Computed at the edges of a band, for padding or twice is not needed and not in it.
    """
    m, K, linear = config.size, config.negative, config.tying == "linear"
    targets = 1 if config.cbow else context
    rows = 1 if config.tying != "untied" else 2
    if config.exact:
        met, negatives, of_L = (1 + K) * targets, K * targets, 3
        rows = context + 1 if linear else rows
    else:
        _, run, each = layout(config)
        met, negatives, of_L = each + targets, each / run, 2 + 1 / PROJ_EVERY[config.cbow]
        of_L /= 2 if config.precision == "bfloat16" else 1  # two in one instruction
    pairs = 3 * m * met + (2 * m * context if config.cbow else 0) + (of_L * m * m if linear else 0)
    return 2 * pairs, 2 * 4 * m * (rows + negatives)


def kept_fraction(vocab, sample):
    """Share of a text's words, without line ends, that subsampling leaves."""
    counts = vocab.counts[1:]
    return float(counts @ (subsampling_thresholds(vocab.counts, sample)[1:] / 0xFFFFFFFF) / counts.sum())


def mean_context(text, config):
    """Words of context of a kept word on average over radii, in the first million of an EncodedText."""
    ids = text.read(0, np.empty(10**6, np.int32))
    tokens, begins, ends = (np.empty(ids.size + 1, np.int32) for _ in range(3))
    n = sampling.subsample(
        tokens, begins, ends, ids, subsampling_thresholds(text.vocab.counts, config.sample), np.uint64(1)
    )
    before, after = np.arange(n) - begins[:n], ends[:n] - 1 - np.arange(n)
    sizes = [np.minimum(side, r).mean() for r in range(1, config.window + 1) for side in (before, after)] if n else [0]
    return float(sum(sizes)) / config.window


class Machine(Peaks):
    """Peaks of this machine, by the number of `matrices` that a model over `vocab` has, 1 or 2."""

    def __init__(self, vocab, config, matrices):
        V = len(vocab)
        matrix = touched(V * max(matrices), config.size)
        rng = np.random.default_rng(1)
        # Frequent words stay in the cache, here as in training: drawn evenly, the limit could be surpassed.
        share = np.cumsum(vocab.counts[1:] * subsampling_thresholds(vocab.counts, config.sample)[1:].astype(float))
        n = 4096 * probe.TOGETHER
        words = (1 + np.searchsorted(share / share[-1], rng.random(n))).clip(max=V - 1).astype(np.int32)
        of_both = words + rng.integers(0, 2, n, np.int32) * np.int32(V)
        rows = {1: (matrix, words), 2: (matrix, of_both)}
        super().__init__(matrix.shape[1], {count: rows[count] for count in matrices})
