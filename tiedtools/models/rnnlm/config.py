"""Configuration of a class-based RNN language model, and its word classes. Imports nothing heavier than NumPy."""

import dataclasses
from typing import Any, ClassVar

from tiedtools.base.errors import Contradiction
from tiedtools.base.settings import SEEDS, THREADS, Checked, LmReading, Range, checked, with_reading
from tiedtools.training.schedules import Training

START_DOC = ("mean", "sum", "first")
MAX_ORDER = 20  # n-gram order, as in rnnlm; repeats kernels/rnnlm/ngrams.py, so that this module does not import Numba
MAX_STEPS = 10_000  # steps of backpropagation through time; each thread stores the activations of every step
MILLIONS = 10**4  # largest number of n-gram weights
SEGMENT = 512  # words of a sentence stored for backpropagation


@dataclasses.dataclass(frozen=True)
class RnnlmConfig(Checked):
    """Configuration of a class-based RNN language model (Mikolov et al. 2011) with the document vector of Rei 2015.

    hidden       M, size of the hidden layer and of word vectors
    classes      C, maximum number of word classes; fewer if the vocabulary does not fill them
    old_classes  balance classes by word counts instead of their square roots
    doc_dim      D, dimension of the document vector; 0: none
    doc_lr       learning rate of the document vector, in training and in testing
    start_doc    gradient of the initial document vector: the "mean" of the errors into the document vector over a
                 sentence, their "sum", or only the "first". With doc_lr = lr, "sum" would move the initial vector to
                 the one at the end of the sentence, so that it would not be reset at all
    sentences    train as Rei does: backpropagate through whole sentences, up to 512 words; implies `independent`
    independent  reset the state at each line end
    learn_start  learn the initial state of sentences
    bptt         steps of backpropagation beyond the first word of a block of `bptt_block` words; 0: one step per word
    defer        update output weights at the end of a block or sentence instead of after each word
    beta         L2 regularization: every 10th word, w -= lr beta w, for the weights of the classes, of the words in the
                 word's class, and those that errors pass through
    cutoff       limit of the magnitude of each error into the hidden layer; 0: none
    direct       number of weights of n-gram features, shared by hashing; 0: no features
    direct_order maximum n-gram length in words, including the predicted one
    shuffle      reorder the sentences in every epoch
    seed, threads, dtype
                 random seed, number of threads, and type of the parameters

    Raises TiedtoolsError for invalid combinations.
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
    ranges: ClassVar[dict] = {
        "hidden": Range(1, 10**5),
        "classes": Range(1, 10**6),
        "doc_dim": Range(0, 10**5),
        "doc_lr": Range(0),
        "bptt": Range(0, MAX_STEPS),
        "bptt_block": Range(1, MAX_STEPS),
        "beta": Range(0, 1),
        "cutoff": Range(0),
        "direct": Range(0, MILLIONS * 10**6),
        "direct_order": Range(1, MAX_ORDER),
        "seed": SEEDS,
        "threads": THREADS,
    }

    def __post_init__(self):
        if self.sentences:
            object.__setattr__(self, "independent", True)
        super().__post_init__()

    def mistakes(self):
        """Yield contradictions between settings; see Checked."""
        yield "`direct` must be 0 or at least 2, since classes and words need separate weights", self.direct == 1
        yield (
            "an initial state can be learned only for independent sentences; add `independent`",
            self.learn_start and not self.independent,
        )
        yield "only independent sentences can be shuffled; add `independent`", self.shuffle and not self.independent

    @property
    def block(self):
        """Number of words between two updates of the recurrent weights."""
        return SEGMENT if self.sentences else self.bptt_block if self.bptt else 1

    @property
    def reach(self):
        """Number of steps that errors are propagated back beyond a block."""
        return 0 if self.sentences else max(self.bptt - 1, 0)

    # Window and batch size of `scoring.evaluate`.
    steps, batch = 8192, 1


ENDLESS = 2**31 - 1  # number of epochs: until validation no longer improves
TRAINING = dict(schedule="halving", lr=0.1, epochs=ENDLESS, clip=0.0, eval_batch=1)


def configure(direct: float = 0.0, size: int | None = None, **given: Any) -> list[Any]:
    """Return [RnnlmConfig, Training, dict of settings for reading texts].

    direct     size of the hash table of n-gram weights, in millions
    size       the same as `hidden`: default 30; 100 with a document vector
    sentences  default: only with a document vector; they are shuffled, and their initial state is learned
    epochs     default: until validation no longer improves
    """
    direct = checked("direct", direct, float, Range(0, MILLIONS))
    if size is not None:
        if "hidden" in given:
            raise Contradiction("`size` and `hidden` are the same; give one of them")
        given["hidden"] = checked("size", size, int, RnnlmConfig.ranges["hidden"])
    document = bool(given.get("doc_dim"))
    sentences = given.get("sentences")
    sentences = document if sentences is None else sentences
    own = dict(sentences=sentences, learn_start=sentences, shuffle=sentences, direct=round(direct * 10**6))
    settings = {"hidden": 100 if document else 30, **TRAINING, **given, **own}
    return with_reading(settings, (RnnlmConfig, Training), LmReading, ("size",))
