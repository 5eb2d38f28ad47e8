"""word2vec's training step: CBOW and skip-gram, negative sampling and hierarchical softmax, untied, tied, tied+L.

One form covers them all. A centre word c with context words C within a random radius gives

    inputs   CBOW: C          skip-gram: c
    targets  CBOW: c          skip-gram: each word of C
    h = mean of the inputs' rows of emb_in;  u = h L (tied+L) or h;  score of output row j: s_j = u . o_j

with o_j a row of emb_out, which is emb_in itself in the tied models. Minimised is
-log sigma(s_target) - sum over K negatives of log sigma(-s_negative), and its like along a Huffman path
(Mikolov et al. 2013; L: Gulordava et al. 2018, equation 5). With g_j = label_j - sigma(s_j), ascent directions are

    do_j = g_j u     du = sum_j g_j o_j     dh = du L^T     dL = h^T du

Deviation from word2vec.c: its skip-gram takes the context word as the input and the centre as the target. Over a
text both see the same pairs; centre-as-input, the papers' own text, needs L once per position instead of once
per pair.
"""

import math

import numpy as np

from tiedtools.kernels.jit import jit
from tiedtools.kernels.scalar import GOLDEN, LOW32, below, exp32, mix

SATURATED = 6.0  # word2vec.c's MAX_EXP
DIVERGED = 1e4  # no useful score is near
RUN, STOP, NAN = 0, 1, 2  # stop[0]: go on; asked to stop; a score was not a number, or beyond DIVERGED
LONGEST_PATH = 64


@jit(relaxed=True)
def train(
    emb_in, emb_out, proj, totals, stop,
    hidden, mapped, grad, back, grad_proj, spans, rows,
    tokens, noise, paths, codes, path_starts,
    n, first_node, window, negative, cbow, divide, skip_input, lr, lr_proj, seed,
):  # fmt: skip
    """Train on one thinned piece of text, by batches of hidden.shape[0] centres between which L is applied.

    emb_in     [V, m], emb_out [rows, m]: rows 0..V-1 for words, inner Huffman nodes from row `first_node`
    proj       [m, m] L of tied+L, or [0, 0]
    totals     float64 [2]: the loss in nats and the number of predictions (target words) are added
    stop       uint8 [1]: polled between batches; set to NAN where the run has diverged, before that is written
    hidden     [batch, m] h; mapped u, grad du, back dh likewise: without L the same two arrays again
    grad_proj  [m, m]; spans int64 [batch, 3]; rows int32 [LONGEST_PATH + 1 + negative]: scratch
    tokens     int32, n of them, as sampling.thin makes them
    noise      uint32 [V, 2]: alias table of the noise distribution
    paths, codes, path_starts: Huffman tree (see huffman.py), or path_starts of size 0
    divide     CBOW: divide du by the number of context words (the true gradient) or not (word2vec.c)
    skip_input never draw an input word as a negative
    lr         step for rows;  lr_proj: for L, per summed gradient of a batch
    """
    size = emb_in.shape[1]
    linear = proj.size > 0
    tree = path_starts.size > 0
    radius_range = np.uint64(window)
    words = np.uint64(noise.shape[0])
    counter = seed
    nats, predictions, chance = 0.0, 0, 1.0
    centre = 1
    while centre <= n and stop[0] == RUN:
        filled = 0
        while centre <= n and filled < hidden.shape[0]:
            if tokens[centre] != 0:
                counter += GOLDEN
                radius = window - np.int64(below(mix(counter), radius_range))
                first = last = centre
                while centre - first < radius and tokens[first - 1] != 0:
                    first -= 1
                while last - centre < radius and tokens[last + 1] != 0:
                    last += 1
                if first < last:
                    spans[filled, 0] = centre
                    spans[filled, 1] = first
                    spans[filled, 2] = last
                    filled += 1
            centre += 1

        for b in range(filled):
            at, first, last = spans[b, 0], spans[b, 1], spans[b, 2]
            for d in range(size):
                grad[b, d] = 0
            if cbow:
                for d in range(size):
                    hidden[b, d] = 0
                for q in range(first, last + 1):
                    if q != at:
                        for d in range(size):
                            hidden[b, d] += emb_in[tokens[q], d]
                mean = hidden.dtype.type(1 / (last - first))
                for d in range(size):
                    hidden[b, d] *= mean
            else:
                for d in range(size):
                    hidden[b, d] = emb_in[tokens[at], d]
        if linear:
            np.dot(hidden[:filled], proj, mapped[:filled])

        for b in range(filled):
            at, first, last = spans[b, 0], spans[b, 1], spans[b, 2]
            for q in range(first, last + 1):
                if (q == at) != cbow:
                    continue
                target = tokens[q]
                count = 0
                if tree:
                    for k in range(path_starts[target], path_starts[target + 1]):
                        rows[count] = first_node + paths[k]
                        count += 1
                inner = count
                if negative > 0:
                    rows[count] = target
                    count += 1
                    for _ in range(negative):
                        counter += GOLDEN
                        bits = mix(counter)
                        word = np.int64(below(bits, words))
                        if (bits & LOW32) >= noise[word, 0]:
                            word = np.int64(noise[word, 1])
                        usable = word != target
                        if skip_input:
                            for k in range(first, last + 1):
                                if (k == at) != cbow and tokens[k] == word:
                                    usable = False
                        if usable:
                            rows[count] = word
                            count += 1

                for j in range(count):
                    row = rows[j]
                    score = hidden.dtype.type(0)
                    for d in range(size):
                        score += mapped[b, d] * emb_out[row, d]
                    if not abs(score) < DIVERGED:
                        stop[0] = NAN
                        return
                    label = j == inner if j >= inner else codes[path_starts[target] + j] == 0
                    away = exp32(-min(abs(score), 30.0))
                    likely = 1 / (1 + away)
                    right = (score > 0) == label
                    chance *= likely if right else away * likely
                    error = away * likely if right else likely
                    if abs(score) >= SATURATED:
                        if right or j < inner:
                            continue
                        error = hidden.dtype.type(1)
                    g = hidden.dtype.type(lr * (error if label else -error))
                    for d in range(size):
                        o = emb_out[row, d]
                        grad[b, d] += g * o
                        emb_out[row, d] = o + g * mapped[b, d]
                predictions += 1
                # A product of probabilities needs one logarithm in hundreds of factors.
                if chance < 1e-100:
                    nats -= math.log(chance)
                    chance = 1.0

        if linear:
            np.dot(grad[:filled], proj.T, back[:filled])
            np.dot(hidden[:filled].T, grad[:filled], grad_proj)
            step = hidden.dtype.type(lr_proj / lr)
            for i in range(size):
                for d in range(size):
                    proj[i, d] += step * grad_proj[i, d]
        for b in range(filled):
            at, first, last = spans[b, 0], spans[b, 1], spans[b, 2]
            share = hidden.dtype.type(1 / (last - first) if cbow and divide else 1)
            for q in range(first, last + 1):
                if (q == at) != cbow:
                    row = tokens[q]
                    for d in range(size):
                        emb_in[row, d] += share * back[b, d]
    totals[0] += nats - math.log(chance)
    totals[1] += predictions
