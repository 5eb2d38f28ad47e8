"""Surprisal of each word of a text under a language model, with the entropy of its prediction and its rank; and minimal
pairs: whether a model prefers the acceptable of two sentences (Warstadt et al. 2020, BLiMP).

surprisal = -log p(w | words before)    entropy = - sum over v of p(v) log p(v)    rank = 1 + |{v: p(v) > p(w)}|
"""

import collections
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.messages import log
from tiedtools.evaluation.analogysets import wilson
from tiedtools.evaluation.lexicon import NEWLINE, OOV, Lexicon, refuse_empty
from tiedtools.evaluation.perplexity import Piece, by_line, reject_nan, rescore, score, score_text
from tiedtools.network.network import State
from tiedtools.text.sentences import WORD, words_of
from tiedtools.text.sources import decoded_lines, is_path, name_of, shown
from tiedtools.text.vocab import END

UNITS = {"bits": math.log(2), "nats": 1.0}
WORDS = 1 << 10  # words scored at a time
LEAST = -1e300  # log of 0 for which 0 log 0 is 0
PAIR_COLUMNS = ["paradigm", "pairs", "ties", "unknown", "accuracy", "low", "high", "accuracy_unknown"]
MOST_UNKNOWN = 0.1  # largest proportion of pairs with unknown words for a comparison
COLUMNS = "sentence", "position", "begin", "end", "word", "surprisal_{0}", "entropy_{0}", "rank", "unknown"


def columns(unit: str) -> list[str]:
    """Return the names of the columns of a table in one of UNITS."""
    return [name.format(unit) for name in COLUMNS]


def measure(model: Any, ids: np.ndarray, targets: np.ndarray, state: State) -> tuple[np.ndarray, State]:
    """Score as perplexity.score, but return log probability, entropy (nats), and rank of each target, [T, B, 3]."""
    values = np.empty((*ids.shape, 3))
    values[..., 0], after = score(model, ids, targets, state)
    for t, row in enumerate(targets):
        logprobs, state = model.predict(ids[t : t + 1], state)
        values[t, :, 1] = -(np.exp(reject_nan(logprobs)) * np.maximum(logprobs, LEAST)).sum(1)
        values[t, :, 2] = 1 + (logprobs > np.take_along_axis(logprobs, row[:, None], 1)).sum(1)
    return values, after


def surprisals(
    model: Any, lexicon: Lexicon, path: Any, errors: str = "strict", independent: bool = False,
    batch: int | None = None, unit: str = "bits", mark: str = "@@",
) -> Iterator[tuple[Piece, list[dict[str, Any]]]]:  # fmt: skip
    """Yield (Piece, rows) for each line of a text; arguments as for perplexity.score_text, whose scores these are.

    The Piece has log probabilities in nats. The rows are dicts with the keys `columns` for each word and the line end:

    sentence, position  numbers of the line, and of the word in the line, from 1
    begin, end          first character of the word in the line, from 0, and the character after its last
    word                as written; `</s>` for a line end
    surprisal_UNIT, entropy_UNIT  in `unit`, one of UNITS; None for a word that cannot be scored
    rank                1 for the most probable word
    unknown             whether the word is outside the vocabulary

    Tokens that end in `mark` continue in the next one, as in byte-pair encoding. Such a word has the sum of its
    surprisals, and the entropy and the rank of its first token.
    """
    places = collections.deque()  # spans of the words of lines that are not yet scored

    def words() -> Iterator[list[str]]:
        chunk, line = [], None
        for line in decoded_lines(path, errors):
            spans, length = [match.span() for match in WORD.finditer(line)], len(line.rstrip("\r\n"))
            places.append([*spans, (length, length)])
            chunk += [*(line[i:j] for i, j in spans), NEWLINE]
            if len(chunk) >= WORDS:
                yield chunk
                chunk = []
        refuse_empty(path, line is not None)
        yield chunk

    scored = score_text(model, lexicon, path, errors, independent, batch, words(), measure)
    for number, line in enumerate(by_line(scored), 1):
        yield line._replace(logprobs=line.logprobs[:, 0]), [*table(number, line, places.popleft(), unit, mark)]


