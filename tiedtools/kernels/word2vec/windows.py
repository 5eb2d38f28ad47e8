"""The words of a batch of w2vtiles.py: negatives, center words, and their context windows.

A run ends before a word becomes its center word more than REPEATS times, because the words of a table or a refrain must
not be pushed in one direction a hundred times.
"""

import numpy as np

from tiedtools.kernels.base.bfloat16 import pack_scores
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.scalar import GOLDEN, LOW32, below, mix
from tiedtools.kernels.base.tiles import ROWS
from tiedtools.kernels.word2vec.w2v import size_of

REPEATS = 4


@jit
def draw(words, noise, counter):
    """Draw words from an alias table; returns the new counter of the random number generator."""
    for k in range(words.size):
        counter += GOLDEN
        bits = mix(counter)
        word = np.int64(below(bits, np.uint64(noise.shape[0])))
        words[k] = word if (bits & LOW32) < noise[word, 0] else noise[word, 1]
    return counter


@jit
def windows(s, text, n, rules, sizes, counter):
    """Choose the center words of a batch and their context windows; returns (new random counter, whether any are left).

    Rows without context words have weights 0; rows beyond the text also have word 0. Only CBOW has sizes.
    """
    near, band, band_t, cursor = s.near, s.band, s.band_t, s.cursor
    tokens, begins, ends = text
    window, radii, negative, cbow, mean, _, skip_input, _, _ = rules
    strips = cursor.size
    run, span = near.shape[0] // strips, near.shape[1]
    each = s.far.shape[1]
    active = False
    s.near_cells[:] = 0
    for tile in range(band.shape[0]):
        band[tile, 0], band[tile, 1] = span, 0
    for tile in range(band_t.shape[0]):
        band_t[tile, 0], band_t[tile, 1] = run, 0
    for r in range(strips):
        start = cursor[r]
        stop = min(start + run, (r + 1) * n // strips)
        active |= start < stop
        for i in range(run):
            b, p = r * run + i, start + i
            word, count = 0, 0
            if p < stop:
                earlier = 0
                for q in range(start, p):
                    earlier += tokens[q] == tokens[p]
                if earlier == REPEATS:
                    stop = p
            if p < stop:
                word = tokens[p]
                counter += GOLDEN
                radius = window - np.int64(below(mix(counter), np.uint64(radii)))
                low, high = max(begins[p], p - radius), min(ends[p], p + radius + 1)
                for q in range(low, high):
                    if q != p and not (skip_input and tokens[q] == word):
                        near[b, q - start + window] = size_of(sizes, tokens[q])
                        count += size_of(sizes, tokens[q])
                if cbow and mean and count:
                    for q in range(low, high):
                        near[b, q - start + window] /= count
                if count:
                    begin, end = low - start + window, high - start + window
                    extend(band, b // ROWS, begin, end)
                    for j in range(begin // ROWS, (end - 1) // ROWS + 1):
                        extend(band_t, r * span // ROWS + j, i, i + 1)
            s.centers[b] = word
            s.counts[b] = count
            weight = count > 0 if cbow else count
            for k in range(each):
                s.far[b, k] = weight * negative / each
        cursor[r] = stop
        for j in range(span):
            p = start - window + j
            s.neighbors[r * span + j] = tokens[p] if 0 <= p < n else 0
    if s.pairs.u is not None:  # extend the bands by terms of 0 to whole pairs
        for limits in (band, band_t):
            for tile in range(limits.shape[0]):
                limits[tile, 0], limits[tile, 1] = limits[tile, 0] // 2 * 2, (limits[tile, 1] + 1) // 2 * 2
    return counter, active


@jit
def extend(band, tile, first, stop):
    """Let the nonzero terms of a tile include those from `first` up to `stop`."""
    band[tile, 0], band[tile, 1] = min(band[tile, 0], first), max(band[tile, 1], stop)


@jit
def level(s, window, sizes):
    """Divide the weights of words in means by their sizes, if any: each row of each word gets the same gradient."""
    if sizes is not None:
        run, span = s.near.shape[0] // s.cursor.size, s.near.shape[1]
        for b in range(s.near.shape[0]):
            for j in range(b % run, b % run + 2 * window + 1):
                s.near[b, j] /= sizes[s.neighbors[b // run * span + j]]
        pack_scores(s.pairs.near_cells, s.pairs.near_down, s.near, s.near_cells, run, span - run + ROWS, 1)


@jit
def exclude(s, run, negative, cbow, skip_input):
    """Reduce the weight of negatives that equal targets; with `skip_input`, set it to 0 if they equal inputs."""
    near, far, negatives, neighbors = s.near, s.far, s.negatives, s.neighbors
    strips = near.shape[0] // run
    span, each = near.shape[1], far.shape[1]
    for r in range(strips):
        for k in range(each):
            word = negatives[r * each + k]
            hits = 0
            for j in range(span):
                hits += neighbors[r * span + j] == word
            if hits:
                for b in range(r * run, (r + 1) * run):
                    if (cbow or skip_input) and s.centers[b] == word:
                        far[b, k] = 0
                    elif not cbow or skip_input:
                        same = 0
                        for j in range(s.band[b // ROWS, 0], s.band[b // ROWS, 1]):
                            same += near[b, j] != 0 and neighbors[r * span + j] == word
                        if same:
                            far[b, k] = 0 if cbow else (s.counts[b] - same) * negative / each
