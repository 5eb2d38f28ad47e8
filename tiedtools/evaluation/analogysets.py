"""Accuracy of word vectors on analogy questions, per section.

A question is covered if its four words have vectors. The answer is the word with the highest score (`analogies`), the
first three words excluded. It is correct if it equals the fourth word, including case. Shapes: Q questions.

A set of pairs, such as BATS, asks for the second word of each pair by the mean offset of the other pairs of its section
(3CosAvg, Drozd et al. 2016). A pair may list several correct answers; the first with a vector counts in offsets.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import Contradiction, TiedtoolsError, quoted
from tiedtools.evaluation.similarity import Z, find_row
from tiedtools.text.sentences import WORD
from tiedtools.text.sources import numbered_lines
from tiedtools.vectors.neighbors import Candidates, solve
from tiedtools.vectors.norms import unit
from tiedtools.vectors.vectors import Vectors

METHODS = ("add", "mul", "both", "avg")
COMPARED = "accuracy", "accuracy_first", "difference", "low", "high", "p"  # figures of `compare`
BATS_TYPES = "inflectional", "derivational", "encyclopedic", "lexicographic"  # names of sections begin with I, D, E, L


class AnalogySet(NamedTuple):
    """Analogy questions in file order, with their sections."""

    questions: list[tuple[Any, ...]]  # Q tuples of four words or, in a set of pairs, of a word and its correct answers
    sections: dict[str, np.ndarray]  # name -> bool [Q]; semantic, syntactic, and total come last
    section: np.ndarray  # [Q], the name of each question's own section
    pairs: bool = False


class Answered(NamedTuple):
    """Results of one vector file on an AnalogySet."""

    known: np.ndarray  # bool [Q]: all four words have vectors
    right: np.ndarray  # bool [Q]: the answer is correct


def read_set(path: Any) -> AnalogySet:
    """Read questions in word2vec's format, `: section` lines and lines of four words, into an AnalogySet.

    Lines of two words are a set of pairs; `/` separates the correct answers. Sections whose names begin with "gram"
    count as syntactic, the others as semantic; without a syntactic section, both totals are omitted. The sections of
    BATS have totals by their first letter. Raises TiedtoolsError with file and line for a malformed line, or if there
    are no questions.
    """
    questions, names, name, width = [], [], None, None
    for number, line in numbered_lines(path):
        words = WORD.findall(line)
        if words[:1] == [":"]:
            name = " ".join(words[1:])
        elif words:
            width = width or (2 if len(words) == 2 else 4)
            if len(words) != width or name is None:
                expected = "a line `: section` first" if name is None else f"{'two' if width == 2 else 'four'} words"
                what = f"expected {expected}, found {quoted(line.strip())}"
                raise TiedtoolsError(f"{path}:{number}: {what}; correct the line")
            questions.append(tuple(words) if width == 4 else (words[0], *filter(None, words[1].split("/"))))
            names.append(name)
    if not questions:
        raise TiedtoolsError(f"{path}: holds no questions; add lines of four words after a `: section` line")
    names = np.array(names)
    sections = {name: names == name for name in dict.fromkeys(names.tolist())}
    syntactic = np.char.startswith(names, "gram")
    if syntactic.any():
        sections |= {"semantic": ~syntactic, "syntactic": syntactic}
    if width == 2 and all(re.match(r"[IDEL]\d\d ", name) for name in sections):
        sections |= {title: np.char.startswith(names, title[0].upper()) for title in BATS_TYPES}
    return AnalogySet(questions, {**sections, "total": np.ones(len(names), bool)}, names, width == 2)


def answer(
    vectors: Vectors, analogy_set: AnalogySet, method: str = "add", restrict: int | None = None, case: str = "fallback"
) -> Answered:
    """Answer an AnalogySet with `vectors`; return Answered.

    restrict  use only the first `restrict` words, in questions and as answers (None: all)
    case      how to look up the words of the questions, as in `find_row`
    """
    candidates = Candidates(vectors, restrict)
    index = {word: row for row, word in enumerate(candidates.vectors.words[: len(candidates)])}
    if analogy_set.pairs:
        return answer_pairs(candidates, index, analogy_set, case)
    rows = np.array([[find_row(index, word, case) for word in words] for words in analogy_set.questions])
    known = np.logical_and.reduce(rows >= 0, axis=1)
    right = np.zeros(len(rows), bool)
    right[known] = solve(candidates, rows[known, :3], method) == rows[known, 3]
    return Answered(known, right)


def answer_pairs(candidates: Candidates, index: Mapping[str, int], analogy_set: AnalogySet, case: str) -> Answered:
    """Answer a set of pairs by 3CosAvg; `index`: word -> row of a candidate. A section's only known pair is unknown."""
    rows = [[find_row(index, word, case) for word in words] for words in analogy_set.questions]
    correct = [[row for row in answers if row >= 0] for _, *answers in rows]
    known = np.array([first >= 0 and bool(answers) for (first, *_), answers in zip(rows, correct)])
    right = np.zeros(len(rows), bool)
    for name in dict.fromkeys(analogy_set.section.tolist()):
        asked = np.flatnonzero((analogy_set.section == name) & known)
        if len(asked) < 2:
            known[asked] = False
            continue
        units = candidates.units([rows[k][0] for k in asked])
        offsets = candidates.units([correct[k][0] for k in asked]) - units
        means = (offsets.sum(axis=0) - offsets) / (len(asked) - 1)  # of the other pairs
        for k, best in zip(asked, candidates.best(unit(units + means), [[rows[k][0]] for k in asked], 1)):
            right[k] = bool(best) and index[best[0][0]] in correct[k]
    return Answered(known, right)


