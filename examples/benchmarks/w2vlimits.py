"""Hardware limits on the training speed of word2vec."""

import numpy as np

from benchmarks import probe
from benchmarks.machine import Peaks, touched
from tiedtools.kernels.base.features import FAST_DOTS
from tiedtools.kernels.word2vec import sampling
from tiedtools.kernels.word2vec.w2vtiles import PROJ_EVERY
from tiedtools.models.word2vec.tables import subsampling_thresholds
from tiedtools.models.word2vec.workspaces import layout


def needs(config, context, half=2):
    """Return (floating-point operations, bytes) per center kept by subsampling; `context`: its mean context in words.

    half  number of operations in bfloat16 that take as long as one in float32

    m is the size, K the number of negatives, c the context, and r = each / run the negatives per center of a run, in
    the terms of models.word2vec.workspaces.layout. Operations, in multiply-adds:

        a score, its terms in du and do           3 m for each output row scored with a center:
            tiles: each + c (skip-gram), each + 1 (CBOW); --exact: (1 + K) c (skip-gram), 1 + K (CBOW)
        CBOW's mean and its gradient              2 m c
        learned L: u, dh, gradient of L           (2 + 1 / PROJ_EVERY) m^2; --exact: 3 m^2
        bfloat16                                  divided by `half`, on CPUs with matrix units only those with L

    Bytes: rows not used by the previous center, each read and written once at 4 m bytes:

        the word itself, in each matrix           2; 1 if tied
        negatives                                 tiles: r; --exact: K c (skip-gram), K (CBOW)
        --exact with L, whose batches hold distant centers: the whole window, c + 1, instead of 2 or 1

    Work at the edges of a band, for padding, or done twice does not count.
    """
    m, K, linear = config.size, config.negative, config.tying == "linear"
    targets = 1 if config.cbow else context
    rows = 1 if config.tying != "untied" else 2
    if config.exact:
        scores, negatives, of_L = (1 + K) * targets, K * targets, 3
        rows = context + 1 if linear else rows
    else:
        _, run, each = layout(config)
        scores, negatives, of_L = each + targets, each / run, 2 + 1 / PROJ_EVERY[config.cbow]
    pairs, with_L = 3 * m * scores + (2 * m * context if config.cbow else 0), of_L * m * m if linear else 0
    if config.precision == "bfloat16":
        pairs, with_L = pairs / (half if FAST_DOTS or not linear else 1), with_L / half
    return 2 * (pairs + with_L), 2 * 4 * m * (rows + negatives)


def kept_fraction(vocab, sample):
    """Return the fraction of a text's words, without line ends, that subsampling keeps."""
    counts = vocab.counts[1:]
    return float(counts @ (subsampling_thresholds(vocab.counts, sample)[1:] / 0xFFFFFFFF) / counts.sum())


def mean_context(text, config):
    """Return the mean context size, over all radii, of a word kept in the first million tokens of an EncodedText."""
    ids = text.read(0, np.empty(10**6, np.int32))
    tokens, begins, ends = (np.empty(ids.size + 1, np.int32) for _ in range(3))
    n = sampling.subsample(
        tokens, begins, ends, ids, subsampling_thresholds(text.vocab.counts, config.sample), np.uint64(1)
    )
    before, after = np.arange(n) - begins[:n], ends[:n] - 1 - np.arange(n)
    sizes = [np.minimum(side, r).mean() for r in range(1, config.window + 1) for side in (before, after)] if n else [0]
    return float(sum(sizes)) / config.window


class Machine(Peaks):
    """Peak rates of this machine by the number of embedding matrices, 1 or 2, of a model of `vocab`."""

    def __init__(self, vocab, config, matrices):
        V = len(vocab)
        matrix = touched(V * max(matrices), config.size)
        rng = np.random.default_rng(1)
        # Draw words by frequency, as in training: frequent rows stay in the cache, and uniform draws would give too low
        # a limit.
        share = np.cumsum(vocab.counts[1:] * subsampling_thresholds(vocab.counts, config.sample)[1:].astype(float))
        n = 4096 * probe.GROUP
        words = (1 + np.searchsorted(share / share[-1], rng.random(n))).clip(max=V - 1).astype(np.int32)
        in_both = words + rng.integers(0, 2, n, np.int32) * np.int32(V)
        rows = {1: (matrix, words), 2: (matrix, in_both)}
        super().__init__(matrix.shape[1], {count: rows[count] for count in matrices})