def table(number: int, line: Piece, spans: list[tuple[int, int]], unit: str, mark: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a line, a Piece of values from `measure`, whose tokens have these spans."""
    first = position = 0
    last, names, nats = len(spans) - 1, columns(unit), UNITS[unit]
    for k, token in enumerate(line.words):
        if mark and token.endswith(mark) and k < last - 1:
            continue
        values, codes = line.logprobs[first : k + 1], line.codes[first : k + 1]
        unscored = bool(((codes == OOV) & np.isneginf(values[:, 0])).any())
        surprisal, (_, entropy, rank) = -float(values[:, 0].sum()) / nats, values[0].tolist()
        word = "".join([*(part.removesuffix(mark) for part in line.words[first:k]), END if k == last else token])
        position += 1
        figures = (None, None, None) if unscored else (surprisal, entropy / nats, int(rank))
        unknown = bool((codes == OOV).any())
        yield dict(zip(names, (number, position, spans[first][0], spans[k][1], word, *figures, unknown)))
        first = k + 1


class Pair(NamedTuple):
    """An acceptable and an unacceptable sentence, lists of words; `where` is its file and line."""

    where: str
    paradigm: str
    good: list[str]
    bad: list[str]


def read_pairs(source: Any, errors: str = "strict", split: Callable[[Any], list[str]] = words_of) -> Iterator[Pair]:
    """Yield the Pairs of a path, or of an iterable of tuples (good, bad) or (good, bad, paradigm).

    A file has JSON lines with `sentence_good`, `sentence_bad`, and possibly `UID`, or the columns of the tuples,
    tab-separated. Without a paradigm, it is the name of the file up to its first dot. Sentences are strings, which
    `split` splits, or lists of words.

    Raises TiedtoolsError with file and line for anything else.
    """
    if is_path(source):
        file, name = shown(source), os.path.basename(name_of(source)).partition(".")[0]
        records = (line.rstrip("\r\n") for line in decoded_lines(source, errors))
    else:
        file, name, records = "pairs", "pairs", source
    for k, record in enumerate(records, 1):
        if isinstance(record, str | tuple) and not record:
            continue
        try:
            if isinstance(record, Mapping) or isinstance(record, str) and record.startswith("{"):
                fields = json.loads(record) if isinstance(record, str) else record
                record = fields["sentence_good"], fields["sentence_bad"], fields.get("UID", name)
            good, bad, *rest = record.split("\t") if isinstance(record, str) else record
            (paradigm,) = rest or [name]
            yield Pair(f"{file}:{k}", str(paradigm), split(good), split(bad))
        except (ValueError, KeyError, TypeError, RecursionError, TiedtoolsError):
            remedy = "give JSON lines with sentence_good and sentence_bad, or two or three columns"
            raise TiedtoolsError(f"{file}:{k}: expected a good and a bad sentence; {remedy}") from None


def compare(
    model: Any, lexicon: Lexicon, pairs: Iterable[Pair], batch: int = 64, oov_logprob: float = -5.0
) -> list[dict[str, Any]]:
    """Return a dict for each paradigm, with the keys PAIR_COLUMNS, and one for the mean of several.

    accuracy, low, high  proportion of pairs without unknown words whose good sentence is more probable, a tie counting
                         one half, and its Wilson 95% interval; None if more than MOST_UNKNOWN have unknown words
    accuracy_unknown     the same proportion among pairs with unknown words; None without them

    batch, oov_logprob   as for perplexity.rescore

    Logs identical pairs and paradigms that are not compared.
    """
    taken, results = [], {}

    def hypotheses() -> Iterator[tuple[None, list[str]]]:
        for pair in pairs:
            taken.append(pair)
            yield from ((None, pair.good), (None, pair.bad))

    scores = rescore(model, lexicon, hypotheses(), batch, oov_logprob)
    for k, (good, bad) in enumerate(zip(scores, scores)):
        known = all(lexicon.index.get(word) not in (None, lexicon.unk) for word in taken[k].good + taken[k].bad)
        outcome = 0.5 if taken[k].good == taken[k].bad or good == bad else float(good > bad)
        results.setdefault(taken[k].paradigm, ([], []))[known].append(outcome)
    if not results:
        raise TiedtoolsError("no pairs; give a good and a bad sentence in each line")
    lines = [summary(paradigm, [outcomes]) for paradigm, outcomes in results.items()]
    if identical := [pair.where for pair in taken if pair.good == pair.bad]:
        others = f" and {len(identical) - 1:,} more" * (len(identical) > 1)
        log.warning(f"pairs of identical sentences count one half: {identical[0]}{others}")
    if skipped := [line["paradigm"] for line in lines if line["accuracy"] is None]:
        why = f"more than {MOST_UNKNOWN:.0%} of the pairs have unknown words"
        others = f", and {len(skipped) - 10:,} more" * (len(skipped) > 10)
        log.warning(f"no comparison, as {why}: {', '.join(skipped[:10])}{others}")
    return [*lines, summary("mean", list(results.values()))] if len(lines) > 1 else lines


def summary(name: str, groups: Sequence[tuple[list[float], list[float]]]) -> dict[str, Any]:
    """Return the figures of a paradigm, or of the mean over the compared ones of several paradigms.

    groups  for each paradigm the outcomes, 0, 0.5, or 1, of pairs with unknown words, and of the other pairs

    The interval of the mean combines the Wilson intervals of the paradigms (Newcombe 1998, as for a difference).
    """
    unknown, known = ([outcome for group in groups for outcome in group[side]] for side in (0, 1))
    compared = [kept for lost, kept in groups if kept and len(lost) <= MOST_UNKNOWN * (len(lost) + len(kept))]
    accuracy = low = high = None
    if compared:
        shares = np.array([np.mean(kept) for kept in compared])
        bounds = np.array([wilson(sum(kept), len(kept)) for kept in compared])
        accuracy = float(shares.mean())
        reach = [float(np.linalg.norm(shares - end)) / len(shares) for end in bounds.T]
        low, high = accuracy - reach[0], accuracy + reach[1]
    figures = accuracy, low, high, float(np.mean(unknown)) if unknown else None
    return dict(zip(PAIR_COLUMNS, (name, len(unknown + known), known.count(0.5), len(unknown), *figures)))
