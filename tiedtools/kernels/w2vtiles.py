"""word2vec's training step by tiles: the model of w2v.py, with negatives that neighbouring centres share.

A batch is `strips` runs of `run` centres in a row, one run from each strip of a piece of text. Each run has

    U  [run, P]     u of its centres                    X  [span, P]  rows of the words in and around the run
    W  [run, span]  1 where a word is in the window     N  [each, P]  rows of the run's own `each` negatives

and products of tiles give everything, along the diagonal band of W for positives, in full for negatives:

    S = U X^T    G = lr W sigma(-S)     dU = G X     dX = G^T U
    S = U N^T    G = -lr w sigma(S)    dU += G N     dN = G^T U      w = negative * targets / each

so that a centre meets `each` negatives of weight w, in expectation `negative` for each of its targets; of a negative
that is a target itself only the other targets count. CBOW takes
its means by the same band, H = W X with 1 / |C| in W, and hands their gradients back by it. All of a batch sees the
parameters from before it. A run ends before a word would be its centre more than REPEATS times: a table or a
refrain must not be pushed a hundred times in one direction.

Negatives shared by the words of one window: Ji, Satish, Li, Dubey 2016, "Parallelizing Word2Vec in Shared and
Distributed Memory"; here by all windows of a run.

With threads that go in step (--deterministic), each takes its own piece of text and sees the parameters from before a
round of batches and its own changes since; then all wait, and what each has found is added in the order of threads.
"""

import numpy as np

from tiedtools.kernels.barrier import wait_for_all
from tiedtools.kernels.bfloat16 import left, paired, right
from tiedtools.kernels.jit import jit
from tiedtools.kernels.scalar import GOLDEN, LOW32, below, exp32, log1p32, mix
from tiedtools.kernels.store import forget, gather, merge, merge_proj, scatter
from tiedtools.kernels.tiles import ROWS, combine, combine_transposed, dots
from tiedtools.kernels.w2v import DIVERGED, NAN, RUN

REPEATS = 4
# Batches to one step of L, of skip-gram and of CBOW: every centre could move L, but a word moves only where it is.
PROJ_EVERY = 8, 4


