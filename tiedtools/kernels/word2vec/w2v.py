"""word2vec training step with separate negatives per target, for all models.

Models: CBOW or skip-gram; negative sampling or hierarchical softmax; untied, tied, tied with fixed signs, or tied+L.
For a center word c with context words C within a random radius,

    inputs   CBOW: C          skip-gram: c
    targets  CBOW: c          skip-gram: each word of C
    h = mean or sum of the inputs' rows of emb_in;  u = h L (tied+L) or h;  score of output row j: s_j = u . o_j + b

where o_j is a row of emb_out, which is emb_in in the tied models, and b is a constant, 0 along a Huffman path. The loss
is -log sigma(s_target) - sum over K negatives of log sigma(-s_negative), or the same sum along a Huffman path
(Mikolov et al. 2013; L: Gulordava et al. 2018, equation 5). With g_j = label_j - sigma(s_j), ascent directions are

    do_j = g_j u     du = sum_j g_j o_j     dh = du L^T     dL = h^T du

Fixed signs are L = diag(-1, ..., -1, 1, ..., 1), without products: they negate the first dimensions of h and of du.

Difference from word2vec.c: its skip-gram uses the context word as the input and the center word as the target. Over a
text, the word pairs are the same. With the center word as the input, as in the papers, L is applied once per position
instead of once per pair.

Negatives are drawn for each target, which sees the updates of the previous one. This is the reference for w2vtiles.py,
which is several times faster.
"""

import math

import numpy as np

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.prefetch import prefetch_l2
from tiedtools.kernels.base.scalar import GOLDEN, LOW32, below, exp32, mix
from tiedtools.kernels.base.tiles import EVERYTHING, ROWS, combine, combine_transposed, dots

SATURATED = 6.0  # word2vec.c's MAX_EXP
DIVERGED = 1e4  # far above any useful score
RUN, STOP, NAN = 0, 1, 2  # stop[0]: running; stop requested; a score was NaN or exceeded DIVERGED


