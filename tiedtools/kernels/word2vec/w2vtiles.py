"""word2vec training step by matrix tiles: the model of w2v.py, with negatives shared by nearby center words.

A batch has `strips` runs of `run` consecutive center words, one run from each strip of a piece of text. Each run has

    U  [run, P]     u of its center words               X  [span, P]  rows of the words in and around the run
    W  [run, span]  1 for words in the context window   N  [each, P]  rows of the run's `each` negatives

Everything is computed by tiled products, for positives in the tiles of W that are not 0, for negatives in full:

    S = U X^T + b    G = lr W sigma(-S)     dU = G X     dX = G^T U
    S = U N^T + b    G = -lr w sigma(S)    dU += G N     dN = G^T U      w = negative * targets / each

A center word thus has `each` negatives of weight w, equivalent to `negative` per target. A negative that equals one of
the targets is weighted by the number of the other targets. CBOW computes its means with the same band, H = W X with
1 / |C| in W, or 1 for sums, and backpropagates through it. All of a batch uses the parameters from before the batch.

Sharing negatives among the words of one window: Ji, Satish, Li, Dubey 2016, "Parallelizing Word2Vec in Shared and
Distributed Memory". Here all windows of a run share them.

With --deterministic, each thread processes another piece of text, and sees the parameters from before a round of
batches plus the changes it has made. At the end of a round the threads synchronize, and their changes are merged in
thread order.
"""

import numpy as np

from tiedtools.kernels.base.barrier import wait_for_all
from tiedtools.kernels.base.bfloat16 import left, pack_along, pack_down, pack_scores, paired, right
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import product
from tiedtools.kernels.base.scalar import exp32, log1p32, mix
from tiedtools.kernels.base.tiles import ROWS, combine, combine_transposed, dots, flat
from tiedtools.kernels.word2vec.store import forget, gather, look_up, merge, merge_proj, scatter
from tiedtools.kernels.word2vec.w2v import DIVERGED, NAN, RUN, negate
from tiedtools.kernels.word2vec.windows import draw, exclude, level, windows

# Batches per update of L, for skip-gram and CBOW: L is used by every center word, a row only where its word occurs.
PROJ_EVERY = 8, 4
SHARE_EVERY = 32  # batches, at least, between two additions of the updates of one of several threads to L


