"""Analogy questions: how many of them do word vectors answer, section by section?

A question counts where its four words have vectors. The answer is the word with the best score (`analogies`) of all
that are not among the question's first three, and it is right if it is the fourth: exactly that word, not one that
differs in case. Letters in shapes: Q questions.
"""

import math
from typing import NamedTuple

import numpy as np

from tiedtools.errors import TiedtoolsError, quoted
from tiedtools.evaluation.analogies import solve
from tiedtools.evaluation.neighbours import Candidates
from tiedtools.evaluation.similarity import Z, find_row
from tiedtools.text.sources import WORD, numbered_lines


class AnalogySet(NamedTuple):
    """Questions in the order of their file."""

    questions: list  # Q tuples of four words
    sections: dict  # name -> bool [Q]; semantic, syntactic and total come last


class Answered(NamedTuple):
    """What one file of vectors makes of an AnalogySet."""

    known: np.ndarray  # bool [Q]: the four words have vectors
    right: np.ndarray  # bool [Q]


def read_set(path):
    """Read word2vec's format, lines `: section` and lines of four words, into an AnalogySet.

    Sections named gram... are syntactic and the others semantic; without any such there is no such division.
    Raises TiedtoolsError naming the file and the line.
    """
    questions, names = [], []
    name = None
    for number, line in numbered_lines(path):
        words = WORD.findall(line)
        if words[:1] == [":"]:
            name = " ".join(words[1:])
        elif words:
            if len(words) != 4 or name is None:
                wanted = "a line `: section` first" if name is None else "four words"
                raise TiedtoolsError(f"{path}:{number}: expected {wanted}, found {quoted(line.strip())}; correct that")
            questions.append(tuple(words))
            names.append(name)
    if not questions:
        raise TiedtoolsError(f"{path}: holds no questions; give lines of four words under lines `: section`")
    names = np.array(names)
    sections = {name: names == name for name in dict.fromkeys(names.tolist())}
    syntactic = np.char.startswith(names, "gram")
    if syntactic.any():
        sections |= {"semantic": ~syntactic, "syntactic": syntactic}
    return AnalogySet(questions, {**sections, "total": np.ones(len(names), bool)})


def answer(vectors, analogy_set, method="add", restrict=None, case="fallback"):
    """Answers to an AnalogySet, as Answered.

    restrict  only the first so many words count, in questions and as answers (None: all)
    case      of the questions' words, as in `find_row`
    """
    candidates = Candidates(vectors, restrict)
    index = {word: row for row, word in enumerate(candidates.vectors.words[: len(candidates)])}
    rows = np.array([[find_row(index, word, case) for word in words] for words in analogy_set.questions])
    known = np.logical_and.reduce(rows >= 0, axis=1)
    right = np.zeros(len(rows), bool)
    right[known] = solve(candidates, rows[known, :3], method) == rows[known, 3]
    return Answered(known, right)


def wilson(right, n):
    """Wilson's 95% interval for `right` of n: (low, high), NaN for n = 0."""
    if not n:
        return math.nan, math.nan
    center = (right + Z * Z / 2) / (n + Z * Z)
    half = Z / (n + Z * Z) * math.sqrt(right * (n - right) / n + Z * Z / 4)
    return max(0.0, center - half), min(1.0, center + half)


def summarise(analogy_set, answered):
    """A dict for each section: section, questions, covered, correct, accuracy (of those covered), low, high."""
    lines = []
    for name, chosen in analogy_set.sections.items():
        n, right = int((chosen & answered.known).sum()), int((chosen & answered.right).sum())
        low, high = wilson(right, n)
        lines.append({
            "section": name, "questions": int(chosen.sum()), "covered": n, "correct": right,
            "accuracy": right / n if n else math.nan, "low": low, "high": high,
        })  # fmt: skip
    return lines


def compare(analogy_set, answered, first):
    """Accuracy less that of `first` on the questions that both cover, a dict for each section.

    Its 95% interval is that of a difference of paired proportions, with one question more for either side (Bonett &
    Price 2012, adjusted Wald interval); `difference` itself is not adjusted. p is `mcnemar`'s.
    """
    lines = []
    for name, chosen in analogy_set.sections.items():
        chosen = chosen & answered.known & first.known
        n = int(chosen.sum())
        right, right_first = (a.right[chosen] for a in (answered, first))
        gained, lost = int((right & ~right_first).sum()), int((right_first & ~right).sum())
        center = (gained - lost) / (n + 2)
        half = Z * math.sqrt(((gained + lost + 2) / (n + 2) - center**2) / (n + 2))
        accuracy, accuracy_first = (float(x.mean()) if n else math.nan for x in (right, right_first))
        lines.append({
            "section": name, "questions": n, "accuracy": accuracy, "accuracy_first": accuracy_first,
            "difference": accuracy - accuracy_first,
            "low": float(max(-1, center - half)) if n else math.nan,
            "high": float(min(1, center + half)) if n else math.nan,
            "p": mcnemar(gained, lost) if n else math.nan,
        })  # fmt: skip
    return lines


def mcnemar(gained, lost):
    """Two-sided p of so uneven a split of the questions that one file alone has right: McNemar's exact test."""
    n, term, tail = gained + lost, 1, 0
    for k in range(min(gained, lost) + 1):
        tail += term
        term = term * (n - k) // (k + 1)
    return min(1.0, 2 * tail / 2**n)


def evaluate(files, read, analogy_set, methods=("add",), restrict=None, case="fallback"):
    """Score vector files on an AnalogySet.

    `files`: labels, each given to `read(file)` -> Vectors in turn, so that only one is held at a time. Returns
    (results, differences): lists of dicts of file, method and sections, for each file and method the lines of
    `summarise`, and for each later file and method its `compare` with the first file.
    """
    results, differences, first = [], [], {}
    for file in files:
        vectors = read(file)
        for method in methods:
            answered = answer(vectors, analogy_set, method, restrict, case)
            results.append({"file": file, "method": method, "sections": summarise(analogy_set, answered)})
            if method in first:
                sections = compare(analogy_set, answered, first[method])
                differences.append({"file": file, "method": method, "sections": sections})
            first.setdefault(method, answered)
    return results, differences
