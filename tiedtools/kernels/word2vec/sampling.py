"""Sampling from a vocabulary by Walker's alias method, and subsampling of frequent words."""

import numpy as np

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import GOLDEN, LOW32, mix

LONGEST_SENTENCE = 1000  # tokens after subsampling, as in word2vec.c


@jit
def alias(table, share, small, large):
    """Build the alias table of a distribution (Walker's method).

    To sample, draw k uniformly from 0 .. V - 1; return k with probability threshold[k] / 2**32, otherwise alias[k].

    table         uint32 [V, 2]: threshold, alias
    share         float64 [V]: probabilities times V; overwritten
    small, large  int64 [V]: scratch
    """
    n_small = n_large = 0
    for k in range(share.size):
        table[k, 0] = 0xFFFFFFFF
        table[k, 1] = k
        if share[k] < 1:
            small[n_small] = k
            n_small += 1
        else:
            large[n_large] = k
            n_large += 1
    while n_small and n_large:
        n_small -= 1
        poor, rich = small[n_small], large[n_large - 1]
        table[poor, 0] = np.int64(share[poor] * 4294967296.0)
        table[poor, 1] = rich
        share[rich] -= 1 - share[poor]
        if share[rich] < 1:
            n_large -= 1
            small[n_small] = rich
            n_small += 1


@jit
def subsample(tokens, begins, ends, ids, thresholds, seed):
    """Subsample a piece of text: word k stays with probability thresholds[k] / (2**32 - 1).

    tokens        int32 [ids.size + 1], out: the words that stay, without line ends; the last element is scratch
    begins, ends  int32 [ids.size], out: tokens[begins[i] : ends[i]] is the sentence of token i, at most
                  LONGEST_SENTENCE tokens
    ids           int32 [tokens], 0 ends a sentence        thresholds  uint32 [V]        seed  uint64

    Returns the number of tokens. One-word sentences have no context words and are dropped.
    """
    n = start = 0
    counter = seed
    for i in range(ids.size + 1):
        word = ids[i] if i < ids.size else 0
        counter += GOLDEN
        tokens[n] = word
        # Branch-free: a branch would often be mispredicted.
        n += word != 0 and (mix(counter) & LOW32) <= thresholds[word]
        if word == 0 or n - start == LONGEST_SENTENCE:
            if n - start == 1:
                n = start
            for k in range(start, n):
                begins[k] = start
                ends[k] = n
            start = n
    return n
