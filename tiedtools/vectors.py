"""Words and their vectors: one row of a matrix each, in and out of the usual files."""

import os
import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tiedtools import modelfile, vectorformats
from tiedtools.errors import TiedtoolsError
from tiedtools.output import open_output
from tiedtools.text import open_source

FORMATS = ("text", "binary", "glove", "npy")
MODEL = re.compile(r"(?P<path>.*\.npz)(:(?P<which>in|out))?", re.DOTALL)

MATRICES = "emb_in", "emb_out", "word_out"  # of model files; see docs/formats.md


@dataclass(eq=False)
class Vectors:
    """`words`: V of str; `matrix` (V, E) float32, row r the vector of words[r]. Words may repeat."""

    words: list
    matrix: np.ndarray

    def __post_init__(self):
        self.matrix = np.asarray(self.matrix, np.float32)
        if self.matrix.ndim != 2 or len(self.matrix) != len(self.words):
            raise ValueError(f"{len(self.words)} words do not go with a matrix of shape {self.matrix.shape}")

    @cached_property
    def index(self):
        """dict: word -> row; the first one of a word that repeats."""
        index = {}
        for row, word in enumerate(self.words):
            index.setdefault(word, row)
        return index

    @property
    def dim(self):
        return self.matrix.shape[1]

    def __len__(self):
        return len(self.words)

    def __contains__(self, word):
        return word in self.index

    def __getitem__(self, word):
        """The word's vector, a view (E,); KeyError where there is none."""
        return self.matrix[self.index[word]]

    @classmethod
    def of(cls, words, which, emb_in, emb_out):
        """Input vectors, output vectors, their sum, or both side by side: `which` is "in", "out", "sum" or "concat"."""
        if which == "concat":
            return cls(words, np.concatenate([emb_in, emb_out], 1))
        return cls(words, emb_in + emb_out if which == "sum" else emb_out if which == "out" else emb_in)

    @classmethod
    def read(cls, path, format=None, errors="strict"):
        """Read vectors from `path`; `-` is standard input, and .gz .bz2 .xz .zst are decompressed.

        A model file gives its input vectors, and "MODEL.npz:out" its output vectors, "MODEL.npz:in" again the input's.

        format  one of FORMATS; None: .npy by its name, the rest by their first lines. A first line of just two whole
                numbers is taken for word2vec's header.
        errors  what to do with a word that is not UTF-8: "strict", "replace" or "ignore", as in bytes.decode

        Raises TiedtoolsError naming the path and line or row: nothing is repaired or left out in silence.
        """
        path = os.fspath(path)
        if format not in (None, *FORMATS):
            raise ValueError(f"format {format!r} is none of {FORMATS}")
        if model := MODEL.fullmatch(path):
            return cls(*read_model(model["path"], model["which"] or "in"))
        if format == "npy" or (format is None and path.endswith(".npy")):
            return cls(*read_npy(path, errors))
        with open_source(path) as file:
            return cls(*vectorformats.VectorReader(file, path, errors).read(format))

    def write_text(self, file):
        """Write word2vec's text format to a binary file object: "V E", then a word and E numbers ("%.6f") a line.

        Raises TiedtoolsError, before anything is written, if a word holds an ASCII blank or a value is not finite.
        """
        vectorformats.check_writable(self.words, self.matrix)
        vectorformats.write_text(file, self.words, self.matrix)

    def write_binary(self, file):
        """Write word2vec's binary format to a binary file object; errors as in `write_text`."""
        vectorformats.check_writable(self.words, self.matrix)
        vectorformats.write_binary(file, self.words, self.matrix)

    def write_npy(self, path):
        """Write the matrix to `path`, with .npy put to it if need be, and beside it the words one a line, in .words."""
        stem = os.fspath(path).removesuffix(".npy")
        if stem == "-":
            raise TiedtoolsError("-: NumPy's format takes two files, not standard output; give a name ending in .npy")
        vectorformats.check_writable(self.words, self.matrix)
        with open_output(stem + ".npy") as matrix_file, open_output(stem + ".words") as words_file:
            np.save(matrix_file, self.matrix, allow_pickle=False)
            words_file.write("".join(f"{word}\n" for word in self.words).encode())


def read_model(path, which):
    """Words and vectors, "in" or "out", of a model file; those of a tied model are the same."""
    header, arrays = modelfile.read(path, lambda archive: {"header", "words", *MATRICES} & set(archive.files))
    words = modelfile.take_words(path, arrays)
    V, matrix = len(words), arrays.get("emb_in", np.zeros(0))
    if which == "out" and "word_out" in arrays:
        matrix = arrays["word_out"][:, : matrix.shape[-1]]  # behind it lie the weights of rnnlm's document vector
    elif which == "out" and "emb_out" in arrays:
        matrix = arrays["emb_out"][:V]  # behind it lie the inner nodes of word2vec's Huffman tree
        if len(matrix) == V - 1:
            raise TiedtoolsError(f"{path}: hierarchical softmax has no output word vectors; read {path}:in")
    if matrix.dtype.kind != "f" or matrix.ndim != 2 or len(matrix) != V:
        raise TiedtoolsError(f"{path}: holds no {which}put vectors for its {V} words")
    vectorformats.check_finite(words, matrix, f"{path}: row")
    return words, matrix


def read_npy(path, errors="strict"):
    """Words and matrix of an .npy file and the words file beside it. A float32 matrix stays on disk, mapped."""
    try:
        matrix = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise TiedtoolsError(f"{path}: cannot be read: {error.strerror or error}") from None
    except MemoryError:
        raise
    except Exception as error:  # whatever a damaged header makes NumPy raise
        raise TiedtoolsError(f"{path}: is no whole .npy file: {error}") from None
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or not matrix.size:
        raise TiedtoolsError(f"{path}: is not one matrix of floats; save it as that, a row a word")
    words_path, words = read_words(path, errors)
    if len(words) != len(matrix):
        raise TiedtoolsError(f"{words_path}: has {len(words)} words, but {path} has {len(matrix)} rows; give one a row")
    with np.errstate(over="ignore"):
        matrix = np.ascontiguousarray(matrix, np.float32)
    vectorformats.check_finite(words, matrix, f"{path}: row")
    return words, matrix


def read_words(path, errors):
    """Path and words of the list that goes with an .npy file: .words or .txt, one a line, or .vocab with counts."""
    stem = path.removesuffix(".npy")
    for extension in (".words", ".vocab", ".txt"):
        if os.path.exists(stem + extension):
            break
    else:
        raise TiedtoolsError(f"{path}: its words, one a line, are expected in {stem}.words (or .vocab, .txt)")
    words = []
    with open_source(stem + extension) as file:
        lines = file.read().removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines, 1):
        line = line.removesuffix(b"\r")
        if extension == ".vocab":
            line, _, count = line.rpartition(b" ")
            if not count.isdigit():
                raise TiedtoolsError(f"{stem}.vocab:{number}: is not a word, a blank and its count")
        try:
            words.append(line.decode("utf-8", errors))
        except UnicodeDecodeError:
            raise TiedtoolsError(f"{stem}{extension}:{number}: is not UTF-8; --errors replace reads it") from None
    return stem + extension, words
