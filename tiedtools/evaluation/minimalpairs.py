"""Minimal pairs: whether a language model prefers the acceptable of two sentences (Warstadt et al. 2020, BLiMP)."""

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.evaluation.analogysets import wilson
from tiedtools.evaluation.lexicon import Lexicon, raw_lines
from tiedtools.evaluation.perplexity import rescore
from tiedtools.evaluation.similarity import Z
from tiedtools.text.sentences import words_of
from tiedtools.text.sources import is_path, name_of, shown

COLUMNS = ["paradigm", "pairs", "ties", "unknown", "accuracy", "low", "high", "accuracy_unknown"]
MOST_UNKNOWN = 0.1  # largest proportion of pairs with unknown words for a comparison


class Pair(NamedTuple):
    """An acceptable and an unacceptable sentence, lists of words; `where` is its file and line."""

    where: str
    paradigm: str
    good: list[str]
    bad: list[str]


def read_pairs(source: Any, errors: str = "strict", split: Callable[[Any], list[str]] = words_of) -> Iterator[Pair]:
    """Yield the Pairs of a path, or of an iterable of tuples (good, bad) or (good, bad, paradigm).

    A file has JSON lines with `sentence_good`, `sentence_bad`, and possibly `UID`, or the columns of the tuples,
    tab-separated. Without a paradigm, it is the name of the file. Sentences are strings, which
    `split` splits, or lists of words.

    Raises TiedtoolsError with file and line for anything else.
    """
    if is_path(source):
        name = os.path.basename(name_of(source)).partition(".")[0]
        records = ((f"{shown(source)}:{k}", line.rstrip("\r\n")) for k, line in raw_lines(source, errors))
    else:
        name, records = "pairs", ((f"pairs:{k}", pair) for k, pair in enumerate(source, 1))
    for where, record in records:
        if record in ("", ()):
            continue
        try:
            if isinstance(record, str) and record.startswith("{"):
                fields = json.loads(record)
                record = fields["sentence_good"], fields["sentence_bad"], fields.get("UID", name)
            good, bad, paradigm = [*(record.split("\t") if isinstance(record, str) else record), name][:3]
            yield Pair(where, str(paradigm), split(good), split(bad))
        except (ValueError, KeyError, TypeError, TiedtoolsError):
            remedy = "give JSON lines with sentence_good and sentence_bad, or tab-separated columns"
            raise TiedtoolsError(f"{where}: expected a good and a bad sentence; {remedy}") from None


def compare(
    model: Any, lexicon: Lexicon, pairs: Iterable[Pair], batch: int = 64, oov_logprob: float = -5.0
) -> list[dict[str, Any]]:
    """Return a dict for each paradigm, with the keys COLUMNS, and one for their mean.

    accuracy, low, high  proportion of pairs without unknown words whose good sentence is more probable, a tie counting
                         one half, and its Wilson 95% interval; None if more than MOST_UNKNOWN have unknown words
    accuracy_unknown     the same proportion among pairs with unknown words; None without them

    batch, oov_logprob   as for nbest.rescore

    Logs identical pairs and paradigms that are not compared.
    """
    taken, results = [], {}

    def hypotheses() -> Iterator[tuple[None, list[str]]]:
        for pair in pairs:
            taken.append(pair)
            yield from ((None, pair.good), (None, pair.bad))

    scores = rescore(model, lexicon, hypotheses(), batch, oov_logprob)
    for k, (good, bad) in enumerate(zip(scores, scores)):
        words = taken[k].good + taken[k].bad
        known = all(lexicon.index.get(word) not in (None, lexicon.unk) for word in words)
        outcome = 0.5 if taken[k].good == taken[k].bad or good == bad else float(good > bad)
        results.setdefault(taken[k].paradigm, ([], []))[known].append(outcome)
    if not results:
        raise TiedtoolsError("no pairs; give a good and a bad sentence in each line")
    lines = [summary(paradigm, [outcomes]) for paradigm, outcomes in results.items()]
    if identical := [pair.where for pair in taken if pair.good == pair.bad]:
        log.warning(f"identical sentences, which count one half: {', '.join(identical)}")
    if skipped := [line["paradigm"] for line in lines if line["accuracy"] is None]:
        why = f"more than {MOST_UNKNOWN:.0%} of the pairs have unknown words"
        log.warning(f"no comparison, as {why}: {', '.join(skipped)}")
    return [*lines, summary("mean", list(results.values()))] if len(lines) > 1 else lines


def summary(name: str, groups: Sequence[tuple[list[float], list[float]]]) -> dict[str, Any]:
    """Return the figures of a paradigm, or of the mean over the compared ones of several paradigms.

    groups  for each paradigm the outcomes, 0, 0.5, or 1, of pairs with unknown words, and of the other pairs
    """
    unknown, known = ([outcome for group in groups for outcome in group[side]] for side in (0, 1))
    compared = [kept for lost, kept in groups if kept and len(lost) <= MOST_UNKNOWN * (len(lost) + len(kept))]
    accuracy = low = high = None
    if compared:
        accuracy = float(np.mean([np.mean(kept) for kept in compared]))
        half = Z * math.sqrt(sum(np.var(kept) / len(kept) for kept in compared)) / len(compared)
        low, high = max(0.0, accuracy - half), min(1.0, accuracy + half)
        if len(groups) == 1:
            low, high = wilson(sum(known), len(known))
    figures = accuracy, low, high, float(np.mean(unknown)) if unknown else None
    return dict(zip(COLUMNS, (name, len(unknown + known), known.count(0.5), len(unknown), *figures)))
