"""word2vec's training step by tiles: the model of w2v.py, with negatives that neighbouring centres share.

A batch is `strips` runs of `run` centres in a row, one run from each strip of a piece of text. Each run has

    U  [run, P]     u of its centres                    X  [span, P]  rows of the words in and around the run
    W  [run, span]  1 where a word is in the window     N  [each, P]  rows of the run's own `each` negatives

and products of tiles give everything, along the diagonal band of W for positives, in full for negatives:

    S = U X^T    G = lr W sigma(-S)     dU = G X     dX = G^T U
    S = U N^T    G = -lr w sigma(S)    dU += G N     dN = G^T U      w = negative * targets / each

so that a centre meets `each` negatives of weight w, in expectation `negative` for each of its targets. CBOW takes
its means by the same band, H = W X with 1 / |C| in W, and hands their gradients back by it. All of a batch sees the
parameters from before it. A run ends before a word would be its centre more than REPEATS times: a table or a
refrain must not be pushed a hundred times in one direction.

Negatives shared by the words of one window: Ji, Satish, Li, Dubey 2016, "Parallelizing Word2Vec in Shared and
Distributed Memory"; here by all windows of a run.

With `threads` in step (--deterministic), each takes its own piece of text, all wait for each other after every batch,
and each then adds what all have found, in the order of threads, to its own columns of the parameters.
"""

import numpy as np

from tiedtools.kernels.barrier import wait_for_all
from tiedtools.kernels.jit import jit
from tiedtools.kernels.prefetch import prefetch
from tiedtools.kernels.scalar import GOLDEN, LOW32, below, exp32, log1p32, mix
from tiedtools.kernels.tiles import ROWS, combine, combine_transposed, dots
from tiedtools.kernels.w2v import DIVERGED, NAN

REPEATS = 4
PROJ_EVERY = 4  # batches to one step of L: every centre moves L, but a word moves only where it is


