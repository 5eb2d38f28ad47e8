"""The class-based RNN language model, trained and scored word by word.

A thread walks through text in segments: blocks of words, or sentences. In a segment the recurrent weights stay as they are,
so that all its states come first (elman.py), then the predictions (classes.py), then the way back through time.

weights  emb [V, P], hid [M, P], class_hid [M, Pc], class_doc [D, Pc], word_out [V, Px], start_hid [P], start_doc [Pd],
         direct [features], or [0]
tables   class of each word, int32 [V]; bounds of the classes' words, int64 [C + 1]
rules    see Rules
scratch  of each thread, here with a first axis of threads:
         H states, A the same times the learning rate, R errors before the sigmoid [top + segment + ROWS, P]; the rows before
         `top` are the states before the segment
         G errors of states [segment + ROWS, P], Z scores and E errors of classes [segment + ROWS, Pc]
         X inputs of the softmax over words [at, Px], F its errors [at, largest class], at = segment where all output
         weights wait for its end, otherwise 1
         S scores [1, largest class or D, + DOTS], B [1, Px], gram [BLOCK, BLOCK], found int64 [2, order]
         words  int32 [top + segment], what each state has read
         doc    [5, Px]: the document vector, its errors' sum, times the learning rate, its first error, their number
         counts int64 [8]: words before the segment in its text or sentence, words so far
"""

from typing import NamedTuple

from tiedtools.kernels.barrier import share
from tiedtools.kernels.classes import distribution, predict
from tiedtools.kernels.elman import backward, copy, forward, scale
from tiedtools.kernels.jit import jit
from tiedtools.kernels.tiles import ROWS

BEHIND, READ = range(2)  # of counts
MEAN, SUM, FIRST = range(3)


class Rules(NamedTuple):
    """How to train: see RnnlmConfig. The first four are numbers of the weights' type."""

    lr: float
    doc_lr: float
    kept: float  # 1 - lr * beta
    cutoff: float
    order: int
    defer: bool
    independent: bool
    learn_start: bool
    start_doc: int  # MEAN, SUM or FIRST
    segment: int
    reach: int


@jit
def run(place, logs, text, targets, cuts, state, weights, tables, scratch, restart, rules, learning):
    """Predict targets[cuts[r, 0] .. cuts[r, 1] - 1] after the words of `text` there, for each row r, and learn from them.

    logs     float64 [rows, words]: log probabilities, each before the weights move        text, targets  int32
    cuts     int64 [rows, 2]        restart  [M], the state that sentences start from
    learning thread r goes on from where its scratch stands; otherwise the state, which becomes what it is at the end, is
             h [rows, M], d [rows, D], last int32 [rows, order], the last words, the newest first, and unmoved int32
             [rows, 1], whether d is still to move for the next word. Where a target is -1, d moves for the word read next
    """
    h, d, last, unmoved = state
    own = part(scratch, place[0])
    top = own[0].shape[0] - rules.segment - ROWS
    first, end = share(place, cuts.shape[0])
    for row in range(first, end):
        i, n = cuts[row, 0], cuts[row, 1] - cuts[row, 0]
        ids, told, found = text[i : i + n], targets[i : i + n], logs[row, :n]
        if not learning:
            enter(own, h[row], d[row], last[row], top)
            if unmoved[row, 0] and d.shape[1] and ids[0] >= 0:
                predict(min(1, n), top - 1, ids, found, weights, tables, own, rules, learning)
            unmoved[row, 0] = told[n - 1] < 0
        walk(found, ids, told, weights, tables, own, restart, rules, learning)
        if not learning:
            leave(own, h[row], d[row], last[row], top)


@jit
def enter(scratch, h, d, last, top):
    """Take up a text where a state says that it stands."""
    H, words, doc = scratch[0], scratch[12], scratch[13]
    for j in range(h.size):
        H[top - 1, j] = h[j]
    for j in range(d.size):
        doc[0, j] = d[j]
    for j in range(last.size):
        words[top - 1 - j] = last[j]


@jit
def leave(scratch, h, d, last, top):
    """The state where a text stands."""
    H, words, doc = scratch[0], scratch[12], scratch[13]
    for j in range(h.size):
        h[j] = H[top - 1, j]
    for j in range(d.size):
        d[j] = doc[0, j]
    for j in range(last.size):
        last[j] = words[top - 1 - j]


