"""Hardware limits on the training speed of a class-based RNN language model."""

import dataclasses

import numpy as np

from tiedtools.benchmark.machine import SIZE, Peaks, touched
from tiedtools.kernels import probe
from tiedtools.models.rnnlm.config import expected_class_size, word_classes

WORDS = 4096  # words of the text whose classes' rows are moved in the measurement


def needs(config, expected):
    """(floating point operations, bytes) to learn to predict a word, E[O] = `expected` words being scored in its class.

    In pairs of a multiplication and an addition,

        the state, from the one before                  M^2
        scores, errors of [h | d], steps of weights     3 (M + D) (C + E[O])
        back through time, a block of N words, s steps: the errors of each but the last, and its part of W_h's step
                                                        M^2 (2 s - 1) / N;  sentences: 2 M^2

    and in rows that were not there for the word before, each read once and written once at 4 bytes a number: those of
    the class's words, and the embedding. What all words need, W_h, W_c and W_dc, stays in the cache.
    """
    M, C, D, s = config.hidden, config.classes, config.doc_dim, config.block + config.reach
    back = 2 if config.sentences else (2 * s - 1) / config.block
    pairs = M * M + 3 * (M + D) * (C + expected) + back * M * M
    return 2 * pairs, 2 * 4 * ((M + D) * expected + M)


class Machine(Peaks):
    """Peak rates of this machine for models of a text, by M + D, the row length of word_out."""

    def __init__(self, text, classes, widths):
        """Prepare the measurement. text: an LmText; widths: values of M + D."""
        counts = text.vocab.counts
        bounds = word_classes(counts, classes)
        self.expected, self.classes = expected_class_size(counts, bounds), len(bounds) - 1
        own = np.searchsorted(bounds, text.train[:WORDS], "right") - 1
        words = np.concatenate([np.arange(bounds[k], bounds[k + 1], dtype=np.int32) for k in own])
        words = np.resize(words, -(-words.size // probe.TOGETHER) * probe.TOGETHER)
        super().__init__(SIZE, {width: (touched(len(counts), width), words) for width in widths})

    def limit_of(self, config, threads):
        """Return (maximum words per second, bottleneck "flops" or "bytes", operations per word, bytes per word)."""
        flops, moved = needs(dataclasses.replace(config, classes=self.classes), self.expected)
        return *self.limit(flops, moved, threads, config.hidden + config.doc_dim), flops, moved
