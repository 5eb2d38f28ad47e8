"""Read model files of Mikolov's rnnlm 0.4, text or binary, into arrays.

header      lines `label: value`, the last one `Vocabulary:`
vocabulary  one line per word: ID, count, word, class
numbers     float32; in text one per line, each array after its label: the last activation of the hidden layer [M];
            its input weights, from words and from itself [M, V + M]; its output weights, to words and to classes
            [V + C, M]; n-gram features
"""

import math
import os
import re
import warnings
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError, quoted, unreadable
from tiedtools.files.modelfile import corrupt
from tiedtools.text.vocab import END, Vocab

VERSION = 10
HEADER_LINES = 100  # maximum, including blank lines; rnnlm writes 32
LABELS = "Hidden layer activation", "Weights 0->1", "Weights 1->2", "Direct connections"


def as_integer(text: str) -> int:
    """Parse an integer as C does; Python's int also accepts 1_000 and digits of other scripts."""
    if not re.fullmatch("[+-]?[0-9]{1,18}", text):
        raise ValueError(f"{quoted(text)} is not an integer")
    return int(text)


class Header(dict[str, str]):
    """The header of a file: label -> value, both str."""

    def number(self, label: str, kind: Callable[[str], Any] = as_integer) -> Any:
        """Return kind(value). Raises ValueError if the line is missing."""
        if label not in self:
            raise ValueError(f"missing line '{label}'")
        return kind(self[label])


class Contents(NamedTuple):
    """The contents of a file.

    vocab    Vocab of V words
    classes  class of each word, int64 [V], ascending from 0 without gaps
    arrays   dict of float32 arrays by the names of an Rnnlm's parameters: start_hid [M], emb_in [V, M], hid [M, M],
             word_out [V, M], class_hid [M, C], and direct, if there are n-gram features
    """

    header: Header
    vocab: Vocab
    classes: np.ndarray
    arrays: dict[str, np.ndarray]


def read(path: str, make: Any = lambda contents: contents) -> Any:
    """Read a file; return make(its Contents).

    Raises TiedtoolsError if the file is corrupt, the model has a compression layer, or `make` raises a ValueError.
    """
    try:
        with open(path, "rb") as file:
            return make(read_contents(file))
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, TiedtoolsError) as error:
        raise corrupt(path, error, "rnnlm model") from None


def read_contents(file: BinaryIO) -> Contents:
    """Read the Contents of an open file. Raises ValueError if it is corrupt."""
    header = read_header(file)
    number = header.number
    if number("version") != VERSION:
        raise ValueError(f"file version {number('version')}, expected {VERSION}, that of rnnlm 0.4")
    if number("compression layer size"):
        raise ValueError("it has a compression layer, which only rnnlm itself supports")
    V, M, C, direct = map(number, ("vocabulary size", "hidden layer size", "class size", "direct connections"))
    if min(V, M, C) < 1 or direct < 0 or (number("input layer size"), number("output layer size")) != (V + M, V + C):
        raise ValueError("inconsistent sizes in the header")
    vocab, classes = read_vocab(file, V)
    if classes[0] or np.isin(np.diff(classes), (0, 1), invert=True).any() or classes[-1] >= C:
        raise ValueError("the words of a class are not contiguous in the vocabulary")

    shapes = (M,), (M, V + M), (V + C, M), (direct,)
    binary, sizes = number("file format"), [math.prod(shape) for shape in shapes]
    if binary not in (0, 1):
        raise ValueError(f"file format {binary}, expected 0 (text) or 1 (binary)")
    if os.fstat(file.fileno()).st_size - file.tell() < sum(sizes) * (4 if binary else 2):
        raise ValueError(f"the file is too short for {sum(sizes):,} numbers")
    arrays = [read_numbers(file, label, n, binary).reshape(s) for label, n, s in zip(LABELS, sizes, shapes)]
    if file.read() if binary else file.read().strip():
        raise ValueError("extra data after the last array")
    start, incoming, outgoing, features = arrays
    named = {"emb_in": incoming[:, :V].T, "hid": incoming[:, V:].T, "start_hid": start, "word_out": outgoing[:V]}
    named |= {"class_hid": outgoing[V:].T, **({"direct": features} if direct else {})}
    return Contents(header, vocab, classes, named)


def read_header(file: BinaryIO) -> Header:
    """Read the Header."""
    header = Header()
    for _ in range(HEADER_LINES):
        line = file.readline(1 << 12).decode("utf-8", "surrogateescape")
        if line.rstrip() == "Vocabulary:":
            return header
        label, _, value = line.partition(":")
        header[label.strip()] = value.strip()
    raise ValueError("missing line 'Vocabulary:'")


def read_vocab(file: BinaryIO, V: int) -> tuple[Vocab, np.ndarray]:
    """Read the vocabulary; return a Vocab of V words and their classes, int64 [V]."""
    words, numbers = [], np.empty((min(V, os.fstat(file.fileno()).st_size), 2), np.int64)
    for k in range(V):
        try:
            _, count, word, label = file.readline().split(b"\t")
            words.append(word.decode())
            numbers[k] = as_integer(count.strip().decode()), as_integer(label.strip().decode())
        except ValueError:
            raise ValueError(f"vocabulary entry {k}: expected ID, count, word in UTF-8, and class") from None
    if words[0] != END:
        raise ValueError(f"vocabulary entry 0 is {quoted(words[0])}, expected {END}")
    return Vocab(words, numbers[:, 0].copy()).check(), numbers[:, 1]


def read_numbers(file: BinaryIO, label: str, n: int, binary: int) -> np.ndarray:
    """Read the next array; return n float32."""
    if binary:
        return np.frombuffer(file.read(4 * n), "<f4")
    file.seek(-1, os.SEEK_CUR)
    apart = file.read(1).isspace()  # not a part of the last number
    line = next((line for line in file if line.strip()), b"")
    if not apart or line.strip() != f"{label}:".encode():
        raise ValueError(f"missing line '{label}:'")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy only warns about text that is not a number
            start = file.tell()
            numbers = np.fromfile(file, np.float32, n, sep=" ") if n else np.zeros(0, np.float32)
        length = file.tell() - start
        file.seek(start)
        if re.search(rb"[eE](?!\S)", file.read(length)):  # NumPy takes 1.5e, cut short, for 1.5
            raise ValueError
    except (DeprecationWarning, ValueError):
        raise ValueError(f"{label!r} contains text that is not a number") from None
    if len(numbers) < n:
        raise ValueError(f"{label!r}: expected {n:,} numbers, found {len(numbers):,}")
    return numbers