@jit(relaxed=True)
def train(
    emb_in, emb_out, proj, totals, stop, shared, private, words, cursor, gate, states, columns, thread,
    tokens, begins, ends, noise, n, window, negative, cbow, divide, skip_input, lr, lr_proj, seed,
):  # fmt: skip
    """Train on one thinned piece of text. As w2v.train where not said otherwise.

    emb_in, emb_out  [V, P], P as tiles.aligned has it;  proj  [P, P] or [0, 0]
    shared    among the `threads` that go in step: hidden, mapped, grad, back [threads, batch, P]; around, d_around
              [threads, strips * span, P]; drawn, d_drawn [threads, strips * each, P]; target, d_target [threads,
              batch, P], only for CBOW. Without L mapped is hidden and back is grad; with L back is mapped
    private   near, scores [batch, span]; far, far_scores [batch, each]; own, own_scores [batch, 1]; counts [batch]
    words     int32: centres [threads, batch]; neighbours [threads, strips * span]; negatives [threads, strips * each]
    cursor    int64 [2, strips]
    gate      int64 [16], see barrier.py;  states  int64 [threads, 8], column 0: whether a thread has a batch
    columns   int64 [threads + 1]: thread t adds to columns columns[t] .. columns[t + 1]
    """
    hidden_of, mapped_of, grad_of, back_of, around_of, d_around_of, drawn_of, d_drawn_of, target_of, d_target_of = shared
    near, scores, far, far_scores, own, own_scores, counts = private
    centres_of, neighbours_of, negatives_of = words
    hidden, mapped, grad, back = hidden_of[thread], mapped_of[thread], grad_of[thread], back_of[thread]
    around, d_around, drawn, d_drawn = around_of[thread], d_around_of[thread], drawn_of[thread], d_drawn_of[thread]
    target, d_target = target_of[thread], d_target_of[thread]
    centres, neighbours, negatives = centres_of[thread], neighbours_of[thread], negatives_of[thread]
    near_t, scores_t, far_t = near.T, scores.T, far_scores.T

    threads, strips = states.shape[0], cursor.shape[1]
    batch, span = near.shape
    run, each = batch // strips, far.shape[1]
    width = span - run + ROWS
    size = emb_in.shape[1]
    first, last = columns[thread], columns[thread + 1]
    linear = proj.size > 0
    step, ratio = hidden.dtype.type(lr), hidden.dtype.type(PROJ_EVERY * lr_proj / lr)
    counter = seed
    batches = 0
    for r in range(strips):
        cursor[1, r] = r * n // strips
    while True:
        for k in range(negatives.size):
            counter += GOLDEN
            bits = mix(counter)
            word = np.int64(below(bits, np.uint64(noise.shape[0])))
            negatives[k] = word if (bits & LOW32) < noise[word, 0] else noise[word, 1]
            prefetch(emb_out, negatives[k])
        counter, active = windows(
            near, far, own, counts, centres, neighbours, cursor, tokens, begins, ends, n,
            window, negative, cbow, skip_input, counter,
        )  # fmt: skip
        states[thread, 0] = active
        nats, predictions = 0.0, 0.0
        if active:
            exclude(far, near, negatives, centres, neighbours, run, cbow, skip_input)
            for r in range(strips):
                for p in range(cursor[1, r] + window, min(cursor[1, r] + window + run, n)):
                    prefetch(emb_in, tokens[p])
                    prefetch(emb_out, tokens[p])

            gather(drawn, emb_out, negatives)
            if cbow:
                gather(around, emb_in, neighbours)
                gather(target, emb_out, centres)
                combine(hidden, near, around, strips, run, span, width, 1, False)
            else:
                gather(around, emb_out, neighbours)
                gather(hidden, emb_in, centres)
            if linear:
                combine(mapped, hidden, proj, 1, batch, size, size, 0, False)

            dots(far_scores, mapped, drawn, strips, run, each, each, 0)
            nats += errors(far_scores, far, -step)
            combine(grad, far_scores, drawn, strips, run, each, each, 0, False)
            combine_transposed(d_drawn, far_t, mapped, strips, run, each, each, 0, False)
            if cbow:
                row_dots(own_scores, mapped, target)
                nats += errors(own_scores, own, step)
                pairs(grad, d_target, own_scores, mapped, target)
            else:
                dots(scores, mapped, around, strips, run, span, width, 1)
                nats += errors(scores, near, step)
                combine(grad, scores, around, strips, run, span, width, 1, True)
                combine_transposed(d_around, scores_t, mapped, strips, run, span, width, 1, False)
            if linear:
                dots(back, grad, proj, 1, batch, size, size, 0)
                for b in range(batch):
                    for d in range(size):
                        hidden[b, d] *= ratio
            for b in range(batch):
                predictions += own[b, 0] if cbow else counts[b]
                if cbow and not divide:
                    for d in range(size):
                        back[b, d] *= counts[b]
            if cbow:
                combine_transposed(d_around, near_t, back, strips, run, span, width, 1, False)
            if not abs(nats) < np.inf:
                stop[0] = NAN
        if not wait_for_all(gate, threads, stop):
            return
        remaining = 0
        for t in range(threads):
            remaining += states[t, 0]
        if remaining == 0:
            return
        totals[0] += nats
        totals[1] += predictions
        batches += 1
        for t in range(threads):
            if states[t, 0]:
                scatter(emb_out, negatives_of[t], d_drawn_of[t], first, last)
                if cbow:
                    scatter(emb_out, centres_of[t], d_target_of[t], first, last)
                    scatter(emb_in, neighbours_of[t], d_around_of[t], first, last)
                else:
                    scatter(emb_out, neighbours_of[t], d_around_of[t], first, last)
                    scatter(emb_in, centres_of[t], back_of[t], first, last)
                if linear and batches % PROJ_EVERY == 0:
                    part = last - first
                    hidden_t = hidden_of[t].T[first:last]
                    combine_transposed(proj[first:last], hidden_t, grad_of[t], 1, batch, part, part, 0, True)
        if not wait_for_all(gate, threads, stop):
            return


