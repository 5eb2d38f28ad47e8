"""Class-factored softmax (over classes, then over the words of one class) with an online document vector.

Mikolov et al. 2011, "Extensions of recurrent neural network language model"; Rei 2015, section 3. At step t,

    z = h_t W_c + d_t W_dc        P(class) = softmax(z)        e = one-hot(target's class) - P
    s = [h_t | d_t] W_o^T, rows of the class's words            f: the same for words
    d_{t+1} = d_t + eta (e W_dc^T + f W_do)

The weights are updated after each word, and the next word sees the update. W_c, however, is written only once per block
of words; until then its current value is W_c + sum_s lr h_s^T e_s over the block's words so far, so that

    z_t = h_t W_c + sum_{s<t} (lr h_t . h_s) e_s        error of h_t = W_c e_t + sum_{s<t} lr (e_t . e_s) h_s

and a block needs one matrix product with W_c. The result is that of online learning, up to the order of summation.
"""

import math

import numpy as np

from tiedtools.kernels.base.jit import jit
from tiedtools.kernels.base.product import product
from tiedtools.kernels.base.scalar import exp
from tiedtools.kernels.base.tiles import EVERYTHING, ROWS, dots, row_dots
from tiedtools.kernels.rnnlm import ngrams
from tiedtools.kernels.rnnlm.elman import copy, limit, scale
from tiedtools.kernels.rnnlm.rnnlmtypes import DOC, DOC_COUNT, DOC_FIRST, DOC_SCALED, DOC_SUM
from tiedtools.kernels.rnnlm.rows import learn_rows

BLOCK = 32  # words; at this size, sums over word pairs cost less than reading W_c for each word
NONE = np.zeros(0, np.int32)


