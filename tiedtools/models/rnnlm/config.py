"""Configuration of a class-based RNN language model. Imports nothing heavy."""

import dataclasses
from collections.abc import Iterator
from typing import Any

from tiedtools.base.errors import Contradiction
from tiedtools.base.settings import SEEDS, THREADS, Checked, LmReading, Mistake, Range, checked, setting, with_reading
from tiedtools.training.schedules import Training

START_DOC = ("mean", "sum", "first")
MAX_ORDER = 20  # n-gram order, as in rnnlm; repeats kernels/rnnlm/ngrams.py, so that this module does not import Numba
MAX_STEPS = 10_000  # steps of backpropagation through time; each thread stores the activations of every step
MILLIONS = 10**4  # largest number of n-gram weights, in millions
SEGMENT = 512  # words of a sentence stored for backpropagation
ENDLESS = 2**31 - 1  # number of epochs: until validation no longer improves
DEFAULTS = dict(schedule="halving", lr=0.1, epochs=ENDLESS, clip=0.0, eval_batch=1)


@dataclasses.dataclass(frozen=True)
class RnnlmConfig(Checked):
    """Configuration of a class-based RNN language model (Mikolov et al. 2011) with the document vector of Rei 2015.

    hidden      M, size of the hidden layer and of word vectors
    classes     C, maximum number of word classes; fewer if the vocabulary does not fill them
    start_doc   with "sum" and doc_lr = lr, the initial vector would become the vector at the end of the sentence, which
                would amount to no reset
    sentences   backpropagate through whole sentences, up to 512 words; implies `independent`
    beta        every 10th word, w -= lr beta w, for the weights of the classes, of the words in the word's class,
                and the weights that errors pass through; n-gram weights shrink whenever they are used
    direct      number of weights of n-gram features (not millions), shared by hashing; 0: no features

    Raises TiedtoolsError for invalid combinations.
    """

    hidden: int = setting(30, Range(1, 10**5))(
        "Hidden units, and dimension of the word vectors.  [default: 30; 100 with `doc_dim`]"
    )
    classes: int = setting(100, Range(1, 10**6))("Maximum number of word classes.")
    old_classes: bool = setting(False)("Form classes by counts instead of square roots of counts; slower.")
    doc_dim: int = setting(0, Range(0, 10**5), metavar="D")("Dimension of the document vector (Rei 2015); 0 disables.")
    doc_lr: float = setting(0.1, Range(0))("Learning rate of the document vector, in training and testing.")
    start_doc: str = setting("mean", choices=START_DOC)(
        "Gradient of the initial document vector: mean or sum of the gradients in a line, or the first."
    )
    sentences: bool = setting(False, off=True)(
        "Rei's training: independent lines, shuffled each epoch, with BPTT to the start of the line and a learned"
        " initial state.  [default: only with `doc_dim`]"
    )
    independent: bool = setting(False)("Reset the hidden state at the end of each line.")
    learn_start: bool = setting(False, hidden=True)("Learn the initial state of sentences.")
    bptt: int = setting(0, Range(0, MAX_STEPS))(
        "BPTT steps back from the first word of a block; 0: one step, from every word."
    )
    bptt_block: int = setting(10, Range(1, MAX_STEPS))("With `bptt`, number of words per block.")
    defer: bool = setting(False)(
        "With `bptt` or `sentences`, update output weights only at the end of a block or sentence."
    )
    beta: float = setting(1e-7, Range(0, 1))(
        "L2 regularization strength. Below 3e-8 / `lr`, as by default, it has no effect in float32."
    )
    cutoff: float = setting(15.0, Range(0))("Clip each hidden-layer error to +- this value; 0 disables.")
    direct: int = setting(0, Range(0, MILLIONS * 10**6), metavar="MILLIONS")(
        "Size of the hash table of direct (maximum-entropy) n-gram weights, in millions; 0 disables."
    )
    direct_order: int = setting(3, Range(1, MAX_ORDER))("Maximum order of the n-gram features.")
    shuffle: bool = setting(False, hidden=True)("Reorder the sentences in every epoch.")
    seed: int = setting(1, SEEDS)("Random seed.")
    threads: int = setting(1, THREADS)(
        "Number of training threads; more than 1 trains asynchronously (Hogwild): faster, not reproducible."
    )
    dtype: str = setting("float32", choices=("float32", "float64"), hidden=True)("Type of the parameters.")

    def __post_init__(self) -> None:
        if self.sentences:
            object.__setattr__(self, "independent", True)
        super().__post_init__()

    def mistakes(self) -> Iterator[Mistake]:
        yield "`direct` must be 0 or at least 2, since classes and words need separate weights", self.direct == 1
        problem = "an initial state can be learned only for independent sentences; add `independent`"
        yield problem, self.learn_start and not self.independent
        yield "only independent sentences can be shuffled; add `independent`", self.shuffle and not self.independent

    @property
    def block(self) -> int:
        """Number of words between two updates of the recurrent weights."""
        return SEGMENT if self.sentences else self.bptt_block if self.bptt else 1

    @property
    def reach(self) -> int:
        """Number of steps that errors are propagated back beyond a block."""
        return 0 if self.sentences else max(self.bptt - 1, 0)

    # Window and batch size of `scoring.evaluate`.
    steps, batch = 8192, 1


def configure(direct: float = 0.0, size: int | None = None, **options: Any) -> list[Any]:
    """Return [RnnlmConfig, Training, dict of settings for reading texts], complete and checked; None: default.

    direct     size of the hash table of n-gram weights, in millions
    size       the same as `hidden`: default 30; 100 with a document vector
    sentences  default: only with a document vector; they are shuffled, and their initial state is learned
    epochs     default: until validation no longer improves
    """
    direct = checked("direct", direct, float, Range(0, MILLIONS))
    if size is not None:
        if "hidden" in options:
            raise Contradiction("`size` and `hidden` are the same; give one of them")
        options["hidden"] = checked("size", size, int, Range(1, 10**5))
    document = bool(options.get("doc_dim"))
    sentences = options.get("sentences")
    sentences = document if sentences is None else sentences
    implied = dict(hidden=100 if document else 30, learn_start=sentences, shuffle=sentences)
    given = {name: value for name, value in options.items() if value is not None}
    settings = {**DEFAULTS, **implied, **given, "sentences": sentences, "direct": round(direct * 10**6)}
    return with_reading(settings, RnnlmConfig, Training, LmReading)
