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
    stores, linear, targets, in_step, totals, stop, space, thread, racing, text, noise, n, rules, lr, lr_proj, seed
):
    """Train on one subsampled piece of text. As w2v.train where not said otherwise.

    stores, linear, targets, in_step, space, text, rules  see w2vtypes.py: Stores, Linear, Targets, InStep, SharedSpace,
                Text, Rules; linear, targets and in_step may be None, and are then not compiled
    thread      number of this thread among those in step;  racing  how many threads race
    """
    s = space
    hidden, mapped, grad, back, around, drawn = s.hidden, s.mapped, s.grad, s.back, s.around, s.drawn
    near, scores, far, far_scores, counts, cursor = s.near, s.scores, s.far, s.far_scores, s.counts, s.cursor
    centres, follow, neighbours, negatives, upcoming = s.centres, s.follow, s.neighbours, s.negatives, s.upcoming
    near_t, scores_t, far_t = near.T, scores.T, far_scores.T
    (emb_in, changes_in), (emb_out, changes_out) = stores.emb_in, stores.emb_out
    window, negative, cbow, divide, skip_input = rules
    if linear is not None:
        hidden_along, grad_along, l_along, l_down, transposed_down, hidden_down, grad_down = linear.bf16
        L, origin = linear.local[thread], (0, 0)
        across, backwards = paired(l_down, L), paired(transposed_down, linear.transposed)
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
            near, far, counts, centres, neighbours, cursor, text, n, rules, counter
        )  # fmt: skip
        batches += 1
        if more:
            exclude(far, near, counts, negatives, centres, neighbours, run, negative, cbow, skip_input)
            for r in range(strips):
                for i in range(run):
                    follow[r * run + i] = text.tokens[min(cursor[r] + window + i, n - 1)]
            gather(drawn, emb_out, changes_out, negatives, thread)
            if targets is not None:
                gather(around, emb_in, changes_in, neighbours, thread)
                gather(targets.rows, emb_out, changes_out, centres, thread)
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
            combine_transposed(s.d_drawn, far_t, mapped, strips, run, each, each, 0, False, nothing)
            if targets is not None:
                for b in range(batch):
                    targets.own[b, 0] = counts[b] > 0
                own_dots(targets.scores, mapped, targets.rows)
                nats += errors(targets.scores, targets.own, step)
                own_gradients(grad, targets.d_rows, targets.scores, mapped, targets.rows)
            else:
                dots(scores, mapped, around, strips, run, span, width, 1, (emb_in, follow))
                nats += errors(scores, near, step)
                combine(grad, scores, around, strips, run, span, width, 1, True, nothing)
                combine_transposed(s.d_around, scores_t, mapped, strips, run, span, width, 1, False, nothing)
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
                    combine(linear.steps, h, down, 1, size, down.shape[0], down.shape[0], 0, True, nothing)
                    fresh = False
            totals[0] += nats
            for b in range(batch):
                totals[1] += counts[b] > 0 if cbow else counts[b]
            scatter(emb_out, changes_out, negatives, s.d_drawn, thread)
            if targets is not None:
                if not divide:
                    for b in range(batch):
                        for d in range(size):
                            back[b, d] *= counts[b]
                combine_transposed(s.d_around, near_t, back, strips, run, span, width, 1, False, nothing)
                scatter(emb_out, changes_out, centres, targets.d_rows, thread)
                scatter(emb_in, changes_in, neighbours, s.d_around, thread)
            else:
                scatter(emb_out, changes_out, neighbours, s.d_around, thread)
                scatter(emb_in, changes_in, centres, back, thread)
        if linear is not None:
            # Seldom, since all others then fetch L anew: together some two times as often as one thread alone.
            if racing > 1 and (batches % (racing // 2 * every) == 0 or not more):
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
    """Wait for all threads in step, and put together what they have changed; returns whether any has text left.

    more  whether this one has        stop  as of `train`: where it is set, the answer is no
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
    """Merge the changes of all threads into the matrices, in the rows that fall to `thread`: once for each thread, when
    all have stopped, in any order or at once; then `begin_round`, likewise.
    """
    merge(*stores.emb_in, thread)
    if not stores.tied:
        merge(*stores.emb_out, thread)
    if linear is not None:
        merge_proj(linear.proj, linear.local, thread)


@jit
def begin_round(stores, linear, thread):
    """Begin without changes, from the merged matrices."""
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
def windows(near, far, counts, centres, neighbours, cursor, text, n, rules, counter):
    """Choose the centres of a batch and their windows; returns (counter of random numbers, whether there are any).

    A row without a context, or beyond the text, has word 0 and weights 0.
    """
    tokens, begins, ends = text
    window, negative, cbow, _, skip_input = rules
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
