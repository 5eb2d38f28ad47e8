"""Configuration of a class-based RNN language model, and its word classes. Imports nothing heavier than NumPy."""

import dataclasses
from typing import ClassVar

import numpy as np

from tiedtools.errors import Checked

START_DOC = ("mean", "sum", "first")
MAX_ORDER = 20  # of n-gram features, as in rnnlm and, for a configuration without Numba again, kernels/ngrams.py
MAX_STEPS = 10_000  # of backpropagation through time, for each of which a thread keeps what it needs
SEGMENT = 512  # words of a sentence that are kept for backpropagation


@dataclasses.dataclass(frozen=True)
class RnnlmConfig(Checked):
    """Mikolov et al. 2011 with the document vector of Rei 2015.

    hidden       M, width of the hidden layer and of word vectors
    classes      C; fewer where the vocabulary fills no more
    old_classes  classes of equal share of the words' counts instead of their square roots
    doc_dim      D, width of the document vector; 0: none
    doc_lr       its learning rate, in training and in testing
    start_doc    gradient of the vector that documents start from: the "mean" of errors into the document vector over
                 a sentence, their "sum", or the "first" alone. With doc_lr = lr, "sum" would put the start where the
                 sentence has ended: no reset at all
    sentences    Rei's training: through whole sentences, at most 512 words, back to their start; `independent` then
    independent  the state is forgotten at each line's end
    learn_start  the state that sentences start from is learned
    bptt         steps that errors go back from the first of a block of `bptt_block` words; 0: one step for each word
    defer        output weights change at the end of a block or sentence instead of after each word
    beta         L2: each 10th word w -= lr beta w, of classes, of the word's class and of what errors go through
    cutoff       limit of each error into the hidden layer, to either side; 0: none
    direct       weights of n-gram features, shared by hashing; 0: no features
    direct_order n-grams of up to so many words, with the predicted one
    shuffle      the order of sentences changes from epoch to epoch
    seed, threads, dtype

    Raises TiedtoolsError for combinations that make no sense.
    """

    hidden: int = 30
    classes: int = 100
    old_classes: bool = False
    doc_dim: int = 0
    doc_lr: float = 0.1
    start_doc: str = "mean"
    sentences: bool = False
    independent: bool = False
    learn_start: bool = False
    bptt: int = 0
    bptt_block: int = 10
    defer: bool = False
    beta: float = 1e-7
    cutoff: float = 15.0
    direct: int = 0
    direct_order: int = 3
    shuffle: bool = False
    seed: int = 1
    threads: int = 1
    dtype: str = "float32"

    choices: ClassVar[dict] = {"start_doc": START_DOC, "dtype": ("float32", "float64")}

    def __post_init__(self):
        if self.sentences:
            object.__setattr__(self, "independent", True)
        super().__post_init__()

    def mistakes(self):
        """See Checked."""
        yield f"`direct_order` is from 1 to {MAX_ORDER}", not 1 <= self.direct_order <= MAX_ORDER
        yield "`direct`: at least two weights, one for classes and one for words", self.direct == 1
        yield "`hidden`, `classes` and `bptt_block` are at least 1", min(self.hidden, self.classes, self.bptt_block) < 1
        yield f"`bptt` and `bptt_block` are at most {MAX_STEPS}", max(self.bptt, self.bptt_block) > MAX_STEPS
        yield (
            "a start state can be learned only where sentences start: add `independent`",
            self.learn_start and not self.independent,
        )
        yield "only independent sentences can change places: add `independent`", self.shuffle and not self.independent

    @property
    def block(self):
        """Words between two updates of the recurrent weights."""
        return SEGMENT if self.sentences else self.bptt_block if self.bptt else 1

    @property
    def reach(self):
        """Steps that errors go back beyond a block."""
        return 0 if self.sentences else max(self.bptt - 1, 0)

    # What `scoring.evaluate` takes at a time.
    steps, batch = 8192, 1


def word_classes(counts, n, old=False):
    """Bounds int64 [C + 1] of at most `n` classes: class k has the words bounds[k] .. bounds[k + 1] - 1.

    As in rnnlm: words in the order of their ids fill class after class, each with 1 / n of the sum of the words'
    square roots of counts (of counts where `old`), and the word that passes a bound is still in the class before.
    """
    mass = counts / counts.sum()
    mass = np.cumsum(mass if old else np.sqrt(mass) / np.sqrt(mass).sum())
    bounds, k = [0], 0
    for word in range(len(counts) - 1):
        if k < n - 1 and min(mass[word], 1) > (k + 1) / n:
            k += 1
            bounds.append(word + 1)
    return np.array([*bounds, len(counts)], np.int64)


def expected_class_size(counts, bounds):
    """E[O]: words that are scored within a class, on average over a text with these counts."""
    mass = np.add.reduceat(counts, bounds[:-1])
    return float(mass @ np.diff(bounds) / mass.sum())
