"""Look up the word counts and the settings of vectors in their model file or in the manifest beside them."""

import contextlib
import os
from typing import Any

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.files import digests, manifest, modelfile
from tiedtools.vectors import rnnlmformat
from tiedtools.vectors.matrixfiles import COUNTED, read_list
from tiedtools.vectors.modelvectors import files_read, find_model

ENOUGH, SHARE = 100, 1 / 250_000  # a frequent word occurs at least ENOUGH times or, in a short text, in this proportion


def packed(counts: np.ndarray) -> list[list[int]]:
    """Run-length encode counts as a list of [count, number of consecutive words with this count]."""
    starts = np.flatnonzero(np.diff(counts, prepend=-1))
    return [[int(count), int(n)] for count, n in zip(counts[starts], np.diff(starts, append=len(counts)))]


def unpacked(pairs: Any, V: int) -> np.ndarray:
    """Decode the V counts of `packed`, int64 [V]. Raises ValueError, TypeError, or OverflowError if invalid."""
    values, repeats = np.array(pairs, np.int64).reshape(-1, 2).T
    if sum(map(int, repeats)) != V:
        raise ValueError(f"not the counts of {V} words")
    return np.repeat(values, repeats)


def word_counts(path: str, words: Any, vocab: str | None = None) -> np.ndarray | None:
    """Return the counts of the V words of vectors in the training text, int64 [V]; None if unknown.

    path   as for Vectors.read; for the manifest of a vector file, see `recorded`
    vocab  path of a file of `word count` lines to use instead, 0 for other words; None: the .vocab file of a matrix
    """
    V = len(words)
    source = vocab or next((file for file in files_read(path)[1:] if file.endswith(".vocab")), None)
    if source and (counts := listed(source, strict=vocab is not None)):
        return np.array([counts.get(word, 0) for word in words])
    if vocab:
        raise TiedtoolsError(f"{vocab}:1: is not `word count`; correct the line")
    if hasattr(words, "model"):  # of fastText
        return words.model.counts()
    if model := find_model(path):
        if modelfile.is_rnnlm(model[0]):
            with open(model[0], "rb") as file:
                return rnnlmformat.read_vocab(file, rnnlmformat.read_header(file).number("vocabulary size"))[0].counts
        _, arrays = modelfile.read(model[0], {"header", "counts", "source_counts", "present"})
        counts = arrays.get("counts")
        if counts is not None and model[1].isdigit():  # a run, which has the words of its resample
            counts = counts[arrays["present"][int(model[1]) - 1] > 0]
        if model[1] == "source":
            counts = arrays.get("source_counts", counts)  # absent if the vocabulary is joint
    else:
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            return unpacked((recorded(path) or {}).get("counts"), V)
        return None
    return counts if counts is not None and counts.shape == (V,) and counts.dtype.kind == "i" else None


def settings(path: str) -> dict[str, Any]:
    """Return the settings with which the texts of vectors were read, such as `tokenize`; {} if unknown.

    path  as for `word_counts`
    """
    if (model := find_model(path)) and not modelfile.is_rnnlm(model[0]):
        header = modelfile.read_header(model[0])
        return header.get("settings") or header["config"]  # of a file of runs
    record = None if model else recorded(path)
    found: dict[str, Any] = {**record["options"], **record["settings"]} if record else {}
    return {name: value for name, value in found.items() if value is not None}


def recorded(path: str) -> dict[str, Any] | None:
    """Return the manifest of a vector file; None if there is none, or if it is of another file or word list."""
    try:
        with open(manifest.beside(path), "rb") as file:
            record = manifest.loads(file.read(), file.name)
        size, names = os.path.getsize(path), {os.path.basename(path), os.path.basename(os.path.realpath(path))}
        outputs = {(os.path.basename(str(output.get("path"))), output.get("bytes")) for output in record["outputs"]}
        files, known = [(os.path.basename(file), os.path.getsize(file)) for file in files_read(path)], dict(outputs)
        same = all(file in outputs or file[0] not in known for file in files[1:])
        if os.path.getmtime(path) > os.path.getmtime(manifest.beside(path)):  # replaced since, or copied after it
            same &= digests.of_file(path)["sha256"] in [output.get("sha256") for output in record["outputs"]]
        return record if same and any((name, size) in outputs for name in names) else None
    except (OSError, TiedtoolsError):
        return None


def frequent(counts: np.ndarray, least: int) -> int:
    """Return the number of words up to the last with a count >= `least`; all words up to it, if sorted by count."""
    return int(np.flatnonzero(counts >= least).max(initial=-1)) + 1


def listed(path: str, strict: bool = True) -> dict[str, int]:
    """Read a vocabulary, a dict: word -> count; empty if it has no counts. Raises TiedtoolsError if a line has none.

    strict  False: such lines are left out; the reader of the vectors has reported them
    """
    lines = [COUNTED.fullmatch(line) for line in read_list(path).split(b"\n")]
    if strict and lines[0] and not all(lines):
        raise TiedtoolsError(f"{path}:{lines.index(None) + 1}: is not `word count`; correct the line")
    return {line[1].decode("utf-8", "replace"): int(line[2]) for line in lines if line and lines[0]}


def default_min_count(counts: np.ndarray) -> int:
    """Return the minimum count of a frequent word in a text with these counts."""
    return int(min(ENOUGH, counts.sum() * SHARE))
