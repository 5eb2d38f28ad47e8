"""Hardware limits on the training speed of a class-based RNN language model."""

import dataclasses

import numpy as np

from benchmarks import probe
from benchmarks.machine import SIZE, Peaks, touched
from tiedtools.models.rnnlm.model import word_classes

WORDS = 4096  # the measurement moves the rows of the classes of the first WORDS words of the text


def needs(config, expected):
    """Return (floating-point operations, bytes) needed to train on a word, with E[O] = `expected` words in its class.

    Operations, in multiply-adds:

        state, from the previous one                    M^2
        scores, errors of [h | d], weight updates       3 (M + D) (C + E[O])
        backpropagation through time, a block of N words and s steps: errors of each step but the last, and its
        contribution to the update of W_h               M^2 (2 s - 1) / N;  sentences: 2 M^2

    Bytes: rows not used by the previous word, each read and written once at 4 bytes per number: the output rows of the
    words of the class, and the embedding. W_h, W_c, and W_dc, which all words use, stay in the cache.
    """
    M, C, D, s = config.hidden, config.classes, config.doc_dim, config.block + config.reach
    back = 2 if config.sentences else (2 * s - 1) / config.block
    pairs = M * M + 3 * (M + D) * (C + expected) + back * M * M
    return 2 * pairs, 2 * 4 * ((M + D) * expected + M)


def expected_class_size(counts, bounds):
    """Return E[O], the mean number of words scored within a class in a text with these counts."""
    mass = np.add.reduceat(counts, bounds[:-1])
    return float(mass @ np.diff(bounds) / mass.sum())


class Machine(Peaks):
    """Peak rates of this machine for models of a text, by M + D, the row length of word_out."""

    def __init__(self, text, classes, widths):
        """Prepare the measurement. text: an LmText; widths: values of M + D."""
        counts = text.vocab.counts
        bounds = word_classes(counts, classes)
        self.expected, self.classes = expected_class_size(counts, bounds), len(bounds) - 1
        class_of = np.searchsorted(bounds, text.train[:WORDS], "right") - 1
        words = np.concatenate([np.arange(bounds[k], bounds[k + 1], dtype=np.int32) for k in class_of])
        words = np.resize(words, -(-words.size // probe.GROUP) * probe.GROUP)
        super().__init__(SIZE, {width: (touched(len(counts), width), words) for width in widths})

    def limit_of(self, config, threads):
        """Return (maximum words per second, bottleneck "flops" or "bytes", operations per word, bytes per word)."""
        flops, moved = needs(dataclasses.replace(config, classes=self.classes), self.expected)
        return *self.limit(flops, moved, threads, config.hidden + config.doc_dim), flops, moved
