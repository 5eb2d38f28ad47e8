"""The class-based RNN language model, trained and scored word by word.

A thread processes text in segments: blocks of words, or sentences. The recurrent weights are constant within a segment,
so that all states of a segment are computed first (elman.py), then the predictions (classes.py), then the backward
pass.
"""

from tiedtools.kernels.base.barrier import acquire, partition, release
from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.tiles import ROWS
from tiedtools.kernels.rnnlm.classes import distribution, predict
from tiedtools.kernels.rnnlm.elman import backward, copy, forward, scale
from tiedtools.kernels.rnnlm.rnnlmtypes import DOC, DOC_COUNT, DOC_FIRST, DOC_SUM, FIRST, MEAN, Weights, Workspace

PRECEDING, READ = range(2)  # indices into Workspace.counts
SYNC_EVERY = 256  # words between synchronizations of dense weights; concurrent writes to them would stall the cores


@jit
def run(worker, logs, hidden, text, targets, cuts, state, weights, space, rules, learning):
    """Predict targets[cuts[r, 0] .. cuts[r, 1] - 1] from the words of `text` there, for each row r; optionally train.

    logs      float64 [rows, words]: log probabilities, each before the update        text, targets  int32
    hidden    [rows, words, M]: hidden states, not computed if words is 0
    cuts      int64 [rows, 2]
    state     used and updated unless `learning`: h [rows, M], d [rows, D], last int32 [rows, order], the preceding
              words, most recent first, and unmoved int32 [rows, 1], whether d must still be updated for the next word.
              If the last target of a row is -1, d is updated with the first word of the next call
    learning  update the weights; thread r continues from the state in its workspace
    """
    h, d, last, unmoved = state
    local_space = part(space, worker[0])
    top = local_space.H.shape[0] - rules.segment - ROWS
    first, end = partition(worker, cuts.shape[0])
    local = weights
    if learning and worker[1] > 1:
        local = thread_weights(weights, local_space)
        merge_changes(worker, weights, local_space)
    for row in range(first, end):
        i, n = cuts[row, 0], cuts[row, 1] - cuts[row, 0]
        ids, labels, logs_of_row = text[i : i + n], targets[i : i + n], logs[row, :n]
        if not learning:
            enter(local_space, h[row], d[row], last[row], top)
            if unmoved[row, 0] and d.shape[1] and ids[0] >= 0:
                predict(min(1, n), top - 1, ids, logs_of_row, weights, local_space, rules, learning)
            unmoved[row, 0] = labels[n - 1] < 0
        walk(worker, logs_of_row, hidden[row], ids, labels, local, weights, local_space, rules, learning)
        if not learning:
            leave(local_space, h[row], d[row], last[row], top)


@jit
def enter(space, h, d, last, top):
    """Load a state into a workspace."""
    copy(space.H[top - 1, : h.size], h)
    copy(space.doc[DOC, : d.size], d)
    copy(space.words[top - last.size : top], last[::-1])


@jit
def leave(space, h, d, last, top):
    """Store the state of a workspace."""
    copy(h, space.H[top - 1])
    copy(d, space.doc[DOC])
    copy(last[::-1], space.words[top - last.size : top])


@jit
def distributions(worker, logs, h, d, last, weights, space, rules):
    """Compute log probabilities of all next words, logs float64 [B, V]; h, d, last as for `run`."""
    local_space = part(space, worker[0])
    top = local_space.H.shape[0] - rules.segment - ROWS
    begin, end = partition(worker, logs.shape[0])
    for b in range(begin, end):
        enter(local_space, h[b], d[b], last[b], top)
        distribution(logs[b], top - 1, weights, local_space, rules)


@jit
def part(spaces, k):
    """Return the workspace of thread k."""
    p = spaces
    states = p.H[k], p.A[k], p.input_errors[k], p.G[k]
    outputs = p.Z[k], p.E[k], p.X[k], p.F[k], p.scores[k], p.B[k], p.gram[k]
    copies = p.hid[k], p.class_hid[k], p.class_doc[k], p.hid_then[k], p.class_hid_then[k], p.class_doc_then[k]
    return Workspace(*states, *outputs, p.slots[k], p.words[k], p.doc[k], *copies, p.counts[k])


@jit
def thread_weights(weights, space):
    """Return the weights for one of several training threads: copies of the weights that every word updates."""
    w = weights
    tables = w.class_of, w.bounds, w.restart
    return Weights(
        w.emb, space.hid, space.class_hid, space.class_doc, w.word_out, w.start_hid, w.start_doc, w.direct, *tables
    )


