"""What the kernels of the RNN language model share: its weights, workspace and rules."""

from typing import Any, NamedTuple


class Weights(NamedTuple):
    """Of M hidden units, V words, C classes, a document vector of D; rows are filled up to P, Pc, Px numbers."""

    emb: Any  # [V, P]
    hid: Any  # [M, P]
    class_hid: Any  # [M, Pc]
    class_doc: Any  # [D, Pc]
    word_out: Any  # [V, Px]: each word's row is [from the state | from the document vector]
    start_hid: Any  # [M]
    start_doc: Any  # [D]
    direct: Any  # [features]
    class_of: Any  # int32 [V]
    bounds: Any  # int64 [C + 1]: the words of class k are bounds[k] .. bounds[k + 1] - 1
    restart: Any  # [M]: the state that sentences start from


class Workspace(NamedTuple):
    """Of one thread, or with a first axis of threads; `segment` is the number of words between two updates of hid."""

    H: Any  # [top + segment + ROWS, P]: states; those before row `top` are of the words before the segment
    A: Any  # the same times the learning rate
    input_errors: Any  # the same shape: errors of the states before the sigmoid
    G: Any  # [segment + ROWS, P]: errors of the segment's states
    Z: Any  # [segment + ROWS, Pc]: scores of classes
    E: Any  # the same shape: errors of these
    X: Any  # [late, Px]: inputs of the softmax over words; late = segment where output weights wait for its end, else 1
    F: Any  # [late, largest class]: errors of its scores
    scores: Any  # [1, the longest of all, + DOTS]: scores of words
    B: Any  # [1, Px]: what F sends back
    gram: Any  # [BLOCK, BLOCK]
    found: Any  # int64 [2, order]: slots of n-gram features
    words: Any  # int32 [top + segment + ROWS]: what each state has read
    doc: Any  # [5, Px]: the document vector; its errors' sum; the vector times the rate; first error; their number
    hid: Any  # [M, P], or [0, P] for a thread on its own: its copies of the weights that each word changes
    class_hid: Any  # [M, Pc] or [0, Pc]
    class_doc: Any  # [D, Pc] or [0, Pc]
    hid_then: Any  # as they were when they were last put together with those of the others
    class_hid_then: Any
    class_doc_then: Any
    counts: Any  # int64 [8]: words before the segment in its text or sentence; words read


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


DOC, DOC_SUM, DOC_SCALED, DOC_FIRST, DOC_COUNT = range(5)  # rows of doc
BEHIND, READ = range(2)  # of counts
MEAN, SUM, FIRST = range(3)
