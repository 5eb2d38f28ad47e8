"""Log probabilities of texts under a language model, in windows whose size affects only speed and memory.

A model is any object with `start` and `score`; see fit.py. Log probabilities are natural logarithms.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tiedtools.network.network import State

TIME = 256  # steps of a window
POSITIONS = 4096  # positions of a window, all rows together; bounds the model's workspace


def memory(*texts: np.ndarray | None) -> int:
    """Return the bytes that `evaluate` needs for the longest of several texts, arrays of IDs or None."""
    return 36 * max((len(ids) for ids in texts if ids is not None), default=0)


def longest(rows: int) -> int:
    """Return the number of steps in a window of `rows` rows."""
    return max(1, min(TIME, POSITIONS // rows))


def score(model: Any, ids: np.ndarray, targets: np.ndarray, state: State) -> tuple[np.ndarray, State]:
    """Call model.score window by window: ids, targets int32 [T, B] -> (log probabilities float64 [T, B], state)."""
    T, B = ids.shape
    step = longest(B)
    logprobs = np.empty((T, B))
    for t in range(0, T, step):
        logprobs[t : t + step], state = model.score(ids[t : t + step], targets[t : t + step], state)
    return logprobs, state


def streams(
    model: Any, text: np.ndarray, batch: int, step: int | None = None,
    ids: Callable[[np.ndarray], np.ndarray] = lambda text: text, fresh: bool = False, **options: Any,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """Split a text into `batch` independent streams of equal length and score them in parallel.

    text     int32 [n], may be memory-mapped
    step     words per window and stream; None: as many as TIME and POSITIONS allow
    ids      maps a part of the text to the IDs that the model reads and predicts; -1: none
    fresh    true: a stream reads `</s>` before its first word; false: the word before it in the text
    options  keyword arguments of model.score

    Yields (positions int64, their log probabilities float64) for each window, without positions of ID -1.
    """
    n, length = len(text), -(-len(text) // batch)
    starts = np.arange(0, n, length)
    state, step = model.start(len(starts)), step or longest(len(starts))
    for t in range(0, length, step):
        positions = np.arange(t, min(t + step, length))[:, None] + starts
        # Before position 0, the model reads text[-1], the end of a line.
        inputs, targets = ids(text[np.minimum(positions, n) - 1]), ids(text[np.minimum(positions, n - 1)])
        inputs[0] = 0 if fresh and not t else inputs[0]
        targets[positions >= n] = -1
        logprobs, state = model.score(inputs, targets, state, **options)
        yield positions[targets >= 0], logprobs[targets >= 0]


def evaluate(
    model: Any, ids: np.ndarray, batch: int = 1, between: Callable[[], object] = lambda: None, samples: int = 0
) -> np.ndarray:
    """Return the natural log probability of each token of a text in memory, float64 [tokens].

    Each of the `batch` streams starts from `</s>` and the initial state, in windows as large as in training. Tokens of
    ID -1 are not predicted; a model that accepts them reads no word.

    between  called after each window
    samples  number of dropout-mask samples to average probabilities over (Monte Carlo dropout, Gal); 0: no dropout
    """
    step = max(1, model.config.steps * model.config.batch // batch)
    total = np.full(len(ids), -np.inf)
    for sample in range(samples) if samples else [None]:
        logs = np.empty(len(ids))
        options: dict[str, Any] = {} if sample is None else {"sample": sample}
        for positions, logprobs in streams(model, np.asarray(ids), batch, step, fresh=True, **options):
            logs[positions] = logprobs
            between()
        with np.errstate(invalid="ignore"):  # a diverged model gives nan, which the caller checks
            np.logaddexp(total, logs, out=total)
    return (total - math.log(max(samples, 1)))[np.asarray(ids) >= 0]