@jit(relaxed=True)
def train(
    stores, linear, targets, in_step, totals, stop, space, thread, racing, text, noise, n, rules, lr, lr_proj, seed
):
    """Train on one subsampled piece of text. Arguments are as in w2v.train, except:

    stores, linear, targets, in_step, space, text, rules  see w2vtypes.py: Stores, Linear, Targets, InStep, SharedSpace,
                Text, Rules; linear, targets and in_step may be None, which omits their code
    thread      number of this thread among synchronized threads;  racing  number of Hogwild threads
    """
    s = space
    hidden, mapped, grad, back, around, drawn = s.hidden, s.mapped, s.grad, s.back, s.around, s.drawn
    near, scores, far, far_scores, counts, cursor = s.near, s.scores, s.far, s.far_scores, s.counts, s.cursor
    centers, follow, neighbors, negatives, upcoming = s.centers, s.follow, s.neighbors, s.negatives, s.upcoming
    # Rows of emb_in: those of the words' numbers in a piece, if it has local vectors.
    numbered = stores.numbers is not None
    words_in = neighbors if targets is not None else centers
    follow_in, rows_in = (s.follow_in, s.rows_in) if numbered else (follow, words_in)
    band, band_t, full, origin = s.band, s.band_t, s.band[:0], (0, 0)
    # Operands of products: the arrays themselves, or in bfloat16 their packed copies.
    p = s.pairs
    u, u_down, back_down = paired(p.u, mapped), paired(p.u_down, mapped), paired(p.u_down, back)
    negative_rows, negatives_down = paired(p.drawn, drawn), paired(p.drawn_down, drawn)
    around_rows, around_down = paired(p.around, around), paired(p.around_down, around)
    far_terms, far_t = paired(p.far, far_scores), paired(p.far_down, far_scores).T
    near_terms, near_t = paired(p.near, near), paired(p.near_down, near).T
    score_terms, scores_t = paired(p.near, scores), paired(p.near_down, scores).T
    (emb_in, changes_in, frozen_in), (emb_out, changes_out, frozen_out) = stores.emb_in, stores.emb_out
    window, _, negative, cbow, mean, divide, skip_input, negated, shift = rules
    if linear is not None:
        hidden_along, grad_along, l_along, l_down, transposed_down, hidden_down, grad_down = linear.bf16
        L = linear.local[thread]
        across, backwards = paired(l_down, L), paired(transposed_down, linear.transposed)

    strips = cursor.size
    batch, span = near.shape
    run, each = batch // strips, far.shape[1]
    size = emb_in.shape[1]
    width = span - run + ROWS
    every = PROJ_EVERY[1] if cbow else PROJ_EVERY[0]
    step, ratio = hidden.dtype.type(lr), hidden.dtype.type(every * lr_proj / lr)
    nothing = emb_in, upcoming[:0]
    counter, draws = seed, draw(upcoming, noise, mix(seed))
    due = np.int64(seed % np.uint64(every))  # random phase, so that pieces of few batches also contribute to L
    batches, fresh = 0, False  # fresh: the packed copies of L include this thread's updates
    for r in range(strips):
        cursor[r] = r * n // strips
    while stop[0] == RUN:
        for k in range(negatives.size):
            negatives[k] = upcoming[k]
        draws = draw(upcoming, noise, draws)
        counter, more = windows(s, text, n, rules, stores.sizes, counter)
        batches += 1
        if more:
            # Gather the rows, and compute hidden: the band of weights times the rows around for CBOW.
            exclude(s, run, negative, cbow, skip_input)
            for r in range(strips):
                for i in range(run):
                    follow[r * run + i] = text.tokens[min(cursor[r] + window + i, n - 1)]
            if numbered:
                look_up(follow_in, stores.numbers, follow)
                look_up(rows_in, stores.numbers, words_in)
            gather(drawn, emb_out, changes_out, negatives, thread)
            pack_along(p.drawn, drawn)
            pack_down(p.drawn_down, drawn)
            if targets is not None:
                gather(around, emb_in, changes_in, rows_in, thread)
                gather(targets.rows, emb_out, changes_out, centers, thread)
                pack_scores(p.near_cells, p.near_down, near, s.near_cells, run, width, 1)
                pack_down(p.around_down, around)
                combine(hidden, near_terms, around_down, strips, run, span, band, False, (emb_in, follow_in))
            else:
                gather(around, emb_out, changes_out, neighbors, thread)
                pack_along(p.around, around)
                pack_down(p.around_down, around)
                gather(hidden, emb_in, changes_in, rows_in, thread)
            # u = h L, from a packed copy of L.
            negate(hidden, negated)
            if linear is not None:
                if not fresh:
                    right(l_down, origin, L)
                    transpose(backwards, left(l_along, origin, L))
                    fresh = True
                product(mapped, left(hidden_along, origin, hidden), across, False)
            pack_along(p.u, mapped)
            pack_down(p.u_down, mapped)

            # Scores, loss, and gradients: first of the negatives, then of the positives.
            dots(far_scores, u, negative_rows, strips, run, each, full, (emb_out, upcoming))
            nats = errors(far_scores, far, -step, shift)
            pack_scores(p.far_cells, p.far_down, far_scores, flat(far_scores), run, each, 0)
            combine(grad, far_terms, negatives_down, strips, run, each, full, False, (emb_out, follow))
            combine_transposed(s.d_drawn, far_t, u_down, strips, run, each, full, False, nothing)
            if targets is not None:
                for b in range(batch):
                    targets.weights[b, 0] = counts[b] > 0
                center_dots(targets.scores, mapped, targets.rows)
                nats += errors(targets.scores, targets.weights, step, shift)
                center_gradients(grad, targets.d_rows, targets.scores, mapped, targets.rows)
            else:
                dots(scores, u, around_rows, strips, run, span, band, (emb_in, follow_in))
                nats += errors(s.scores_cells, s.near_cells, step, shift)
                pack_scores(p.near_cells, p.near_down, scores, s.scores_cells, run, width, 1)
                combine(grad, score_terms, around_down, strips, run, span, band, True, nothing)
                combine_transposed(s.d_around, scores_t, u_down, strips, run, span, band_t, False, nothing)
            if not abs(nats) < np.inf:
                stop[0] = NAN
                return
            # Backpropagate through L; every few batches, update it.
            if linear is not None:
                product(back, left(grad_along, origin, grad), backwards, False)
                if batches % every == due:
                    for b in range(batch):
                        for d in range(size):
                            hidden[b, d] *= ratio
                    down, h = right(grad_down, origin, grad), right(hidden_down, origin, hidden).T
                    product(linear.steps[:size], h[:size], down, True)
                    fresh &= racing > 1
            negate(back, negated)
            totals[0] += nats
            for b in range(batch):
                totals[1] += counts[b] > 0 if cbow else counts[b]
            # Update the rows.
            scatter(emb_out, changes_out, frozen_out, negatives, s.d_drawn, thread)
            if targets is not None:
                if mean and not divide:
                    for b in range(batch):
                        for d in range(size):
                            back[b, d] *= counts[b]
                level(s, window, stores.sizes)
                pack_down(p.u_down, back)
                combine_transposed(s.d_around, near_t, back_down, strips, run, span, band_t, False, nothing)
                scatter(emb_out, changes_out, frozen_out, centers, targets.d_rows, thread)
                scatter(emb_in, changes_in, frozen_in, rows_in, s.d_around, thread)
            else:
                scatter(emb_out, changes_out, frozen_out, neighbors, s.d_around, thread)
                scatter(emb_in, changes_in, frozen_in, rows_in, back, thread)
        if linear is not None:
            # Infrequent, because each write makes other threads reload L, and this one pack it.
            if racing > 1 and (batches % max(racing // 2 * every, SHARE_EVERY) == 0 or not more):
                take_steps(L, linear.steps)
                fresh = False

        if in_step is not None:
            if batches % in_step.round:
                continue
            if not meet(stores, linear, in_step, thread, more, stop):
                return
            fresh = False
        elif not more:
            return


@jit
def meet(stores, linear, in_step, thread, more, stop):
    """Synchronize all threads and merge their changes; returns whether any thread has text left.

    more  whether this thread has text left        stop  as in `train`; if it is set, the result is False
    """
    gate, active, _ = in_step
    threads = active.shape[0]
    active[thread, 0] = more
    if not wait_for_all(gate, threads, stop):
        return False
    remaining = 0
    for t in range(threads):
        remaining += active[t, 0]
    merge_replicas(stores, linear, thread)
    if not wait_for_all(gate, threads, stop):
        return False
    begin_round(stores, linear, thread)
    return remaining > 0


@jit
def merge_replicas(stores, linear, thread):
    """Merge the changes of all threads into the matrices, for the rows assigned to `thread`.

    Call once per thread after all have stopped, in any order or concurrently; then call `begin_round` likewise.
    """
    merge(stores.emb_in[0], stores.emb_in[1], thread)
    if not stores.tied:
        merge(stores.emb_out[0], stores.emb_out[1], thread)
    if linear is not None:
        merge_proj(linear.proj, linear.local, thread)


@jit
def begin_round(stores, linear, thread):
    """Discard the merged changes of `thread`, and copy the merged L to it."""
    forget(stores.emb_in[1], thread)
    forget(stores.emb_out[1], thread)
    if linear is not None:
        L = linear.local[thread]
        for i in range(L.shape[0]):
            for d in range(L.shape[1]):
                L[i, d] = linear.proj[i, d]


@jit
def transpose(X, Y):
    """X = Y^T"""
    for i in range(Y.shape[0]):
        for j in range(Y.shape[1]):
            X[j, i] = Y[i, j]


@jit
def take_steps(L, steps):
    """Add a thread's accumulated updates to L. Infrequent, because it invalidates L in the caches of other cores."""
    for i in range(L.shape[0]):
        for d in range(L.shape[1]):
            L[i, d] += steps[i, d]
            steps[i, d] = 0


@jit(relaxed=True)
def center_dots(scores, A, B):
    """scores[b, 0] = A[b] . B[b], for each center word and its output row."""
    for b in range(A.shape[0]):
        total = scores.dtype.type(0)
        for d in range(A.shape[1]):
            total += A[b, d] * B[b, d]
        scores[b, 0] = total


@jit(relaxed=True)
def center_gradients(grad, d_target, errors, mapped, target):
    """grad += g o and do = g u, for each center word and its output row o."""
    for b in range(grad.shape[0]):
        g = errors[b, 0]
        for d in range(grad.shape[1]):
            grad[b, d] += g * target[b, d]
            d_target[b, d] = g * mapped[b, d]


@jit(relaxed=True)
def errors(scores, weights, lr, shift):
    """Turn scores s into |lr| W (label - sigma(s + shift)) in place, with label 1 if lr > 0, else 0, and W >= 0.

    scores, weights  of the same number of elements, contiguous

    Returns the loss, the sum of -W log sigma(+-(s + shift)), in nats: infinite if a score exceeds DIVERGED, NaN if one
    is NaN.
    """
    kind = scores.dtype.type
    zero, one, certain, limit = kind(0), kind(1), kind(30), kind(DIVERGED)
    sign, rate, offset = kind(1 if lr > 0 else -1), kind(lr), kind(shift)
    nats = excess = zero
    s_flat, w_flat = flat(scores), flat(weights)
    for k in range(s_flat.size):
        s, weight = sign * (s_flat[k] + offset), w_flat[k]
        away = exp32(-min(abs(s), certain))
        likely = one / (one + away)
        nats += weight * (max(-s, zero) + log1p32(away))
        excess += weight * max(abs(s) - limit, zero)
        s_flat[k] = rate * weight * (away * likely if s > zero else likely)
    return nats if excess == 0 else np.inf
