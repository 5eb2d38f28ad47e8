"""Minimal pairs: whether a language model prefers the acceptable of two sentences (Warstadt et al. 2020, BLiMP)."""

import json
import math
import os
from typing import NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.evaluation.analogysets import wilson
from tiedtools.evaluation.lexicon import raw_lines
from tiedtools.evaluation.nbest import rescore
from tiedtools.evaluation.similarity import Z
from tiedtools.text.sentences import words_of
from tiedtools.text.sources import is_path, name_of, shown

COLUMNS = ["paradigm", "pairs", "ties", "unknown", "accuracy", "low", "high", "accuracy_unknown"]
MOST_UNKNOWN = 0.1  # largest proportion of pairs with unknown words for a comparison
NAMED = 10  # identical pairs named in the warning


class Pair(NamedTuple):
    """An acceptable and an unacceptable sentence, lists of words; `where` is its file and line."""

    where: str
    paradigm: str
    good: list
    bad: list


def read_pairs(source, errors="strict"):
    """Yield the Pairs of a path, or of an iterable of tuples (good, bad) or (good, bad, paradigm).

    A file has JSON lines with `sentence_good`, `sentence_bad`, and possibly `UID`, or the columns of the tuples,
    tab-separated. Without a paradigm, it is the name of the file. Sentences are strings or lists of words.

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
            yield Pair(where, str(paradigm), words_of(good), words_of(bad))
        except (ValueError, KeyError, TypeError, TiedtoolsError):
            remedy = "give JSON lines with sentence_good and sentence_bad, or tab-separated columns"
            raise TiedtoolsError(f"{where}: expected a good and a bad sentence; {remedy}") from None


def compare(model, lexicon, pairs, batch=64, oov_logprob=-5.0):
    """Return a dict for each paradigm, with the keys COLUMNS, and one for their mean.

    accuracy, low, high  proportion of pairs without unknown words whose good sentence is more probable, a tie counting
                         one half, and its Wilson 95% interval; None if more than MOST_UNKNOWN have unknown words
    accuracy_unknown     the same proportion among pairs with unknown words; None without them

    batch, oov_logprob   as for nbest.rescore

    Logs identical pairs and paradigms that are not compared.
    """
    results, taken = {}, []

    def hypotheses():
        for pair in pairs:
            taken.append(pair)
            yield None, pair.good
            yield None, pair.bad

    scores = rescore(model, lexicon, hypotheses(), batch, oov_logprob)
    identical, missing = [], (None, lexicon.unk)
    for number, (good, bad) in enumerate(zip(scores, scores)):
        pair = taken[number]
        if same := pair.good == pair.bad:
            identical.append(pair.where)
        known = all(lexicon.index.get(word) not in missing for word in pair.good + pair.bad)
        outcome = 0.5 if same or good == bad else float(good > bad)
        results.setdefault(pair.paradigm, ([], []))[known].append(outcome)
    if not results:
        raise TiedtoolsError("no pairs; give a good and a bad sentence in each line")
    lines = [summary(paradigm, *outcomes) for paradigm, outcomes in results.items()]
    if identical:
        more = f" and {len(identical) - NAMED:,} more" * (len(identical) > NAMED)
        log.warning(f"identical sentences, which count one half: {', '.join(identical[:NAMED])}{more}")
    if skipped := [line["paradigm"] for line in lines if line["accuracy"] is None]:
        log.warning(
            f"more than {MOST_UNKNOWN:.0%} of the pairs have unknown words: no comparison for {', '.join(skipped)}"
        )
    return [*lines, mean(lines, results)] if len(lines) > 1 else lines


def summary(paradigm, unknown, known):
    """Return the figures of a paradigm from the outcomes, 0, 0.5, or 1, of pairs with and without unknown words."""
    n, right = len(known), sum(known)
    figures = (None, None, None)
    if n and len(unknown) <= MOST_UNKNOWN * (n + len(unknown)):
        figures = right / n, *wilson(right, n)
    counts = n + len(unknown), known.count(0.5), len(unknown)
    return dict(zip(COLUMNS, (paradigm, *counts, *figures, float(np.mean(unknown)) if unknown else None)))


def mean(lines, results):
    """Return the mean of the compared paradigms, with the normal 95% interval for the pairs of these paradigms."""
    compared = [line for line in lines if line["accuracy"] is not None]
    totals = [sum(line[name] for line in lines) for name in ("pairs", "ties", "unknown")]
    figures = (None, None, None)
    if compared:
        center = float(np.mean([line["accuracy"] for line in compared]))
        known = [results[line["paradigm"]][1] for line in compared]
        half = Z * math.sqrt(sum(np.var(outcomes) / len(outcomes) for outcomes in known)) / len(known)
        figures = center, max(0.0, center - half), min(1.0, center + half)
    return dict(zip(COLUMNS, (f"mean of {len(compared)}", *totals, *figures, None)))