def wilson(right: float, n: int) -> tuple[float, float]:
    """Return the Wilson 95% interval for a proportion of `right` out of n: (low, high); NaN if n is 0."""
    if not n:
        return math.nan, math.nan
    center = (right + Z * Z / 2) / (n + Z * Z)
    half = Z / (n + Z * Z) * math.sqrt(right * (n - right) / n + Z * Z / 4)
    return max(0.0, center - half), min(1.0, center + half)


def summarize(analogy_set: AnalogySet, answered: Answered) -> list[dict[str, Any]]:
    """Summarize each section as a dict: section, questions, covered, correct, accuracy (if covered), low, high."""
    lines = []
    for name, in_section in analogy_set.sections.items():
        n, right = int((in_section & answered.known).sum()), int((in_section & answered.right).sum())
        low, high = wilson(right, n)
        counts = dict(section=name, questions=int(in_section.sum()), covered=n, correct=right)
        lines.append({**counts, "accuracy": right / n if n else math.nan, "low": low, "high": high})
    return lines


def compare(analogy_set: AnalogySet, answered: Answered, first: Answered) -> list[dict[str, Any]]:
    """Compare accuracies with the results `first` on the questions that both cover; return a dict per section.

    The 95% interval is the adjusted Wald interval for paired proportions (Bonett & Price 2012), which adds one question
    to each side; `difference` itself is not adjusted. p is from `mcnemar`.
    """
    lines = []
    for name, in_section in analogy_set.sections.items():
        covered = in_section & answered.known & first.known
        n = int(covered.sum())
        right, right_first = (a.right[covered] for a in (answered, first))
        gained, lost = int((right & ~right_first).sum()), int((right_first & ~right).sum())
        center = (gained - lost) / (n + 2)
        half = Z * math.sqrt(((gained + lost + 2) / (n + 2) - center**2) / (n + 2))
        figures = (math.nan,) * 6
        if n:
            accuracies = float(right.mean()), float(right_first.mean())
            ends = max(-1.0, center - half), min(1.0, center + half)
            figures = *accuracies, accuracies[0] - accuracies[1], *ends, mcnemar(gained, lost)
        lines.append({"section": name, "questions": n, **dict(zip(COMPARED, figures))})
    return lines


def mcnemar(gained: int, lost: int) -> float:
    """Return the two-sided p-value of McNemar's exact test from the questions that only one file answers correctly."""
    from scipy.special import bdtr  # imported here because SciPy loads slowly

    return min(1.0, 2 * float(bdtr(min(gained, lost), gained + lost, 0.5)))


def methods_of(analogy_set: AnalogySet, method: str | None) -> list[str]:
    """Return the methods to score a set with: one of METHODS; "both" is "add" and "mul"; None: see `evaluate`."""
    if method and (method == "avg") != analogy_set.pairs:
        what = "pairs, which only 3CosAvg scores" if analogy_set.pairs else "questions of four words, not pairs"
        raise Contradiction(f"`method={method}`: the set has {what}; omit it")
    return ["add", "mul"] if method == "both" else [method or ("avg" if analogy_set.pairs else "add")]


def evaluate(
    files: Iterable[Any], read: Callable[..., Any], analogy_set: AnalogySet, method: str | None = None,
    restrict: int | None = None, case: str = "fallback",
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:  # fmt: skip
    """Score vector files on an AnalogySet.

    files   labels, passed in turn to `read(file)`, which returns Vectors; only one file is in memory at a time
    method  one of METHODS, "both" "add" and "mul"; None: "avg" for a set of pairs, otherwise "add"

    Returns (results, differences), lists of dicts with file, method, and sections. In results, `sections` is the output
    of `summarize` for each file and method; in differences, the output of `compare` with the first file.
    """
    methods, results, differences, first = methods_of(analogy_set, method), [], [], {}
    for file in files:
        vectors = read(file)
        for method in methods:
            answered, label = answer(vectors, analogy_set, method, restrict, case), {"file": file, "method": method}
            results.append({**label, "sections": summarize(analogy_set, answered)})
            if method in first:
                differences.append({**label, "sections": compare(analogy_set, answered, first[method])})
            first.setdefault(method, answered)
    return results, differences
