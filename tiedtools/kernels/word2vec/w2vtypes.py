"""Argument types of the word2vec kernels."""

from typing import Any, NamedTuple


class Text(NamedTuple):
    """A subsampled piece of text from sampling.subsample: int32 arrays of at least n elements."""

    tokens: Any
    begins: Any  # start of each token's sentence
    ends: Any  # end of each token's sentence


class Rules(NamedTuple):
    """Training rules."""

    window: int  # maximum distance of a context word
    radii: int  # the distance is drawn from the largest `radii` distances: `window` of them, or 1 for a fixed window
    negative: int  # negative samples per target
    cbow: bool  # otherwise skip-gram
    mean: bool  # CBOW: h is the mean of the context words' rows; otherwise their sum
    divide: bool  # CBOW: divide du by the number of context words (the true gradient of a mean) or not (word2vec.c)
    skip_input: bool  # exclude input words as targets and negatives of the prediction from them
    negated: int  # number of leading dimensions that fixed signs negate; otherwise 0
    shift: float  # constant added to the score of every target and negative


class Tree(NamedTuple):
    """Huffman tree for hierarchical softmax, see huffman.py; arrays of size 0 without it."""

    paths: Any
    codes: Any
    starts: Any
    first_node: int  # row of emb_out of the first inner node


class Matrices(NamedTuple):
    """Model parameters, with rows zero-padded to P by arrays.aligned."""

    emb_in: Any  # [V, P]
    emb_out: Any  # [rows, P]: rows 0 .. V - 1 for words, inner nodes from `first_node` on
    proj: Any  # [P, P], a learned L of tied+L; otherwise [0, 0]
    frozen_in: Any  # uint8 [V]: rows of emb_in that are never changed; [0]: none
    frozen_out: Any
    sizes: Any = None  # CBOW: float32 [V], weights of the words in a mean: how many rows each is a mean of; None: 1


class ExactSpace(NamedTuple):
    """Scratch of a thread with separate negatives per target. Without L, mapped is hidden, and back is grad."""

    hidden: Any  # [batch, P] h; with L, batch is a multiple of tiles.ROWS
    mapped: Any  # [batch, P] u
    grad: Any  # [batch, P] du
    back: Any  # [batch, P] dh
    inputs: Any  # int32 [batch, 1 + 2 * window]: number of words, words
    targets: Any  # the same for targets
    rows: Any  # int32 [longest path + 1 + negative]


class Stores(NamedTuple):
    """emb_in and emb_out as stores (see store.py); `tied`: they are the same."""

    emb_in: Any
    emb_out: Any
    tied: bool
    sizes: Any = None  # as in Matrices
    numbers: Any = None  # int32 [V]: row of emb_in of each word that occurs; None: the word is the row


class Linear(NamedTuple):
    """Arrays for a learned L of tied+L."""

    proj: Any  # [P, P]
    local: Any  # [threads, P, P]; with one thread, proj itself
    steps: Any  # [P, P], accumulated updates of L of one of several Hogwild threads; otherwise L itself
    transposed: Any  # [P, P], scratch for L^T; None with bfloat16
    bf16: Any  # scratch for hidden, grad, and L along rows; L, L^T, hidden, and grad down columns: see bfloat16.py


class Targets(NamedTuple):
    """CBOW only: output rows of the center words, their gradients, weights, and scores."""

    rows: Any  # [batch, P]
    d_rows: Any  # [batch, P]
    weights: Any  # [batch, 1]
    scores: Any  # [batch, 1]


class InStep(NamedTuple):
    """Synchronization of threads with --deterministic."""

    gate: Any  # int64 [16], see barrier.py
    active: Any  # int64 [threads, 8], column 0: whether a thread has text left
    round: int  # batches between synchronizations


class Pairs(NamedTuple):
    """Operands packed as bfloat16 (see bfloat16.py), or None in float32. For CBOW, `near` is of weights, not scores."""

    u: Any  # along rows
    u_down: Any  # down columns; later dh
    drawn: Any
    drawn_down: Any
    around: Any
    around_down: Any
    far: Any  # scores of negatives
    far_cells: Any  # the same, one-dimensional
    far_down: Any
    near: Any  # a view of near_cells, as in SharedSpace
    near_cells: Any
    near_down: Any


class SharedSpace(NamedTuple):
    """Scratch of a thread with shared negatives.

    Without L, mapped is hidden and back is grad; with L, back is mapped. `near` and `scores` are views of their cells:
    a row's cells in the band are its own, those outside may belong to the band of another row.
    """

    hidden: Any  # [batch, P]
    mapped: Any
    grad: Any
    back: Any
    around: Any  # [strips * span, P]
    d_around: Any
    drawn: Any  # [strips * each, P]
    d_drawn: Any
    near: Any  # [batch, span]: 1 or, for the mean of CBOW, its weights for words in the context window
    scores: Any
    near_cells: Any  # all cells of `near`
    scores_cells: Any
    band: Any  # int32 [batch / ROWS, 2]: the nonzero columns of `near`, from the first up to the second number
    band_t: Any  # int32 [strips * span / ROWS, 2]: its nonzero rows
    far: Any  # [batch, each]
    far_scores: Any
    counts: Any  # [batch]
    centers: Any  # int32 [batch]
    follow: Any
    follow_in: Any  # int32 [batch], rows of emb_in of `follow`
    neighbors: Any  # int32 [strips * span]
    rows_in: Any  # int32, rows of emb_in of `centers` or, for CBOW, `neighbors`
    negatives: Any  # int32 [strips * each]
    upcoming: Any
    cursor: Any  # int64 [strips]
    pairs: Any  # Pairs