@jit
def distributions(place, logs, h, d, last, weights, tables, scratch, rules):
    """Log probabilities, logs float64 [B, V], of all words that may come next; h, d, last as for `score`."""
    own = part(scratch, place[0])
    top = own[0].shape[0] - rules.segment - ROWS
    begin, end = share(place, logs.shape[0])
    for b in range(begin, end):
        enter(own, h[b], d[b], last[b], top)
        distribution(logs[b], top - 1, weights, tables, own, rules)


@jit
def part(scratch, k):
    """The scratch of thread k."""
    H, A, R, G, Z, E, X, F, S, B, gram, found, words, doc, counts = scratch
    first = H[k], A[k], R[k], G[k], Z[k], E[k], X[k], F[k]
    return *first, S[k], B[k], gram[k], found[k], words[k], doc[k], counts[k]


@jit
def walk(logs, ids, targets, weights, tables, scratch, restart, rules, learning):
    """Go through a text in segments."""
    emb, hid, _, class_doc, _, start_hid, start_doc, _ = weights
    H, A, R, G, _, _, _, _, S, _, _, _, words, doc, counts = scratch
    top, D = H.shape[0] - rules.segment - ROWS, class_doc.shape[0]
    i = 0
    while i < ids.size:
        if rules.independent and ids[i] == 0:
            start(weights, scratch, restart, rules)
        j = i + 1
        while j - i < rules.segment and j < ids.size and not (rules.independent and ids[j] == 0):
            j += 1
        T, told = j - i, targets[i:j]
        for t in range(T):
            words[top + t] = ids[i + t]
        forward(H, words, emb, hid, top, T)
        reach = min(rules.reach, counts[BEHIND])
        if learning:
            for r in range(top - reach - 1, top + T):
                copy(A[r], H[r])
                scale(A[r], A.shape[1], rules.lr)
        predict(T, top, told, logs[i:j], weights, tables, scratch, rules, learning)
        if learning:
            learned = start_hid[: hid.shape[0] if rules.learn_start and reach == counts[BEHIND] else 0]
            backward(R, H, A, G, S, words, emb, hid, learned, top, T, reach, rules.cutoff, rules.lr)
            if D and rules.independent and told[T - 1] == 0:
                move_start(start_doc, doc, D, rules)
            tenths = (counts[READ] + T) // 10 - counts[READ] // 10
            if rules.kept < 1 and tenths:
                decay(ids[i:j], told, tenths, counts[READ], weights, tables, rules)
        counts[BEHIND] += T
        counts[READ] += T
        for r in range(top):
            copy(H[r], H[r + T])
            words[r] = words[r + T]
        i = j


@jit
def start(weights, scratch, restart, rules):
    """What a sentence knows before its first word: nothing."""
    H, words, doc, counts = scratch[0], scratch[12], scratch[13], scratch[14]
    top = H.shape[0] - rules.segment - ROWS
    start_doc = weights[6]
    for j in range(restart.size):
        H[top - 1, j] = restart[j]
    for j in range(start_doc.size):
        doc[0, j] = start_doc[j]
    doc[1:] = 0
    words[:top] = 0
    counts[BEHIND] = 0


@jit
def move_start(start_doc, doc, D, rules):
    """The step of the vector that documents start from, at the end of one."""
    if doc[4, 0] > 0:
        for j in range(D):
            error = doc[3, j] if rules.start_doc == FIRST else doc[1, j]
            start_doc[j] += rules.lr * (error / doc[4, 0] if rules.start_doc == MEAN else error)


@jit
def decay(read, targets, tenths, before, weights, tables, rules):
    """L2 as in rnnlm: with each tenth word, of all weights that this word, or the way back from it, has touched."""
    emb, hid, class_hid, class_doc, word_out, _, _, _ = weights
    class_of, bounds = tables
    kept = hid[0, 0] * 0 + 1
    for _ in range(tenths):
        kept *= rules.kept
    if kept == 1:
        return
    for matrix in (hid, class_hid, class_doc):
        for i in range(matrix.shape[0]):
            scale(matrix[i], matrix.shape[1], kept)
    for t in range(read.size):
        if read[t] >= 0:
            scale(emb[read[t]], emb.shape[1], kept)
        if (before + t + 1) % 10 == 0 and targets[t] >= 0:
            k = class_of[targets[t]]
            for word in range(bounds[k], bounds[k + 1]):
                scale(word_out[word], word_out.shape[1], rules.kept)
