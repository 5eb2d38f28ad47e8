"""Solve word analogies by vector arithmetic: a is to b as c is to which word? (Levy & Goldberg 2014.)

    add   3CosAdd: cos(d, b) - cos(d, a) + cos(d, c)
    mul   3CosMul: cos(d, b) cos(d, c) / (cos(d, a) + EPSILON), with cosines rescaled to 0..1

The three words of a question are excluded from its answers. Shapes: Q questions, C candidates.
"""

import numpy as np

METHODS = ("add", "mul")
EPSILON = 0.001


def analogies(candidates, questions, top=10, method="add"):
    """Find the `top` best answers to each of `questions`, tuples of words (a, b, c), among the Candidates.

    Returns for each question a list of (word, score), best first, ties by row, or None if a word is unknown.
    """
    index = candidates.index
    known = [words for words in dict.fromkeys(questions) if all(word in index for word in words)]
    if not known:
        return [None] * len(questions)
    rows = np.array([[index[word] for word in words] for words in known])

    def score(cosines):
        plus, minus = terms(cosines, method)
        scores = plus[1::3] + plus[2::3] - minus[::3]
        return np.exp(scores) if method == "mul" else scores

    best = candidates.best(candidates.units(rows.ravel()), rows.tolist(), top, score)
    answers = dict(zip(known, best))
    return [answers.get(words) for words in questions]


def solve(candidates, rows, method="add"):
    """Find the row of the best answer to each question, int64 [Q]; a fast `analogies` with top=1 for many questions.

    rows  rows of a, b, and c, int [Q, 3]

    The cosines of all question words are computed once per block of candidates. A question then costs two additions and
    a comparison per candidate, at any dimension of the vectors.
    """
    words, positions = np.unique(rows, return_inverse=True)
    positions = positions.reshape(rows.shape).tolist()
    units = candidates.units(words)
    best = np.full(len(rows), -np.inf, np.float32)
    answers = np.full(len(rows), -1)
    for start, cosines in candidates.blocks(units):
        plus, minus = terms(cosines, method)
        C = plus.shape[1]
        scores = np.empty(C + 1, np.float32)  # the last element stands for words outside this block
        inside = scores[:C]
        tops = np.empty(len(rows), np.int64)
        values = np.empty(len(rows), np.float32)
        banned = np.where((rows >= start) & (rows < start + C), rows - start, C).tolist()
        for k, (a, b, c) in enumerate(positions):
            np.add(plus[b], plus[c], out=inside)
            np.subtract(inside, minus[a], out=inside)
            for position in banned[k]:
                scores[position] = -np.inf
            tops[k] = top = inside.argmax()
            values[k] = inside[top]
        better = values > best
        best[better], answers[better] = values[better], tops[better] + start
    return answers


def terms(cosines, method):
    """Return (plus, minus), shaped like `cosines`; a score, or its log, is plus b + plus c - minus a."""
    if method == "add":
        return cosines, cosines
    shifted = np.maximum((1 + cosines) / 2, 0)
    with np.errstate(divide="ignore"):
        return np.log(shifted), np.log(shifted + np.float32(EPSILON))
