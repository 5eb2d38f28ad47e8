"""Random vectors for tests of files."""

import numpy as np

from tiedtools.vectors.vectors import Vectors


def make(words, E=5, seed=0):
    return Vectors([*words], np.random.default_rng(seed).normal(0, 0.3, (len(words), E)).astype(np.float32))
