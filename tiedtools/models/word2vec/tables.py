"""Per-word tables for word2vec's kernels: subsampling thresholds, noise distribution, and Huffman tree."""

import numpy as np

from tiedtools.kernels.word2vec import huffman, sampling
from tiedtools.models.word2vec.config import Config


def subsampling_thresholds(counts: np.ndarray, sample: float) -> np.ndarray:
    """Return the probability of keeping each word in subsampling, times 2**32 - 1; uint32 [V].

    As in word2vec.c, sqrt(t/f) + t/f for a word of frequency f and t = sample; Mikolov et al. 2013 have sqrt(t/f).
    """
    if not sample:
        return np.full(counts.size, 0xFFFFFFFF, np.uint32)
    ratio = sample * counts.sum() / np.maximum(counts, 1)
    return (np.minimum(np.sqrt(ratio) + ratio, 1) * 0xFFFFFFFF).astype(np.uint32)


def memory(V: int, config: Config) -> int:
    """Return the bytes of these tables for V words, assuming Huffman paths of about 22 nodes.

    The 40 bytes are scratch space for building the noise table; untied models free it before they touch emb_out.
    """
    return V * (12 + 40 * (config.tying != "untied") + 120 * config.hs)


def noise_probabilities(counts: np.ndarray, exponent: float) -> np.ndarray:
    """Return P(k) ~ counts[k]**exponent, float64 [V]; 0 for words of count 0.

    As in word2vec.c, `</s>` is never drawn; its probability is spread over all other words that occur.
    """
    p = np.power(counts, float(exponent), out=np.zeros(counts.size), where=counts > 0)
    p /= p.sum()
    p[1:] += p[0] * (counts[1:] > 0) / max(np.count_nonzero(counts[1:]), 1)
    p[0] = 0
    return p


def noise_table(counts: np.ndarray, exponent: float) -> np.ndarray:
    """Return the noise distribution as an alias table, uint32 [V, 2]."""
    table = np.empty((counts.size, 2), np.uint32)
    scratch = np.empty((2, counts.size), np.int64)
    sampling.alias(table, noise_probabilities(counts, exponent) * counts.size, *scratch)
    return table


def huffman_tree(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (nodes, codes, starts) of huffman.paths for the words of a vocabulary.

    Counts of 0 are replaced by 1: words of count 0 would form a chain, with a path as long as the chain.
    """
    parent = np.empty(2 * counts.size - 1, np.int32)
    bit = np.empty(2 * counts.size - 1, np.uint8)
    order = np.append(0, 1 + np.argsort(-counts[1:], kind="stable"))  # resampled and added words may be out of order
    huffman.tree(parent, bit, np.append(np.maximum(counts[order], 1), np.zeros(counts.size - 1, np.int64)))
    parent[order], bit[order] = parent[: counts.size].copy(), bit[: counts.size].copy()
    starts = np.zeros(counts.size + 1, np.int64)
    nodes, codes = np.empty(0, np.int32), np.empty(0, np.uint8)
    huffman.paths(nodes, codes, starts, parent, bit)
    nodes, codes = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.uint8)
    huffman.paths(nodes, codes, starts, parent, bit)
    return nodes, codes, starts
