"""Surprisal of each word of a text under a language model, with the entropy of its prediction and its rank.

surprisal = -log p(w | words before)    entropy = - sum over v of p(v) log p(v)    rank = 1 + |{v: p(v) > p(w)}|
"""

import collections
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tiedtools.evaluation.lexicon import NEWLINE, OOV, Lexicon, raw_lines, refuse_empty
from tiedtools.evaluation.perplexity import Piece, by_line, reject_nan, score, score_text
from tiedtools.network.network import State
from tiedtools.text.sentences import WORD
from tiedtools.text.vocab import END

UNITS = {"bits": math.log(2), "nats": 1.0}
WORDS = 1 << 10  # words scored at a time
LEAST = -1e300  # log of 0 for which 0 log 0 is 0
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
        chunk, line = [], ""
        for _, line in raw_lines(path, errors):
            spans, length = [match.span() for match in WORD.finditer(line)], len(line.rstrip("\r\n"))
            places.append([*spans, (length, length)])
            chunk += [*(line[i:j] for i, j in spans), NEWLINE]
            if len(chunk) >= WORDS:
                yield chunk
                chunk = []
        refuse_empty(path, line)
        yield chunk

    scored = score_text(model, lexicon, path, errors, independent, batch, words(), measure)
    for number, line in enumerate(by_line(scored), 1):
        rows = list(table(number, line, places.popleft(), unit, mark))
        yield line._replace(logprobs=line.logprobs[:, 0]), rows


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