@jit(relaxed=True)
def train(
    store_in, store_out, linear, targets, in_step, totals, stop, rows, weights, words, cursor, thread, racing, tied,
    tokens, begins, ends, noise, n, window, negative, cbow, divide, skip_input, lr, lr_proj, seed,
):  # fmt: skip
    """Train on one thinned piece of text. As w2v.train where not said otherwise.

    store_in, store_out  emb_in and emb_out [V, P] as stores (see store.py), P as tiles.aligned has it
    linear, targets, in_step  are None where there is no such thing, which then is not compiled
    linear      with L:
                proj  [P, P];  local_proj  [threads, P, P], proj itself for a thread on its own;
                steps  [P, P], what L is to be moved by, of one thread of several that race; else L itself;
                transposed  [P, P], room for L^T; None in bfloat16;
                bf16, room for hidden and grad along, L along, L and L^T down, hidden and grad down: see bfloat16.py
    targets     of CBOW, the output rows of the centres: target, d_target [batch, P]; own, own_scores [batch, 1]
    in_step     of threads that go in step: gate int64 [16], see barrier.py; active int64 [threads, 8], column 0:
                whether a thread has text left; round, batches between two waits
    rows        hidden, mapped, grad, back [batch, P]; around, d_around [strips * span, P]; drawn, d_drawn [strips *
                each, P]. Without L mapped is hidden and back is grad; with L back is mapped
    weights     near, scores [batch, span]; far, far_scores [batch, each]; counts [batch]
    words       int32: centres, follow [batch]; neighbours [strips * span]; negatives, upcoming [strips * each]
    cursor      int64 [strips]
    thread      number of this thread among those in step;  racing  how many threads race
    tied        store_out is store_in
    """
    hidden, mapped, grad, back, around, d_around, drawn, d_drawn = rows
    near, scores, far, far_scores, counts = weights
    centres, follow, neighbours, negatives, upcoming = words
    near_t, scores_t, far_t = near.T, scores.T, far_scores.T
    (emb_in, changes_in), (emb_out, changes_out) = store_in, store_out
    if targets is not None:
        target, d_target, own, own_scores = targets
    if linear is not None:
        proj, local_proj, steps, transposed, bf16 = linear
        hidden_along, grad_along, l_along, l_down, transposed_down, hidden_down, grad_down = bf16
        L, origin = local_proj[thread], (0, 0)
        across, backwards = paired(l_down, L), paired(transposed_down, transposed)
        terms = across.shape[0]

    strips = cursor.size
    batch, span = near.shape
    run, each = batch // strips, far.shape[1]
    width = span - run + ROWS
    size = emb_in.shape[1]
    every = PROJ_EVERY[int(cbow)]
    step, ratio = hidden.dtype.type(lr), hidden.dtype.type(every * lr_proj / lr)
    nothing = emb_in, upcoming[:0]
    counter, draws = seed, draw(upcoming, noise, mix(seed))
    due = np.int64(seed % np.uint64(every))  # any of them, so that pieces of few batches have their part in L
    batches, fresh = 0, False  # fresh: what is made of L has this thread's own steps in it
    for r in range(strips):
        cursor[r] = r * n // strips
    while stop[0] == RUN:
        for k in range(negatives.size):
            negatives[k] = upcoming[k]
        draws = draw(upcoming, noise, draws)
        counter, more = windows(
            near, far, counts, centres, neighbours, cursor, tokens, begins, ends, n,
            window, negative, cbow, skip_input, counter,
        )  # fmt: skip
        batches += 1
        if more:
            exclude(far, near, counts, negatives, centres, neighbours, run, negative, cbow, skip_input)
            for r in range(strips):
                for i in range(run):
                    follow[r * run + i] = tokens[min(cursor[r] + window + i, n - 1)]
            gather(drawn, emb_out, changes_out, negatives, thread)
            if targets is not None:
                gather(around, emb_in, changes_in, neighbours, thread)
                gather(target, emb_out, changes_out, centres, thread)
                combine(hidden, near, around, strips, run, span, width, 1, False, (emb_in, follow))
            else:
                gather(around, emb_out, changes_out, neighbours, thread)
                gather(hidden, emb_in, changes_in, centres, thread)
            if linear is not None:
                if not fresh:
                    right(l_down, origin, L)
                    transpose(backwards, left(l_along, origin, L))
                    fresh = True
                combine(mapped, left(hidden_along, origin, hidden), across, 1, batch, terms, terms, 0, False, nothing)

            dots(far_scores, mapped, drawn, strips, run, each, each, 0, (emb_out, upcoming))
            nats = errors(far_scores, far, -step)
            combine(grad, far_scores, drawn, strips, run, each, each, 0, False, (emb_out, follow))
            combine_transposed(d_drawn, far_t, mapped, strips, run, each, each, 0, False, nothing)
            if targets is not None:
                for b in range(batch):
                    own[b, 0] = counts[b] > 0
                own_dots(own_scores, mapped, target)
                nats += errors(own_scores, own, step)
                own_gradients(grad, d_target, own_scores, mapped, target)
            else:
                dots(scores, mapped, around, strips, run, span, width, 1, (emb_in, follow))
                nats += errors(scores, near, step)
                combine(grad, scores, around, strips, run, span, width, 1, True, nothing)
                combine_transposed(d_around, scores_t, mapped, strips, run, span, width, 1, False, nothing)
            if not abs(nats) < np.inf:
                stop[0] = NAN
                return
            if linear is not None:
                combine(back, left(grad_along, origin, grad), backwards, 1, batch, terms, terms, 0, False, nothing)
                if batches % every == due:
                    for b in range(batch):
                        for d in range(size):
                            hidden[b, d] *= ratio
                    down, h = right(grad_down, origin, grad), right(hidden_down, origin, hidden).T
                    combine(steps, h, down, 1, size, down.shape[0], down.shape[0], 0, True, nothing)
                    fresh = False
            totals[0] += nats
            for b in range(batch):
                totals[1] += counts[b] > 0 if cbow else counts[b]
            scatter(emb_out, changes_out, negatives, d_drawn, thread)
            if targets is not None:
                if not divide:
                    for b in range(batch):
                        for d in range(size):
                            back[b, d] *= counts[b]
                combine_transposed(d_around, near_t, back, strips, run, span, width, 1, False, nothing)
                scatter(emb_out, changes_out, centres, d_target, thread)
                scatter(emb_in, changes_in, neighbours, d_around, thread)
            else:
                scatter(emb_out, changes_out, neighbours, d_around, thread)
                scatter(emb_in, changes_in, centres, back, thread)
        if linear is not None:
            # Seldom, since all others then fetch L anew: together some two times as often as one thread alone.
            if racing > 1 and (batches % (racing // 2 * every) == 0 or not more):
                take_steps(L, steps)
                fresh = False

        if in_step is not None:
            gate, active, round = in_step
            threads = active.shape[0]
            if batches % round:
                continue
            active[thread, 0] = more
            if not wait_for_all(gate, threads, stop):
                return
            remaining = 0
            for t in range(threads):
                remaining += active[t, 0]
            merge(emb_in, changes_in, thread)
            if not tied:
                merge(emb_out, changes_out, thread)
            if linear is not None:
                merge_proj(proj, local_proj, thread)
            if not wait_for_all(gate, threads, stop):
                return
            forget(changes_in, thread)
            forget(changes_out, thread)
            if linear is not None:
                for i in range(size):
                    for d in range(size):
                        L[i, d] = proj[i, d]
                fresh = False
            if remaining == 0:
                return
        elif not more:
            return


@jit
def transpose(X, Y):
    """X = Y^T"""
    for i in range(Y.shape[0]):
        for j in range(Y.shape[1]):
            X[j, i] = Y[i, j]


@jit
def take_steps(L, steps):
    """Move L by what a thread has collected, seldom: whoever reads L next fetches it from this thread's core."""
    for i in range(L.shape[0]):
        for d in range(L.shape[1]):
            L[i, d] += steps[i, d]
            steps[i, d] = 0


@jit
def draw(words, noise, counter):
    """Draw words from an alias table; returns the counter of random numbers."""
    for k in range(words.size):
        counter += GOLDEN
        bits = mix(counter)
        word = np.int64(below(bits, np.uint64(noise.shape[0])))
        words[k] = word if (bits & LOW32) < noise[word, 0] else noise[word, 1]
    return counter


@jit
def windows(
    near, far, counts, centres, neighbours, cursor, tokens, begins, ends, n,
    window, negative, cbow, skip_input, counter,
):  # fmt: skip
    """Choose the centres of a batch and their windows; returns (counter of random numbers, whether there are any).

    A row without a context, or beyond the text, has word 0 and weights 0.
    """
    strips = cursor.size
    run, span = near.shape[0] // strips, near.shape[1]
    each = far.shape[1]
    active = False
    near[:] = 0
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
            weight = count > 0 if cbow else count
            for k in range(each):
                far[b, k] = weight * negative / each
        cursor[r] = stop
        for j in range(span):
            p = start - window + j
            neighbours[r * span + j] = tokens[p] if 0 <= p < n else 0
    return counter, active


@jit
def exclude(far, near, counts, negatives, centres, neighbours, run, negative, cbow, skip_input):
    """Weigh a negative by the targets that are other words, and by 0 where it is an input and `skip_input`."""
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
                    elif not cbow or skip_input:
                        same = 0
                        for j in range(span):
                            same += near[b, j] != 0 and neighbours[r * span + j] == word
                        if same:
                            far[b, k] = 0 if cbow else (counts[b] - same) * negative / each


@jit(relaxed=True)
def own_dots(scores, A, B):
    """scores[b, 0] = A[b] . B[b], of each centre and its own output row"""
    for b in range(A.shape[0]):
        total = scores.dtype.type(0)
        for d in range(A.shape[1]):
            total += A[b, d] * B[b, d]
        scores[b, 0] = total


@jit(relaxed=True)
def own_gradients(grad, d_target, errors, mapped, target):
    """grad += g o and do = g u, of each centre and its own output row o"""
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
