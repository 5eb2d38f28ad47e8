"""Test vectors that solve some analogy questions but not others."""

import numpy as np

from tiedtools.vectors.vectors import Vectors

PAIRS = 12


def grid(noise=0.9, seed=3, E=10):
    """Return Vectors of x0 y0 x1 y1 ... and 40 other words, where y = x + a common offset + noise of scale `noise`."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((PAIRS, E))
    y = x + 2 * rng.standard_normal(E) + noise * rng.standard_normal((PAIRS, E))
    words = [f"{side}{i}" for i in range(PAIRS) for side in "xy"] + [f"other{i}" for i in range(40)]
    matrix = np.concatenate([np.stack([x, y], 1).reshape(-1, E), 2 * rng.standard_normal((40, E))])
    return Vectors(words, matrix * np.arange(1, len(words) + 1)[:, None])  # norms must not matter


def questions(first=0, last=PAIRS):
    """Return all questions "x is to y as x' is to y'" of pairs first .. last - 1."""
    pairs = [(f"x{i}", f"y{i}") for i in range(first, last)]
    return [(*one, *other) for one in pairs for other in pairs if one != other]


def by_definition(vectors, words, method="add"):
    """Return all words except the three of the question, with their scores, best first."""
    unit = vectors.matrix.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    a, b, c = (unit @ unit[vectors.index[word]] for word in words)
    if method == "mul":
        a, b, c = ((cosine + 1) / 2 for cosine in (a, b, c))
        scores = b * c / (a + 0.001)
    else:
        scores = b - a + c
    order = [row for row in np.argsort(-scores) if vectors.words[row] not in words]
    return [(vectors.words[row], scores[row]) for row in order]
