"""Similarity sets and vectors for tests, and a check of error messages of readers."""

import numpy as np
import pytest

from tiedtools.base.errors import TiedtoolsError
from tiedtools.vectors.vectors import Vectors


def write_set(path, triples):
    path.write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in triples))
    return path


def write_vectors(path, words, matrix):
    Vectors(list(words), matrix).write(path)
    return path


def write_toy(folder):
    """Write two files of random vectors for 40 and 35 words, and a similarity set of 120 pairs of 42 words."""
    rng = np.random.default_rng(5)
    words = [f"w{i}" for i in range(42)]
    triples = [(*rng.choice(words, 2, replace=False), int(rng.integers(10))) for _ in range(120)]
    return (
        write_vectors(folder / "one.txt", words[:40], rng.standard_normal((40, 8))),
        write_vectors(folder / "two.txt", words[:35], rng.standard_normal((35, 8))),
        write_set(folder / "toy.set", triples),
    )


def check_complaint(read, path, text, message):
    """Check that reading `text` (bytes) from `path` fails with an error that starts with the path and `message`."""
    path.write_bytes(text)
    with pytest.raises(TiedtoolsError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}{message}")
