"""Word counts of word vectors, as far as their model file or the manifest next to them records the counts."""

import os

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.files import manifest, modelfile
from tiedtools.vectors.modelvectors import find_model

ENOUGH, SHARE = 100, 1 / 250_000  # occurrences of a frequent word: as many, or this share of a shorter text


def packed(counts):
    """Return counts as a list of [count, number of consecutive words with this count]."""
    starts = np.flatnonzero(np.diff(counts, prepend=-1))
    return [[int(count), int(n)] for count, n in zip(counts[starts], np.diff(starts, append=len(counts)))]


def unpacked(pairs, V):
    """Return the V counts of `packed`, int64 [V]. Raises ValueError, TypeError, or OverflowError for other values."""
    values, repeats = np.array(pairs, np.int64).reshape(-1, 2).T
    if sum(map(int, repeats)) != V:
        raise ValueError(f"not the counts of {V} words")
    return np.repeat(values, repeats)


def word_counts(path, V):
    """Return how often each of the V words of vectors occurs in the training text, int64 [V]; None if unknown.

    path  as for Vectors.read; a vector file's manifest counts only if it records a file of this size
    """
    if model := find_model(path):
        if modelfile.is_rnnlm(model[0]):
            return None
        _, arrays = modelfile.read(model[0], {"header", "counts", "source_counts"})
        counts = arrays.get("counts")
        if model[1] == "source":
            counts = arrays.get("source_counts", counts)  # absent if the vocabulary is joint
    else:
        counts = from_manifest(path, V)
    return counts if counts is not None and counts.shape == (V,) and counts.dtype.kind == "i" else None


def from_manifest(path, V):
    """Return the V counts in the manifest of a vector file, or None."""
    try:
        with open(path + manifest.SUFFIX, "rb") as file:
            found = manifest.loads(file.read(), path + manifest.SUFFIX)
        same = {"path": os.path.basename(path), "bytes": os.path.getsize(path)}
        outputs = [{**output, "path": os.path.basename(str(output.get("path")))} for output in found["outputs"]]
        return unpacked(found["counts"], V) if any(same.items() <= output.items() for output in outputs) else None
    except (OSError, TiedtoolsError, KeyError, ValueError, TypeError, OverflowError):
        return None


def frequent(counts, least):
    """Return how many words there are up to the last that occurs `least` times: in a sorted vocabulary, as many do."""
    return int(np.flatnonzero(counts >= least).max(initial=-1)) + 1


def default_min_count(counts):
    """Return how often a word must occur to be frequent, in a text with these counts."""
    return int(min(ENOUGH, counts.sum() * SHARE))