@jit
def windows(
    near, far, own, counts, centres, neighbours, cursor, tokens, begins, ends, n,
    window, negative, cbow, skip_input, counter,
):  # fmt: skip
    """Choose the centres of a batch and their windows; returns (counter of random numbers, whether there are any).

    cursor  [2, strips]: where the runs of this batch begin; where those of the next will
    A row without a context, or beyond the text, has word 0 and weights 0.
    """
    strips = cursor.shape[1]
    run, span = near.shape[0] // strips, near.shape[1]
    each = far.shape[1]
    active = False
    near[:] = 0
    for r in range(strips):
        start = cursor[1, r]
        stop = min(start + run, (r + 1) * n // strips)
        cursor[0, r] = start
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
                radius = window - np.int64(below(mix(counter), np.uint64(window)))
                low, high = max(begins[p], p - radius), min(ends[p], p + radius + 1)
                for q in range(low, high):
                    if q != p and not (skip_input and tokens[q] == word):
                        near[b, q - start + window] = 1
                        count += 1
                if cbow and count:
                    for q in range(low, high):
                        near[b, q - start + window] /= count
            centres[b] = word
            counts[b] = count
            own[b, 0] = count > 0
            weight = own[b, 0] if cbow else counts[b]
            for k in range(each):
                far[b, k] = weight * negative / each
        cursor[1, r] = stop
        for j in range(span):
            p = start - window + j
            neighbours[r * span + j] = tokens[p] if 0 <= p < n else 0
    return counter, active


@jit
def exclude(far, near, negatives, centres, neighbours, run, cbow, skip_input):
    """Set the weight to 0 where a negative is a target, or with `skip_input` an input, of the same centre."""
    strips = near.shape[0] // run
    span, each = near.shape[1], far.shape[1]
    for r in range(strips):
        for k in range(each):
            word = negatives[r * each + k]
            hits = 0
            for j in range(span):
                hits += neighbours[r * span + j] == word
            if hits:
                for b in range(r * run, (r + 1) * run):
                    if (cbow or skip_input) and centres[b] == word:
                        far[b, k] = 0
                    if not cbow or skip_input:
                        for j in range(span):
                            if near[b, j] != 0 and neighbours[r * span + j] == word:
                                far[b, k] = 0


@jit
def gather(out, matrix, words):
    """out[k] = matrix[words[k]]"""
    for k in range(words.size):
        word = words[k]
        for d in range(matrix.shape[1]):
            out[k, d] = matrix[word, d]


@jit
def scatter(matrix, words, change, first, last):
    """matrix[words[k]] += change[k] in columns `first` .. `last`; a word may come more than once."""
    for k in range(words.size):
        row, add = matrix[words[k], first:last], change[k, first:last]
        for d in range(row.size):
            row[d] += add[d]


@jit(relaxed=True)
def row_dots(scores, A, B):
    """scores[b, 0] = A[b] . B[b]"""
    for b in range(A.shape[0]):
        total = scores.dtype.type(0)
        for d in range(A.shape[1]):
            total += A[b, d] * B[b, d]
        scores[b, 0] = total


@jit(relaxed=True)
def pairs(grad, d_target, errors, mapped, target):
    """grad += g o and do = g u for one output row o a centre."""
    for b in range(grad.shape[0]):
        g = errors[b, 0]
        for d in range(grad.shape[1]):
            grad[b, d] += g * target[b, d]
            d_target[b, d] = g * mapped[b, d]

@jit(relaxed=True)
def errors(scores, weights, lr):
    """Turn scores into lr W (label - sigma(s)) in place: the label is 1 where lr > 0, else 0, and W >= 0.

    scores, weights  [batch, cols]

    Returns the loss, -W log sigma(+-s) summed, in nats; infinite where a score is beyond DIVERGED, NaN where one is.
    """
    kind = scores.dtype.type
    zero, one, certain, limit = kind(0), kind(1), kind(30), kind(DIVERGED)
    sign, rate = kind(1 if lr > 0 else -1), kind(lr)
    nats = excess = zero
    s_flat, w_flat = scores.reshape(scores.size), weights.reshape(weights.size)
    for k in range(s_flat.size):
        s, weight = sign * s_flat[k], w_flat[k]
        away = exp32(-min(abs(s), certain))
        likely = one / (one + away)
        nats += weight * (max(-s, zero) + log1p32(away))
        excess += weight * max(abs(s) - limit, zero)
        s_flat[k] = rate * weight * (away * likely if s > zero else likely)
    return nats if excess == 0 else np.inf
