"""What the kernels of word2vec are given, by name."""

from typing import Any, NamedTuple


class Text(NamedTuple):
    """A subsampled piece of text, as sampling.subsample makes it: int32 [n or more] each."""

    tokens: Any
    begins: Any  # of each token's sentence
    ends: Any


class Rules(NamedTuple):
    """How to train."""

    window: int  # greatest distance of a context word
    negative: int  # samples for each target
    cbow: bool  # or skip-gram
    divide: bool  # CBOW: divide du by the number of context words (the true gradient) or not (word2vec.c)
    skip_input: bool  # an input word is never target or negative of the same prediction


class Tree(NamedTuple):
    """Of hierarchical softmax, see huffman.py; without it, arrays of size 0."""

    paths: Any
    codes: Any
    starts: Any
    first_node: int  # row of emb_out


class Matrices(NamedTuple):
    """The parameters. P: size as tiles.aligned pads it, with zeros."""

    emb_in: Any  # [V, P]
    emb_out: Any  # [rows, P]: rows 0 .. V - 1 for words, inner nodes from `first_node` on
    proj: Any  # [P, P] L of tied+L, or [0, 0]


class OwnSpace(NamedTuple):
    """Scratch of a thread whose targets have negatives of their own. Without L mapped is hidden, and back is grad."""

    hidden: Any  # [batch, P] h; with L, batch is a multiple of tiles.ROWS
    mapped: Any  # [batch, P] u
    grad: Any  # [batch, P] du
    back: Any  # [batch, P] dh
    inputs: Any  # int32 [batch, 1 + 2 * window]: number of words, words
    targets: Any  # likewise
    rows: Any  # int32 [longest path + 1 + negative]


class Stores(NamedTuple):
    """emb_in and emb_out as stores (see store.py); tied: they are one."""

    emb_in: Any
    emb_out: Any
    tied: bool


class Linear(NamedTuple):
    """L, where there is one."""

    proj: Any  # [P, P]
    local: Any  # [threads, P, P], proj itself for a thread on its own
    steps: Any  # [P, P], what L is to be moved by, of one thread of several that race; else L itself
    transposed: Any  # [P, P], space for L^T; None in bfloat16
    bf16: Any  # space for hidden and grad along, L along, L and L^T down, hidden and grad down: see bfloat16.py


class Targets(NamedTuple):
    """Of CBOW, the output rows of the centres."""

    rows: Any  # [batch, P]
    d_rows: Any  # [batch, P]
    own: Any  # [batch, 1]
    scores: Any  # [batch, 1]


class InStep(NamedTuple):
    """Of threads that wait for each other."""

    gate: Any  # int64 [16], see barrier.py
    active: Any  # int64 [threads, 8], column 0: whether a thread has text left
    round: int  # batches between two waits


class SharedSpace(NamedTuple):
    """Scratch of a thread whose centres share negatives. Without L mapped is hidden and back is grad; with L back is
    mapped.
    """

    hidden: Any  # [batch, P]
    mapped: Any
    grad: Any
    back: Any
    around: Any  # [strips * span, P]
    d_around: Any
    drawn: Any  # [strips * each, P]
    d_drawn: Any
    near: Any  # [batch, span]
    scores: Any
    far: Any  # [batch, each]
    far_scores: Any
    counts: Any  # [batch]
    centres: Any  # int32 [batch]
    follow: Any
    neighbours: Any  # int32 [strips * span]
    negatives: Any  # int32 [strips * each]
    upcoming: Any
    cursor: Any  # int64 [strips]
