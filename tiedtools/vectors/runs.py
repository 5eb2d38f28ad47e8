"""Word vectors of several training runs over one vocabulary, and their file."""

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any, BinaryIO, TypeVar

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.files import modelfile
from tiedtools.text.sources import counted
from tiedtools.vectors.norms import Matrix, first_rows

Self = TypeVar("Self", bound="Runs")
KIND = "runs"  # `kind` in the header of a file
SLICES = "slices.txt"  # names of the slices in a folder, one per line, in order


class Runs:
    """Word vectors of R training runs on one text, or on resamples of its documents.

    words     list of V str
    matrix    float16 or float32 [R, V, E], mapped if read from a file
    present   int64 [R, V]: occurrences of each word in the text of each run; a word without any has a random vector
    counts    int64 [V]: occurrences of each word in the whole text
    whole     float16 or float32 [W, V, E]: runs on the whole text, beside resamples; [0, V, E] if there are none
    training  dict of the settings of training, texts, and resampling, `documents`, and `seeds`, the seed of each run

    Run k alone is FILE:k, from 1, wherever vectors are read.
    """

    def __init__(
        self, words: list[str], matrix: Matrix, present: Matrix, counts: Matrix, training: dict[str, Any],
        whole: Matrix | None = None,
    ) -> None:  # fmt: skip
        self.words, self.matrix, self.present, self.counts, self.training = words, matrix, present, counts, training
        self.whole = matrix[:0] if whole is None else whole

    @cached_property
    def index(self) -> dict[str, int]:
        """Dict: word -> row, the first of a repeated word."""
        return first_rows(self.words)

    @property
    def on_whole_text(self) -> "Runs":
        """The runs on the whole text, as Runs."""
        present = np.broadcast_to(self.counts, self.whole.shape[:2])
        return Runs(self.words, self.whole, present, self.counts, self.training)

    @classmethod
    def of_one(cls, vectors: Any) -> "Runs":
        """Return Vectors as a single run, with their counts, 0 if unknown."""
        V = len(vectors)
        counts = np.zeros(V, np.int64) if vectors.counts is None else vectors.counts
        return cls(vectors.words, np.asarray(vectors.matrix)[None], np.ones((1, V), np.int64), counts, {})

    def __len__(self) -> int:
        return len(self.matrix)

    def __repr__(self) -> str:
        R, V, E = self.matrix.shape
        return f"<Runs: {counted(R, 'run')} of {counted(V, 'word')}, {counted(E, 'dimension')}>"

    def __getitem__(self, run: int) -> tuple[list[str], Matrix]:
        """Return the words that occur in the text of a run, counted from 0, and their vectors, float32."""
        rows = np.flatnonzero(self.present[run])
        return [self.words[row] for row in rows], self.matrix[run][rows].astype(np.float32)

    def __iter__(self) -> Iterator[tuple[list[str], Matrix]]:
        return (self[run] for run in range(len(self)))

    def save(self, file: BinaryIO) -> None:
        """Write all runs to a binary file."""
        arrays = dict(matrix=self.matrix, whole=self.whole, present=self.present, counts=self.counts)
        modelfile.save(file, KIND, self.training, self.words, arrays)

    @classmethod
    def read(cls: type[Self], path: str) -> Self:
        """Read a file of runs; its vectors are mapped. Raises TiedtoolsError if it is not one, or is corrupt."""
        first = modelfile.first_bytes(path)
        if os.path.isdir(path) or first and not first.startswith(modelfile.MAGIC) or modelfile.kind(path) != KIND:
            raise TiedtoolsError(f"{path}: is not a file of runs; give one written by `tiedtools w2v --runs N`")
        header, arrays = modelfile.read(path, {"header", "words", "present", "counts"}, KIND)
        words = modelfile.take_words(path, arrays, KIND)
        with modelfile.report_corrupt(path, KIND):
            matrix, whole = modelfile.mapped(path, "matrix"), modelfile.mapped(path, "whole")
            present, counts = arrays["present"], arrays["counts"]
            for array, shape in ((present, matrix.shape[:2]), (counts, matrix.shape[1:2])):
                if array.shape != shape or array.dtype.kind not in "iu" or (array < 0).any():
                    raise ValueError("its counts do not match its vectors")
            if whole.shape[1:] != matrix.shape[1:] or whole.dtype != matrix.dtype:
                raise ValueError(f"vectors of shape {whole.shape}, and of {matrix.shape}")
            if matrix.ndim != 3 or matrix.dtype.kind != "f" or len(words) != matrix.shape[1] or not matrix.size:
                raise ValueError(f"vectors of shape {matrix.shape} for {len(words)} words")
            if len(set(words)) != len(words):
                raise ValueError("a word occurs twice")
        return cls(words, matrix, present, counts, header["config"], whole)


def is_slices(path: str) -> bool:
    """Return whether a path is a folder of slices."""
    return os.path.exists(os.path.join(path, SLICES))


def is_runs(path: str) -> bool:
    """Return whether a file holds several runs."""
    return modelfile.first_bytes(path).startswith(modelfile.MAGIC) and modelfile.kind(path) == KIND


def read_one(path: str, which: str) -> tuple[list[str], Matrix]:
    """Return the words and vectors of one run of a file of runs; `which`: its number, from 1.

    Raises TiedtoolsError for anything else.
    """
    runs = Runs.read(path)
    if which.isdigit() and 1 <= int(which) <= len(runs):
        return runs[int(which) - 1]
    last = f" to {path}:{len(runs)}" if len(runs) > 1 else ""
    raise TiedtoolsError(f"{path}: has {counted(len(runs), 'run')}; name one: {path}:1{last}")
