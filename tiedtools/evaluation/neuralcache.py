"""A continuous cache, which makes recent words more probable (Grave, Joulin, and Usunier 2017).

    P(w) = (1 - lambda) P_model(w) + lambda P_cache(w)
    P_cache(w) proportional to the sum over i = t - N .. t - 1 with w_{i+1} = w of exp(theta h_t . h_i)

h_t is the input of the model's softmax after reading w_1 .. w_t. `</s>` is a word like any other. While the cache is
empty, P = P_model. The model itself does not change.
"""

import math
from typing import Any

import numpy as np

from tiedtools.base.settings import Range, checked
from tiedtools.kernels.output.neuralcache import KEYS, NONE, ROWS, add_scores
from tiedtools.network.network import State
from tiedtools.network.params import Buffers
from tiedtools.network.threads import exclusive
from tiedtools.training.scoring import TIME


def cached(model: Any, cache: int, cache_theta: float, cache_lambda: float) -> Any:
    """Return the language model with a cache of the last `cache` words; 0: return the model itself.

    Raises Contradiction for wrong values.
    """
    size = checked("cache", cache, int, Range(0))
    theta = checked("cache_theta", cache_theta, float, Range(0, 1000))
    weight = checked("cache_lambda", cache_lambda, float, Range(0, 1, min_open=True, max_open=True))
    return Cached(model, size, theta, weight) if size else model


class Cached:
    """A language model with a continuous cache; it scores like the model alone.

    size            N, the number of words in the cache
    theta, weight   theta and lambda

    A state is the state of the model followed by the cache: the words read, int32 [M, B], and h after each word, in
    arrays [steps, B, n] of M steps in total. A caller may broadcast the state of one sequence to B without copying it.
    """

    def __init__(self, model: Any, size: int, theta: float, weight: float) -> None:
        self.model, self.size, self.theta = model, size, theta
        self.vocab, self.kind, self.params, self.settings = model.vocab, model.kind, model.params, model.settings
        self.config = model.config
        self.logs = math.log1p(-weight), math.log(weight)
        self.parts = len(model.start(1))
        self.buffers = Buffers(model.params.dtype)

    def start(self, batch: int) -> State:
        return *self.model.start(batch), np.zeros((0, batch), np.int32)

    def extended(self, state: State, ids: np.ndarray, x: np.ndarray) -> State:
        """Return the cache (words, *keys) after reading ids [T, B]: at least the last N + T steps.

        x  h after each of the ids, [T, B, n]
        """
        words, *keys = state[self.parts :]
        keys.append(x)
        if keys[1:] and len(keys[-2]) < TIME:  # keeps the arrays few and large; large arrays are not copied
            keys[-2:] = [np.concatenate(keys[-2:])]
        while sum(map(len, keys[1:])) >= self.size + len(ids):
            del keys[0]
        return np.concatenate([words, ids])[-sum(map(len, keys)) :], *keys

    @exclusive
    def score(self, ids: np.ndarray, targets: np.ndarray, state: State, **options: Any) -> tuple[np.ndarray, State]:
        """Score as in fit.py. Only words that have been read enter the cache, not `targets`."""
        logprobs, after, x = self.model.score(ids, targets, state[: self.parts], outputs=True, **options)
        words, *keys = cache = self.extended(state, ids, x)
        threads, (T, B, n) = self.params.team.threads, x.shape
        queries, sums = x.dtype.type(self.theta) * x, np.zeros((3, B, T), x.dtype)
        sums[0] = NONE
        scratch = self.buffers("Z", threads, KEYS + 2, ROWS), self.buffers("XT", threads, n, ROWS)
        columns, i = np.ascontiguousarray(targets.T), 0
        for part in keys:
            following, first = words[i + 1 :][: len(part)], i + T - len(words)
            self.params.team(add_scores, sums, *scratch, queries, part, following, columns, first, self.size)
            i += len(part)
        peak, total, matched = sums.astype(float).swapaxes(1, 2)
        mixed = self.mixed(logprobs, matched, total)
        return np.where((targets >= 0) & (peak > NONE), mixed, logprobs), (*after, *cache)

    @exclusive
    def predict(self, ids: np.ndarray, state: State) -> tuple[np.ndarray, State]:
        """Return log probabilities, float64 [B, V], of the words that follow ids, int32 [T, B], and the state there."""
        logprobs, after, x = self.model.predict(ids, state[: self.parts], outputs=True)
        words, *keys = cache = self.extended(state, ids, x)
        latest = slice(-self.size, None)
        for b, logs in enumerate(logprobs):
            scores = np.concatenate([part[:, b] @ x[-1, b] for part in keys])[:-1][latest]
            following = words[1:, b][latest]
            scores, following = self.theta * scores[following >= 0].astype(float), following[following >= 0]
            if len(scores):
                sums = np.bincount(following, np.exp(scores - scores.max()))
                in_cache = np.flatnonzero(sums)
                mixed = self.mixed(logs[in_cache], sums[in_cache], sums.sum())
                logs += self.logs[0]
                logs[in_cache] = mixed
        return logprobs, (*after, *cache)

    @np.errstate(divide="ignore", invalid="ignore")  # probability 0; NaN from the model; a cache without words
    def mixed(self, of_model: np.ndarray, matched: np.ndarray, total: np.ndarray) -> np.ndarray:
        """Return the log probabilities of the mixture; the cache's probabilities are matched / total."""
        return np.logaddexp(self.logs[0] + of_model, self.logs[1] + np.log(matched / total))