@jit(relaxed=True)
def train(matrices, totals, stop, space, text, noise, tree, n, rules, lr, lr_proj, seed):
    """Train on one subsampled piece of text, in batches of up to hidden.shape[0] center words; L is updated per batch.

    matrices, space, text, tree, rules  see w2vtypes.py: Matrices, ExactSpace, Text, Tree, Rules
    totals     float64 [2], incremented by the loss in nats and by the number of predictions (target words)
    stop       uint8 [1]: polled between batches; set to NAN on divergence, before bad values reach the parameters
    noise      uint32 [V, 2]: alias table of the noise distribution
    n          number of words of the text
    lr         learning rate of rows;  lr_proj: of L, applied to the summed gradient of a batch. With lr 0, the loss is
               computed and nothing is changed
    """
    emb_in, emb_out, proj, frozen_in, frozen_out, sizes = matrices
    hidden, mapped, grad, back, inputs, targets, rows = space
    tokens, begins, ends = text
    paths, codes, path_starts, first_node = tree
    window, radii, negative, cbow, mean, divide, skip_input, negated, shift = rules
    size = emb_in.shape[1]
    linear = proj.size > 0
    hierarchical = path_starts.size > 0
    radius_range, words = np.uint64(radii), np.uint64(noise.shape[0])
    centers, contexts = (targets, inputs) if cbow else (inputs, targets)
    counter = seed
    nats, predictions, chance = 0.0, 0, 1.0
    # Center words of one batch do not see each other's updates. They are spread over the piece: consecutive ones would
    # push the few words of a table or a refrain in the same direction a hundred times.
    batches = -(-n // hidden.shape[0])
    hidden_t = hidden.T
    nothing = emb_in, rows[:0]
    for first in range(batches):
        if stop[0] != RUN:
            break
        # Draw the windows of the batch: center and context words of the `filled` ones that are not empty.
        filled = full = 0
        for at in range(first, n, batches):
            counter += GOLDEN
            radius = window - np.int64(below(mix(counter), radius_range))
            count = 0
            for q in range(max(begins[at], at - radius), min(ends[at], at + radius + 1)):
                if q != at and not (skip_input and tokens[q] == tokens[at]):
                    count += 1
                    contexts[filled, count] = tokens[q]
                    prefetch_l2(emb_in, tokens[q])
            if count:
                contexts[filled, 0] = count
                centers[filled, 0] = 1
                centers[filled, 1] = tokens[at]
                filled += 1

        # h: the sum or mean of the inputs' rows; then u.
        for b in range(filled):
            for d in range(size):
                grad[b, d] = 0
                hidden[b, d] = emb_in[inputs[b, 1], d]
            for i in range(2, inputs[b, 0] + 1):
                for d in range(size):
                    hidden[b, d] += emb_in[inputs[b, i], d]
            total = weighted(hidden[b], emb_in, inputs[b], sizes)
            share = hidden.dtype.type(1 / total if mean else 1)
            for d in range(size):
                hidden[b, d] *= share
        negate(hidden[:filled], negated)
        if linear:
            full = -(-filled // ROWS) * ROWS
            hidden[filled:full] = 0
            grad[filled:full] = 0
            combine(mapped, hidden, proj, 1, full, size, EVERYTHING, False, nothing)

        # Each target in turn: its output rows, first the path of its Huffman code, then itself and its negatives.
        for b in range(filled):
            for t in range(1, targets[b, 0] + 1):
                target = targets[b, t]
                count = 0
                if hierarchical:
                    for k in range(path_starts[target], path_starts[target + 1]):
                        rows[count] = first_node + paths[k]
                        prefetch_l2(emb_out, rows[count])
                        count += 1
                inner = count  # output rows that are inner nodes
                if negative > 0:
                    rows[count] = target
                    prefetch_l2(emb_out, target)
                    count += 1
                    for _ in range(negative):
                        counter += GOLDEN
                        bits = mix(counter)
                        word = np.int64(below(bits, words))
                        if (bits & LOW32) >= noise[word, 0]:
                            word = np.int64(noise[word, 1])
                        usable = word != target
                        if skip_input:
                            for i in range(1, inputs[b, 0] + 1):
                                usable &= word != inputs[b, i]
                        if usable:
                            rows[count] = word
                            prefetch_l2(emb_out, word)
                            count += 1

                # Scores of these rows, loss, and updates; du is summed in `grad`.
                for j in range(count):
                    row = rows[j]
                    score = hidden.dtype.type(shift if j >= inner else 0)
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
                    if not right and abs(score) > 30.0:
                        nats += abs(score) - 30.0
                    # Multiply probabilities and take one logarithm per several hundred factors.
                    if chance < 1e-100:
                        nats -= math.log(chance)
                        chance = 1.0
                    # 1 - probability of the label, as in word2vec.c where the score is saturated.
                    if lr == 0:
                        continue
                    error = away * likely if right else likely
                    if abs(score) >= SATURATED:
                        if right or j < inner:
                            continue
                        error = hidden.dtype.type(1)
                    g = hidden.dtype.type(lr * (error if label else -error))
                    if frozen_out.size and frozen_out[row]:
                        for d in range(size):
                            grad[b, d] += g * emb_out[row, d]
                        continue
                    for d in range(size):
                        o = emb_out[row, d]
                        grad[b, d] += g * o
                        emb_out[row, d] = o + g * mapped[b, d]
                predictions += 1

        # Backpropagate through L, update it, and update the inputs' rows.
        if lr == 0:
            continue
        if linear:
            dots(back, grad, proj, 1, full, size, EVERYTHING, nothing)
            ratio = hidden.dtype.type(lr_proj / lr)
            for b in range(filled):
                for d in range(size):
                    hidden[b, d] *= ratio
            combine_transposed(proj, hidden_t, grad, 1, full, size, EVERYTHING, True, nothing)
        negate(back[:filled], negated)
        for b in range(filled):
            share = hidden.dtype.type(1 / total_size(inputs[b], sizes) if divide else 1)
            for i in range(1, inputs[b, 0] + 1):
                if frozen_in.size and frozen_in[inputs[b, i]]:
                    continue
                for d in range(size):
                    emb_in[inputs[b, i], d] += share * back[b, d]
    totals[0] += nats - math.log(chance)
    totals[1] += predictions


@jit
def size_of(sizes, word):
    """Return the weight of a word in a mean."""
    return 1 if sizes is None else sizes[word]


@jit
def total_size(inputs, sizes):
    """Return the sum of the weights of the words inputs[1:], inputs[0] of them."""
    if sizes is None:
        return inputs[0]
    total = sizes[inputs[1]]
    for i in range(2, inputs[0] + 1):
        total += sizes[inputs[i]]
    return total


@jit
def weighted(h, emb_in, inputs, sizes):
    """Replace h, the sum of the inputs' rows, by their weighted sum if they have sizes; returns the sum of weights."""
    if sizes is not None:
        for d in range(h.size):
            h[d] = 0
        for i in range(1, inputs[0] + 1):
            for d in range(h.size):
                h[d] += sizes[inputs[i]] * emb_in[inputs[i], d]
    return total_size(inputs, sizes)


@jit
def negate(X, columns):
    """Negate the first `columns` columns of X."""
    for b in range(X.shape[0]):
        for d in range(columns):
            X[b, d] = -X[b, d]
