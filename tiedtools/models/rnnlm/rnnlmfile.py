"""Model files of Mikolov's rnnlm 0.4, text or binary: writing, and reading of models. See vectors/rnnlmformat.py."""

import itertools

import numpy as np

from tiedtools.base.messages import log
from tiedtools.base.processor import available_cores
from tiedtools.kernels.text.floats import format_numbers
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm, check_progress
from tiedtools.vectors import rnnlmformat
from tiedtools.vectors.rnnlmformat import LABELS, VERSION

BLOCK = 1 << 16  # numbers formatted at a time
LONGEST = 16  # maximum bytes of a formatted number
UNKNOWN = -1e8  # log probability of a validation text that has not been scored


def holds(config):
    """Return whether the format can represent a model of this configuration."""
    return not (config.doc_dim or config.learn_start)


def write(file, model, binary=False):
    """Write an Rnnlm to a binary file object; text has all digits of a float32. Raises ValueError unless `holds`."""
    c, params, counts, progress = model.config, model.params, model.vocab.counts, model.progress
    if not holds(c):
        raise ValueError("rnnlm's model format supports neither document vectors nor a learned initial state")
    V, M, C = len(counts), c.hidden, len(model.starts) - 1
    alpha = progress.get("alpha", 0.1)
    file.write(
        f"version: {VERSION}\nfile format: {binary:d}\n\n"
        f"training data file: {progress.get('train', '-')}\nvalidation data file: {progress.get('valid', '-')}\n\n"
        f"last probability of validation data: {progress.get('llogp', UNKNOWN):f}\n"
        f"number of finished iterations: {progress.get('iter', 0)}\n"
        f"current position in training data: {progress.get('position', 0)}\n"
        "current probability of training data: 0\nsave after processing # words: 0\n"
        f"# of training words: {counts.sum()}\ninput layer size: {V + M}\nhidden layer size: {M}\n"
        f"compression layer size: 0\noutput layer size: {V + C}\n"
        f"direct connections: {c.direct}\ndirect order: {c.direct_order}\n"
        f"bptt: {c.bptt + 1 if c.bptt else 0}\nbptt block: {c.bptt_block}\n"
        f"vocabulary size: {V}\nclass size: {C}\nold classes: {c.old_classes:d}\n"
        f"independent sentences mode: {c.independent:d}\nstarting learning rate: {alpha:.9g}\n"
        f"current learning rate: {alpha:.9g}\nlearning rate decrease: {progress.get('halving', 0):d}\n"
        "\n\nVocabulary:\n".encode("utf-8", "surrogateescape")
    )
    words = zip(itertools.count(), counts.tolist(), model.vocab.words, model.class_of.tolist())
    file.write("".join(f"{k:6d}\t{count:10d}\t{word}\t{label}\n" for k, count, word, label in words).encode())
    arrays = [
        params["start_hid"],
        np.concatenate([params["emb_in"], params["hid"]]).T,
        np.concatenate([params["word_out"], params["class_hid"].T]),
        params["direct"] if c.direct else np.zeros(0),
    ]
    for label, array in zip(LABELS, arrays):
        numbers = np.ascontiguousarray(array, "<f4").reshape(-1)
        if binary:
            file.write(numbers.data)
            continue
        file.write(f"\n{label}:\n".encode())
        text = np.empty(LONGEST * min(BLOCK, numbers.size), np.uint8)
        while numbers.size:
            n, size = format_numbers(text, numbers[:BLOCK])
            file.write(text[:size].data)
            if n < min(BLOCK, numbers.size):
                file.write(b"%g\n" % numbers[n])
                n += 1
            numbers = numbers[n:]


def read(path, threads=None):
    """Read an Rnnlm from a file. threads: number of threads to use; None: all cores.

    Texts start from the hidden layer in the file, as in rnnlm's testing. The model's `progress` has iter, the epochs
    done; position, the words done of the next one; alpha; halving, whether alpha is being halved; llogp, base-10 log
    probability of the validation text; train and valid, paths (rnnlm continues with this `valid`).

    Raises TiedtoolsError if the file is corrupt or the model has a compression layer.
    """
    model = rnnlmformat.read(path, lambda contents: make(contents, threads or available_cores()))
    if empty := np.count_nonzero(np.diff(model.starts) == 0):
        log.warning(
            f"{path}: {empty} of {len(model.starts) - 1} classes have no words but, as in rnnlm, get probability,"
            " so that the probabilities of all words sum to less than 1; train with lower `classes`"
        )
    return model


def make(contents, threads):
    """Make the Rnnlm of a file's Contents."""
    number = contents.header.number
    config = RnnlmConfig(
        hidden=number("hidden layer size"),
        classes=number("class size"),
        old_classes=bool(number("old classes")),
        independent=bool(number("independent sentences mode")),
        bptt=max(number("bptt") - 1, 0),
        bptt_block=number("bptt block"),
        direct=number("direct connections"),
        direct_order=number("direct order"),
        threads=threads,
    )
    starts = np.searchsorted(contents.classes, np.arange(config.classes + 1))
    model = Rnnlm(contents.vocab, config, contents.arrays, starts)
    progress = {
        "iter": number("number of finished iterations"),
        "position": number("current position in training data"),
        "alpha": number("current learning rate", float),
        "halving": number("learning rate decrease"),
        "llogp": number("last probability of validation data", float),
        "train": number("training data file", str),
        "valid": number("validation data file", str),
    }
    check_progress(progress)
    model.progress = progress
    return model
