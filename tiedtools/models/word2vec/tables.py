"""What word2vec's kernels look up for each word of a vocabulary."""

import numpy as np

from tiedtools.kernels import huffman, sampling


def subsampling_thresholds(counts, sample):
    """Probability of keeping each word in subsampling, times 2**32 - 1; uint32 [V].

    word2vec.c's sqrt(t/f) + t/f for a word of frequency f and t = sample, where Mikolov et al. 2013 print sqrt(t/f).
    """
    if not sample:
        return np.full(counts.size, 0xFFFFFFFF, np.uint32)
    ratio = sample * counts.sum() / np.maximum(counts, 1)
    return (np.minimum(np.sqrt(ratio) + ratio, 1) * 0xFFFFFFFF).astype(np.uint32)


def memory(V, config):
    """Bytes of these tables for V words, paths of some 22 nodes among them.

    The 40 are what it takes to make the noise table, which with output vectors of their own are not there yet.
    """
    return V * (12 + 40 * (config.tying != "untied") + 120 * config.hs)


def noise_probabilities(counts):
    """P(k) ~ counts[k]**.75, float64 [V]; `</s>` is never drawn, its share falls to all others, as in word2vec.c."""
    p = counts.astype(np.float64) ** 0.75
    p /= p.sum()
    p[1:] += p[0] / (p.size - 1)
    p[0] = 0
    return p


def noise_table(counts):
    """The noise distribution as an alias table, uint32 [V, 2]."""
    table = np.empty((counts.size, 2), np.uint32)
    scratch = np.empty((2, counts.size), np.int64)
    sampling.alias(table, noise_probabilities(counts) * counts.size, *scratch)
    return table


def huffman_tree(counts):
    """(nodes, codes, starts) of huffman.paths for the words of a vocabulary.

    Counts of 0 are taken for 1: of words without any, each would be on the path to all that come before it.
    """
    parent = np.empty(2 * counts.size - 1, np.int32)
    bit = np.empty(2 * counts.size - 1, np.uint8)
    huffman.tree(parent, bit, np.append(np.maximum(counts, 1), np.zeros(counts.size - 1, np.int64)))
    starts = np.zeros(counts.size + 1, np.int64)
    nodes, codes = np.empty(0, np.int32), np.empty(0, np.uint8)
    huffman.paths(nodes, codes, starts, parent, bit)
    nodes, codes = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint8)
    huffman.paths(nodes, codes, starts, parent, bit)
    return nodes, codes, starts
