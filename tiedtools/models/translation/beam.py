"""Beam search with a translation model, and probabilities of existing translations.

A model is any object with these methods; S source positions, B sentences or hypotheses, V words of the target:

    encode(source)      int32 [S, B], each column ended by `</s>` (0) and padded with -1 -> memory of B sentences
    memory.select(rows) the memory of sentences `rows`, int [B']
    start(memory)       the state before the first word, a tuple of arrays whose axis 1 has length B
    best(previous, state, memory, k)
                        int32 [B], -1 before the first word -> (log probabilities of the k most probable next words,
                        highest first [B, k], their ids, state, attention weights [B, S]); -inf and -1 if fewer than k
                        words exist
    score_next(words, previous, state, memory)
                        int32 [B] -> (log probabilities of these next words [B], state, attention weights)
    score(source, target)
                        -> log probabilities [T, B], 0 where the target is -1

Log probabilities are natural logarithms.
"""

from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError

LENGTH = 200  # least default of max_length


class Hypothesis(NamedTuple):
    """A translation: ids, int32 [n], without `</s>`; log probability, with it; attention weights [n + 1, S] or None."""

    ids: np.ndarray
    logprob: float
    weights: Any = None

    def score(self, normalize: bool) -> float:
        """Return the log probability; if `normalize`, the log probability per word, `</s>` included."""
        return self.logprob / (len(self.ids) + 1 if normalize else 1)


def search(
    model: Any, source: np.ndarray, beam: int = 5, max_length: int | None = None, normalize: bool = False,
    banned: int | None = None, align: bool = False,
) -> list[list[Hypothesis]]:  # fmt: skip
    """Return the hypotheses for each sentence, best first.

    source      int32 [S, B], as for model.encode
    beam        number of hypotheses; 1: greedy search. As in DL4MT, each hypothesis that ends narrows the beam by one
    max_length  maximum number of words of a hypothesis, without `</s>`; longer hypotheses are ended there. None: twice
                the length of the longest source, and at least LENGTH
    normalize   rank by log probability per word
    banned      a word that is never chosen
    align       store the attention weights in the hypotheses

    The hypothesis of greedy search always remains, even if it is not among the best, so that the result never scores
    below greedy search. One `best` extends the hypotheses of all sentences; rows of the same sentence are consecutive.

    Raises TiedtoolsError if the model outputs NaN.
    """
    S, B = source.shape
    max_length = max_length or max(LENGTH, 2 * S)
    memory = model.encode(source)
    state, row_memory = model.start(memory), memory
    sentence, width, hypotheses = np.arange(B), np.full(B, beam), [[] for _ in range(B)]
    previous, scores, greedy = np.full(B, -1, np.int32), np.zeros(B), np.ones(B, bool)
    words, weights = np.empty((B, 0), np.int32), np.empty((B, 0, S), np.float32)
    while len(sentence):
        if words.shape[1] < max_length:
            logprobs, nexts, state, attention = model.best(previous, state, row_memory, beam + (banned is not None))
        else:
            nexts = np.zeros((len(sentence), 1), np.int32)
            logprobs, state, attention = model.score_next(nexts[:, 0], previous, state, row_memory)
            logprobs = logprobs[:, None]
        rows, nexts, scores, first = candidates(scores, logprobs, nexts, banned)
        greedy = greedy[rows] & first
        chosen, inside = select(sentence[rows], scores, width, greedy)
        rows, nexts, scores, greedy = rows[chosen], nexts[chosen], scores[chosen], greedy[chosen]
        sentence, words = sentence[rows], words[rows]
        if align:
            weights = np.concatenate([weights[rows], attention[rows, None]], 1)
        ended = nexts == 0
        for k in np.flatnonzero(ended):
            hypotheses[sentence[k]].append(Hypothesis(words[k], float(scores[k]), weights[k] if align else None))
        np.subtract.at(width, sentence[ended & inside], 1)
        live = np.flatnonzero(~ended & ((width[sentence] > 0) | greedy))
        state = tuple(part[:, rows[live]] for part in state)
        sentence, previous, scores, greedy = sentence[live], nexts[live], scores[live], greedy[live]
        words = np.column_stack([words[live], previous])
        weights = weights[live] if align else weights
        row_memory = memory.select(sentence)
    return [sorted(unsorted, key=lambda h: -h.score(normalize)) for unsorted in hypotheses]


def candidates(
    scores: np.ndarray, logprobs: np.ndarray, words: np.ndarray, banned: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the continuations of each hypothesis by k words, hypothesis by hypothesis, as 4 arrays.

    These are the hypothesis, the next word, the log probability, and whether it is the best of its hypothesis.

    scores  log probabilities of the hypotheses        logprobs, words  [B, k], as from model.best
    """
    if not (logprobs[:, 0] > -np.inf).all():
        raise TiedtoolsError("the model outputs NaN instead of probabilities; train it again")
    rows, k = np.nonzero((words >= 0) & (words != (-1 if banned is None else banned)))
    return rows, words[rows, k], scores[rows] + logprobs[rows, k], np.diff(rows, prepend=-1) > 0


def select(
    sentence: np.ndarray, scores: np.ndarray, width: np.ndarray, greedy: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the candidates that remain, int [n], by sentence and best first, and whether each is among the best.

    sentence  sentence of each candidate, ascending
    width     width of each sentence's beam
    greedy    whether greedy search chooses a candidate, which then always remains
    """
    order = np.lexsort((-scores, sentence))
    inside = np.arange(len(order)) - np.searchsorted(sentence, sentence) < width[sentence]
    remaining = inside | greedy[order]
    return order[remaining], inside[remaining]


def force(model: Any, source: np.ndarray, target: np.ndarray, align: bool = False) -> tuple[np.ndarray, Any]:
    """Return (log probabilities [T, B] of the words of translations, attention weights [T, B, S] or None).

    source, target  int32 [S, B] and [T, B], ended by `</s>` and padded with -1
    align           return the attention weights, which takes longer
    """
    if not align:
        return model.score(source, target), None
    memory = model.encode(source)
    state, previous = model.start(memory), np.full(source.shape[1], -1, np.int32)
    logprobs, weights = [], []
    for row in target:
        logprobs_of_row, state, attention = model.score_next(row, previous, state, memory)
        logprobs.append(logprobs_of_row)
        weights.append(attention)
        previous = row
    return np.array(logprobs), np.array(weights)
