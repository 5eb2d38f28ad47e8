"""Argument types of the RNN language model kernels: weights, workspace, and training rules."""

from typing import Any, NamedTuple


class Weights(NamedTuple):
    """Weights for M hidden units, V words, C classes, and a document vector of D; rows are padded to P, Pc, Px."""

    emb: Any  # [V, P]
    hid: Any  # [M, P]
    class_hid: Any  # [M, Pc]
    class_doc: Any  # [D, Pc]
    word_out: Any  # [V, Px]: each row is [weights of the state | weights of the document vector]
    start_hid: Any  # [M]
    start_doc: Any  # [D]
    direct: Any  # [features]
    class_of: Any  # int32 [V]
    bounds: Any  # int64 [C + 1]: the words of class k are bounds[k] .. bounds[k + 1] - 1
    restart: Any  # [M]: the initial state of sentences


class Workspace(NamedTuple):
    """Arrays of one thread, or of all along a first axis; `segment` is the number of words between updates of hid."""

    H: Any  # [top + segment + ROWS, P]: states; rows before `top` belong to words before the segment
    A: Any  # the same, times the learning rate
    input_errors: Any  # the same shape: errors of the states before the sigmoid
    G: Any  # [segment + ROWS, P]: errors of the states of the segment
    Z: Any  # [segment + ROWS, Pc]: scores of classes
    E: Any  # the same shape: errors of Z
    X: Any  # [late, Px]: inputs of the word softmax; late = segment if output weights are updated at its end, else 1
    F: Any  # [late, largest class]: errors of the word scores
    scores: Any  # [1, the longest row + DOTS]: scores of words
    B: Any  # [1, Px]: error of X
    gram: Any  # [BLOCK, BLOCK]
    slots: Any  # int64 [2, order]: slots of n-gram features
    words: Any  # int32 [top + segment + ROWS]: input word of each state
    doc: Any  # [5, Px]: document vector; sum of its errors; vector times learning rate; first error; error count
    hid: Any  # [M, P], or [0, P] with one thread: a thread's copies of the weights that every word updates
    class_hid: Any  # [M, Pc] or [0, Pc]
    class_doc: Any  # [D, Pc] or [0, Pc]
    hid_then: Any  # the copies as of the last synchronization
    class_hid_then: Any
    class_doc_then: Any
    counts: Any  # int64 [8]: number of words before the segment in its text or sentence; number of words read


class Rules(NamedTuple):
    """Training rules, see RnnlmConfig. The first four have the dtype of the weights."""

    lr: float
    doc_lr: float
    shrink: float  # 1 - lr * beta, the factor of L2 regularization
    cutoff: float
    order: int
    defer: bool
    independent: bool
    learn_start: bool
    start_doc: int  # MEAN, SUM or FIRST
    segment: int
    reach: int


DOC, DOC_SUM, DOC_SCALED, DOC_FIRST, DOC_COUNT = range(5)  # rows of doc
MEAN, SUM, FIRST = range(3)