@jit
def predict(T, first, targets, logs, weights, space, rules, learning):
    """Compute log probabilities, logs float64 [T], of targets int32 [T] (-1: ignored) from rows `first` .. of H.

    If `learning`, also update the output weights and write the errors of the states to G.
    """
    class_hid, class_doc, word_out, direct = weights.class_hid, weights.class_doc, weights.word_out, weights.direct
    H, A, input_errors, G, Z, E, X, F, scores, B, gram, slots, words, doc = space[:14]
    bounds, lr, M, D = weights.bounds, rules.lr, class_hid.shape[0], class_doc.shape[0]
    C = bounds.size - 1
    late = learning and rules.defer
    at_once = learning and not late
    step = T if late else BLOCK
    for begin in range(0, T, step):
        end = min(T, begin + step)
        # Scores of the classes of a block, without its updates.
        rows, n = first + begin, end - begin
        product(Z[begin:end], H[rows : rows + n, :M], class_hid, False)
        if at_once and n > 1:
            gram_matrix(gram, A[rows:], H[rows:], n)
        for t in range(begin, end):
            # Add the updates of the block so far, and the term of the document vector.
            if at_once and t > begin:
                product(Z[t : t + 1], gram[t - begin : t - begin + 1, : t - begin], E[begin:t], True)
            if D:
                product(Z[t : t + 1], doc[:1, :D], class_doc, True)
            g, e = G[t], E[t]
            logs[t] = 0
            if targets[t] < 0:
                e[:] = 0
                g[:] = 0
                continue
            # The class, and its log probability.
            k = weights.class_of[targets[t]]
            low, at = bounds[k], t if late else 0
            size = bounds[k + 1] - low
            z, s, f, x = Z[t], scores[0], F[at], X[at]
            class_features = ngrams.add(z, direct, slots[0], words, first + t, rules.order, -1, C)
            logs[t] = softmax_errors(e, z, C, k)
            # The word in its class: log probability, update of its weights, and B, the error of x.
            copy(x[:M], H[first + t])
            copy(x[M : M + D], doc[DOC])
            if size > 1:
                row_dots(scores, X[at : at + 1], word_out, low, size)
                word_features = ngrams.add(s, direct, slots[1], words, first + t, rules.order, k, size)
                logs[t] += softmax_errors(f, s, size, targets[t] - low)
                if at_once:
                    ngrams.learn(direct, f, slots[1], word_features, size, lr, rules.shrink)
                    learn_rows(B, f, X, word_out[low : low + size], lr)
                elif learning or D:
                    product(B, F[at : at + 1, :size], word_out[low : low + size], False)
            else:
                B[0] = 0
            if at_once:  # only now, because words and classes may share slots
                ngrams.learn(direct, e, slots[0], class_features, C, lr, rules.shrink)
            if learning:
                copy(g, B[0])
            # The document vector.
            if D:
                row_dots(scores, E[t : t + 1], class_doc, 0, D)
                if at_once:
                    for j in range(D):
                        doc[DOC_SCALED, j] = lr * doc[DOC, j]
                    product(class_doc, doc[DOC_SCALED : DOC_SCALED + 1, :D].T, E[t : t + 1], True)
                move(doc, scores[0], B[0], M, D, rules.doc_lr)
        # Errors of the states of the block, and the update of class_hid.
        if learning:
            tall, wide = -(-n // ROWS) * ROWS, -(-M // ROWS) * ROWS
            back = input_errors[rows:]
            dots(back, E[begin:], class_hid, 1, tall, wide, EVERYTHING, (E, NONE))
            for t in range(n):
                for j in range(M):
                    G[begin + t, j] += back[t, j]
                for j in range(M, wide):  # padding stays 0
                    back[t, j] = 0
            if at_once:
                if n > 1:
                    gram_matrix(gram, E[begin:], E[begin:], n)
                    for i in range(n):
                        for j in range(i, n):
                            gram[i, j] = 0
                    product(G[begin:end], gram[:n, :n], A[rows : rows + n], True)
                product(class_hid, A[rows : rows + n, :M].T, E[begin:end], True)
            for t in range(begin, end):
                limit(G[t], M, rules.cutoff)
    if late:
        learn_late(T, first, targets, weights, space, rules)


@jit
def distribution(logs, row, weights, space, rules):
    """Compute log probabilities of all words, logs float64 [V], given the state in row `row` of H."""
    class_hid, class_doc, direct, bounds = weights.class_hid, weights.class_doc, weights.direct, weights.bounds
    H, _, _, _, Z, E, X, F, scores, _, _, slots, words, doc = space[:14]
    M, D, C = class_hid.shape[0], class_doc.shape[0], bounds.size - 1
    z, s = Z[0], scores[0]
    product(Z[:1], H[row : row + 1, :M], class_hid, False)
    if D:
        product(Z[:1], doc[:1, :D], class_doc, True)
    copy(X[0, :M], H[row])
    copy(X[0, M : M + D], doc[DOC])
    ngrams.add(z, direct, slots[0], words, row, rules.order, -1, C)
    class_sum = z[0] - softmax_errors(E[0], z, C, 0)  # log sum exp(z); E and F are scratch
    for k in range(C):
        low = bounds[k]
        size = bounds[k + 1] - low
        row_dots(scores, X[:1], weights.word_out, low, size)
        ngrams.add(s, direct, slots[0], words, row, rules.order, k, size)
        both = class_sum + (s[0] - softmax_errors(F[0], s, size, 0))
        for j in range(size):
            logs[low + j] = z[k] + s[j] - both


@jit(relaxed=True)
def softmax_errors(e, z, n, target):
    """e = one-hot(target) - softmax(z); returns the log probability of the target."""
    top = z[0]
    for j in range(n):
        top = max(top, z[j])
    total = top - top
    for j in range(n):
        e[j] = exp(z[j] - top)
    for j in range(n):
        total += e[j]
    scale = -e.dtype.type(1) / total
    for j in range(n):
        e[j] *= scale
    e[target] += 1
    return np.float64(z[target]) - np.float64(top) - math.log(np.float64(total))


@jit
def move(doc, by_class, by_word, M, D, doc_lr):
    """Update the document vector, and the sum, first value, and count of its errors since the start of the sentence."""
    d, total, first = doc[DOC], doc[DOC_SUM], doc[DOC_FIRST]
    for j in range(D):
        by_class[j] += by_word[M + j]
    for j in range(D):
        d[j] += doc_lr * by_class[j]
    for j in range(D):
        total[j] += by_class[j]
    if doc[DOC_COUNT, 0] == 0:
        for j in range(D):
            first[j] = by_class[j]
    doc[DOC_COUNT, 0] += 1


@jit
def gram_matrix(gram, A, B, n):
    """gram = A B^T for the first n rows, rounded up to whole tiles."""
    tall = -(-n // ROWS) * ROWS
    dots(gram, A, B, 1, tall, tall, EVERYTHING, (A, NONE))


@jit
def learn_late(T, first, targets, weights, space, rules):
    """Update all output weights after a segment in which they were held fixed (Rules.defer)."""
    class_hid, class_doc, word_out, direct = weights.class_hid, weights.class_doc, weights.word_out, weights.direct
    E, X, F, slots, words, lr, shrink = space.E, space.X, space.F, space.slots, space.words, rules.lr, rules.shrink
    bounds, M, D = weights.bounds, class_hid.shape[0], class_doc.shape[0]
    C = bounds.size - 1
    for t in range(T):
        if targets[t] >= 0:
            k = weights.class_of[targets[t]]
            low, size = bounds[k], bounds[k + 1] - bounds[k]
            if size > 1:
                features = ngrams.find_slots(slots[1], words, first + t, rules.order, direct.size, k)
                ngrams.learn(direct, F[t], slots[1], features, size, lr, shrink)
                scale(F[t], size, lr)
                product(word_out[low : low + size], F[t : t + 1, :size].T, X[t : t + 1], True)
            features = ngrams.find_slots(slots[0], words, first + t, rules.order, direct.size, -1)
            ngrams.learn(direct, E[t], slots[0], features, C, lr, shrink)
        scale(E[t], C, lr)
    product(class_hid, space.H[first : first + T, :M].T, E[:T], True)
    if D:
        product(class_doc, X[:T, M : M + D].T, E[:T], True)
