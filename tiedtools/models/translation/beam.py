"""Beam search with a translation model, and probabilities of given translations.

A model is any object with these methods; S source positions, B sentences or hypotheses, V words of the target:

    encode(source)      int32 [S, B], each column ended by `</s>` (0) and padded with -1 -> memory of B sentences
    memory.select(rows) the memory of sentences `rows`, int [B']
    start(memory)       the state before the first word, a tuple of arrays whose axis 1 has length B
    best(previous, state, memory, k)
                        int32 [B], -1 before the first word -> (log probabilities of the k most probable next words,
                        highest first [B, k], their ids, state, attention weights [B, S]); of words that do not exist,
                        -inf and -1
    score_next(words, previous, state, memory)
                        likewise, of the next words, int32 [B]: (log probabilities [B], state, weights)
    score(source, target)
                        -> log probabilities [T, B], 0 where the target is -1

Log probabilities are natural logarithms.
"""

from typing import Any, NamedTuple

import numpy as np

from tiedtools.base.errors import TiedtoolsError


class Hypothesis(NamedTuple):
    """A translation: ids, int32 [n], without `</s>`; log probability, with it; attention weights [n + 1, S] or None."""

    ids: np.ndarray
    logprob: float
    weights: Any = None

    def score(self, normalize):
        """Return the log probability, or, if `normalize`, that per word, `</s>` included."""
        return self.logprob / (len(self.ids) + 1 if normalize else 1)


def search(model, source, beam=5, max_length=200, normalize=False, banned=None, align=False):
    """Return the hypotheses for each sentence, a list of Hypothesis lists, best first.

    source      int32 [S, B], as for model.encode
    beam        number of hypotheses; 1: greedy search. As in DL4MT, each that ends leaves the beam narrower by one
    max_length  most words of a hypothesis without `</s>`; it is ended there
    normalize   rank by log probability per word
    banned      a word that is never chosen
    align       keep the attention weights

    The hypothesis of greedy search is followed even where it is not among the best, so that the result never scores
    below it. All hypotheses of all sentences are rows of one `best`; those of one sentence are consecutive.

    Raises TiedtoolsError if the model outputs NaN.
    """
    S, B = source.shape
    memory = model.encode(source)
    state, here = model.start(memory), memory
    owner, room, found = np.arange(B), np.full(B, beam), [[] for _ in range(B)]
    previous, scores, greedy = np.full(B, -1, np.int32), np.zeros(B), np.ones(B, bool)
    words, weights = np.empty((B, 0), np.int32), np.empty((B, 0, S), np.float32)
    while len(owner):
        if words.shape[1] < max_length:
            logprobs, nexts, state, attention = model.best(previous, state, here, beam + (banned is not None))
        else:
            nexts = np.zeros((len(owner), 1), np.int32)
            logprobs, state, attention = model.score_next(nexts[:, 0], previous, state, here)
            logprobs = logprobs[:, None]
        rows, nexts, scores, first = candidates(scores, logprobs, nexts, banned)
        greedy = greedy[rows] & first
        chosen, inside = select(owner[rows], scores, room, greedy)
        rows, nexts, scores, greedy = rows[chosen], nexts[chosen], scores[chosen], greedy[chosen]
        owner, words = owner[rows], words[rows]
        if align:
            weights = np.concatenate([weights[rows], attention[rows, None]], 1)
        ended = nexts == 0
        for k in np.flatnonzero(ended):
            found[owner[k]].append(Hypothesis(words[k], float(scores[k]), weights[k] if align else None))
        np.subtract.at(room, owner[ended & inside], 1)
        on = np.flatnonzero(~ended & ((room[owner] > 0) | greedy))
        state = tuple(part[:, rows[on]] for part in state)
        owner, previous, scores, greedy = owner[on], nexts[on], scores[on], greedy[on]
        words = np.column_stack([words[on], previous])
        weights = weights[on] if align else weights
        here = memory.select(owner)
    return [sorted(hypotheses, key=lambda h: -h.score(normalize)) for hypotheses in found]


def candidates(scores, logprobs, words, banned):
    """Return the continuations of hypotheses by k words each, those of one after those of the other, as 4 arrays.

    They are: the hypothesis, the next word, the log probability, and whether it is the best of its hypothesis.

    scores  log probabilities of the hypotheses        logprobs, words  [B, k], as from model.best
    """
    if not (logprobs[:, 0] > -np.inf).all():
        raise TiedtoolsError("the model outputs NaN instead of probabilities; train it again")
    rows, k = np.nonzero((words >= 0) & (words != (-1 if banned is None else banned)))
    return rows, words[rows, k], scores[rows] + logprobs[rows, k], np.diff(rows, prepend=-1) > 0


def select(owner, scores, room, greedy):
    """Return the candidates that remain, int [n], by sentence and best first, and whether each is among the best.

    owner   sentence of each candidate, ascending
    room    number of hypotheses that each sentence's beam has room for
    greedy  whether a candidate is that of greedy search, which always remains
    """
    order = np.lexsort((-scores, owner))
    inside = np.arange(len(order)) - np.searchsorted(owner, owner) < room[owner]
    kept = inside | greedy[order]
    return order[kept], inside[kept]


def force(model, source, target, align=False):
    """Return (log probabilities [T, B] of the words of given translations, attention weights [T, B, S] or None).

    source, target  int32 [S, B] and [T, B], ended by `</s>` and padded with -1
    align           return the attention weights, which takes longer
    """
    if not align:
        return model.score(source, target), None
    memory = model.encode(source)
    state, previous = model.start(memory), np.full(source.shape[1], -1, np.int32)
    logprobs, weights = [], []
    for row in target:
        found, state, attention = model.score_next(row, previous, state, memory)
        logprobs.append(found)
        weights.append(attention)
        previous = row
    return np.array(logprobs), np.array(weights)
