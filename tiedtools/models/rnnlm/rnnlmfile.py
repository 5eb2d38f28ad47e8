"""Reading and writing of model files of Mikolov's rnnlm 0.4, text or binary.

header      lines `label: value`, the last one `Vocabulary:`
vocabulary  one line per word: ID, count, word, class
numbers     float32; in text one per line, each array after its label: the hidden layer when the file was written;
            weights into it, from words and from itself [M, V + M]; weights out of it, to words and to classes
            [V + C, M]; n-gram features
"""

import itertools
import math
import os
import re
import warnings

import numpy as np

from tiedtools.cores import available_cores
from tiedtools.errors import TiedtoolsError, quoted, unreadable
from tiedtools.files.modelfile import corrupt
from tiedtools.kernels.floats import format_numbers
from tiedtools.messages import log
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm, check_progress
from tiedtools.text.vocab import END, Vocab

VERSION = 10
HEADER_LINES = 100  # maximum, including blank lines; rnnlm writes 32
BLOCK = 1 << 16  # numbers formatted at a time
LONGEST = 16  # maximum bytes of a formatted number
UNKNOWN = -1e8  # log probability of a validation text that has not been scored
LABELS = "Hidden layer activation", "Weights 0->1", "Weights 1->2", "Direct connections"


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
    try:
        with open(path, "rb") as file:
            model = read_model(file, threads or available_cores())
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, TiedtoolsError) as error:
        raise corrupt(path, error, "rnnlm model") from None
    if empty := np.count_nonzero(np.diff(model.starts) == 0):
        log.warning(
            f"{path}: {empty} of {len(model.starts) - 1} classes have no words but, as in rnnlm, get probability,"
            " so that the probabilities of all words sum to less than 1; train with lower `classes`"
        )
    return model


def read_model(file, threads):
    header = read_header(file)

    def number(label, kind=whole):
        if label not in header:
            raise ValueError(f"missing line '{label}'")
        return kind(header[label])

    if number("version") != VERSION:
        raise ValueError(f"file version {number('version')}, expected {VERSION}, that of rnnlm 0.4")
    if number("compression layer size"):
        raise ValueError("it has a compression layer, which only rnnlm itself supports")
    V, M, C = number("vocabulary size"), number("hidden layer size"), number("class size")
    config = RnnlmConfig(
        hidden=M,
        classes=C,
        old_classes=bool(number("old classes")),
        independent=bool(number("independent sentences mode")),
        bptt=max(number("bptt") - 1, 0),
        bptt_block=number("bptt block"),
        direct=number("direct connections"),
        direct_order=number("direct order"),
        threads=threads,
    )
    if V < 1 or (number("input layer size"), number("output layer size")) != (V + M, V + C):
        raise ValueError("inconsistent sizes in the header")
    vocab, classes = read_vocab(file, V)
    if classes[0] or np.isin(np.diff(classes), (0, 1), invert=True).any() or classes[-1] >= C:
        raise ValueError("the words of a class are not contiguous in the vocabulary")

    shapes = (M,), (M, V + M), (V + C, M), (config.direct,)
    binary, sizes = number("file format"), [math.prod(shape) for shape in shapes]
    if binary not in (0, 1):
        raise ValueError(f"file format {binary}, expected 0 (text) or 1 (binary)")
    left = os.fstat(file.fileno()).st_size - file.tell()
    if left < sum(sizes) * (4 if binary else 2):
        raise ValueError(f"the file is too short for {sum(sizes):,} numbers")
    arrays = [read_numbers(file, label, n, binary).reshape(s) for label, n, s in zip(LABELS, sizes, shapes)]
    if file.read() if binary else file.read().strip():
        raise ValueError("extra data after the last array")
    start, incoming, outgoing, direct = arrays
    values = {"emb_in": incoming[:, :V].T, "hid": incoming[:, V:].T, "start_hid": start, "word_out": outgoing[:V]}
    values |= {"class_hid": outgoing[V:].T, **({"direct": direct} if config.direct else {})}
    model = Rnnlm(vocab, config, values, np.searchsorted(classes, np.arange(C + 1)))
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


def whole(text):
    """Parse an integer as C does; Python's int also accepts 1_000 and digits of other scripts."""
    if not re.fullmatch("[+-]?[0-9]{1,18}", text):
        raise ValueError(f"{quoted(text)} is not an integer")
    return int(text)


def read_header(file):
    """Read the header; return a dict: label -> value, both str."""
    header = {}
    for _ in range(HEADER_LINES):
        label, _, value = file.readline(1 << 12).decode("utf-8", "surrogateescape").partition(":")
        if label == "Vocabulary":
            return header
        header[label.strip()] = value.strip()
    raise ValueError("missing line 'Vocabulary:'")


def read_vocab(file, V):
    """Read the vocabulary; return a Vocab of V words and their classes, int64 [V]."""
    words, numbers = [], np.empty((min(V, os.fstat(file.fileno()).st_size), 2), np.int64)
    for k in range(V):
        try:
            _, count, word, label = file.readline().split(b"\t")
            words.append(word.decode())
            numbers[k] = whole(count.strip().decode()), whole(label.strip().decode())
        except ValueError:
            raise ValueError(f"vocabulary entry {k}: expected ID, count, word in UTF-8, and class") from None
    if words[0] != END:
        raise ValueError(f"vocabulary entry 0 is {quoted(words[0])}, expected {END}")
    return Vocab(words, numbers[:, 0].copy()).check(), numbers[:, 1]


def read_numbers(file, label, n, binary):
    """Read the next array; return n float32."""
    if binary:
        return np.frombuffer(file.read(4 * n), "<f4")
    while line := file.readline():
        if line.strip():
            break
    if line.strip() != f"{label}:".encode():
        raise ValueError(f"missing line '{label}:'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy only warns about text that is not a number
            numbers = np.fromfile(file, np.float32, n, sep=" ") if n else np.zeros(0, np.float32)
    except (DeprecationWarning, ValueError):
        raise ValueError(f"{label!r} contains text that is not a number") from None
    if len(numbers) < n:
        raise ValueError(f"{label!r}: expected {n:,} numbers, found {len(numbers):,}")
    return numbers