@jit
def merge_changes(worker, weights, space):
    """Add a thread's changes since the last synchronization to the shared weights, and copy these to the thread."""
    acquire(worker)
    add_changes(weights.hid, space.hid, space.hid_then)
    add_changes(weights.class_hid, space.class_hid, space.class_hid_then)
    add_changes(weights.class_doc, space.class_doc, space.class_doc_then)
    release(worker)


@jit
def add_changes(shared, local, then):
    """shared += local - then; local = then = shared."""
    for i in range(then.shape[0]):
        a, b, c = shared[i], local[i], then[i]
        for j in range(c.size):
            a[j] += b[j] - c[j]
        copy(b, a)
        copy(c, a)


@jit
def walk(worker, logs, hidden, ids, targets, weights, shared, space, rules, learning):
    """Process a text in segments. With several threads, `shared` are the weights that all of them share."""
    hid, start_hid, H, A, words, counts = weights.hid, weights.start_hid, space.H, space.A, space.words, space.counts
    top, D = H.shape[0] - rules.segment - ROWS, weights.start_doc.size
    i = since = 0
    while i < ids.size:
        # The segment: words i .. j - 1.
        if rules.independent and ids[i] == 0:
            start(weights, space, top)
        j = i + 1
        while j - i < rules.segment and j < ids.size and not (rules.independent and ids[j] == 0):
            j += 1
        T, labels = j - i, targets[i:j]
        for t in range(T):
            words[top + t] = ids[i + t]
        # States, and their products with the learning rate; then predictions.
        forward(H, words, weights.emb, hid, top, T)
        if hidden.size:
            for t in range(T):
                copy(hidden[i + t], H[top + t])
        reach = min(rules.reach, counts[PRECEDING])
        if learning:
            for r in range(top - reach - 1, top + T):
                copy(A[r], H[r])
                scale(A[r], A.shape[1], rules.lr)
        predict(T, top, labels, logs[i:j], weights, space, rules, learning)
        # Backpropagation through time, the initial document vector, and L2 regularization.
        if learning:
            learned = start_hid[: hid.shape[0] if rules.learn_start and reach == counts[PRECEDING] else 0]
            backward(space, weights.emb, hid, learned, top, T, reach, rules.cutoff, rules.lr)
            if D and rules.independent and labels[T - 1] == 0:
                move_start(weights.start_doc, space.doc, D, rules)
            tenths = (counts[READ] + T) // 10 - counts[READ] // 10
            if rules.shrink < 1 and tenths:
                decay(ids[i:j], labels, tenths, counts[READ], weights, rules)
        # The last states and words become the history of the next segment.
        counts[PRECEDING] += T
        counts[READ] += T
        for r in range(top):
            copy(H[r], H[r + T])
            words[r] = words[r + T]
        i = j
        since += T
        if learning and worker[1] > 1 and (since >= SYNC_EVERY or i == ids.size):
            merge_changes(worker, shared, space)
            since = 0


@jit
def start(weights, space, top):
    """Reset the workspace to the initial state of a sentence."""
    copy(space.H[top - 1, : weights.restart.size], weights.restart)
    copy(space.doc[DOC, : weights.start_doc.size], weights.start_doc)
    space.doc[DOC_SUM:] = 0
    space.words[:top] = 0
    space.counts[PRECEDING] = 0


@jit
def move_start(start_doc, doc, D, rules):
    """Update the initial document vector at the end of a document."""
    n = doc[DOC_COUNT, 0]
    if n > 0:
        for j in range(D):
            error = doc[DOC_FIRST if rules.start_doc == FIRST else DOC_SUM, j]
            start_doc[j] += rules.lr * (error / n if rules.start_doc == MEAN else error)


@jit
def decay(read, targets, tenths, before, weights, rules):
    """L2 regularization as in rnnlm: at every tenth word, shrink the weights used for it, forward or backward."""
    emb, word_out, bounds = weights.emb, weights.word_out, weights.bounds
    factor = rules.shrink
    for _ in range(tenths - 1):
        factor *= rules.shrink
    for matrix in (weights.hid, weights.class_hid, weights.class_doc):
        for i in range(matrix.shape[0]):
            scale(matrix[i], matrix.shape[1], factor)
    for t in range(read.size):
        if read[t] >= 0:
            scale(emb[read[t]], emb.shape[1], factor)
        if (before + t + 1) % 10 == 0 and targets[t] >= 0:
            k = weights.class_of[targets[t]]
            for word in range(bounds[k], bounds[k + 1]):
                scale(word_out[word], word_out.shape[1], rules.shrink)
