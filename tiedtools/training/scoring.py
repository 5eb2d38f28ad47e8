"""Log probabilities of texts by a language model, in windows whose size is only a matter of speed and memory.

A model is anything with `start` and `score`; see fit.py. Log probabilities are natural.
"""

import math

import numpy as np

TIME = 256  # steps of a window
POSITIONS = 4096  # of a window in all its rows, which bounds what the model needs in memory


def memory(*texts):
    """Bytes that `evaluate` takes for any of these texts, None or ids."""
    return 36 * max((len(ids) for ids in texts if ids is not None), default=0)


def longest(rows):
    """Steps of a window of so many rows."""
    return max(1, min(TIME, POSITIONS // rows))


def score(model, ids, targets, state):
    """model.score in windows: ids, targets int32 [T, B] -> (log probabilities float64 [T, B], state)."""
    T, B = ids.shape
    step = longest(B)
    logprobs = np.empty((T, B))
    for t in range(0, T, step):
        logprobs[t : t + step], state = model.score(ids[t : t + step], targets[t : t + step], state)
    return logprobs, state


def streams(model, text, batch, step=None, ids=lambda text: text, fresh=False, **options):
    """Cut a text into `batch` streams of equal length, which know nothing of each other, and score them side by side.

    text   int32 [n], which may be on disk        ids(part of it): what the model reads and predicts, -1: nothing
    step   words of a window in each stream; None: as many as bounded memory allows
    fresh  whether a stream reads `</s>` before its first word; otherwise the word that is before it in the text
    options  of model.score

    Yields (positions int64, their log probabilities float64) window by window, without those of id -1.
    """
    n, length = len(text), -(-len(text) // batch)
    starts = np.arange(0, n, length)
    state, step = model.start(len(starts)), step or longest(len(starts))
    for t in range(0, length, step):
        at = np.arange(t, min(t + step, length))[:, None] + starts
        # Before a text, that is text[-1], there was the end of a line.
        read, targets = ids(text[np.minimum(at, n) - 1]), ids(text[np.minimum(at, n - 1)])
        read[0] = 0 if fresh and not t else read[0]
        targets[at >= n] = -1
        logprobs, state = model.score(read, targets, state, **options)
        yield at[targets >= 0], logprobs[targets >= 0]


def evaluate(model, ids, batch=1, between=lambda: None, samples=0):
    """Natural log probability of each token of a text in memory, float64 [tokens], in windows as large as in training.

    Each of the `batch` streams starts from `</s>` and the state before any word. Every token is predicted, but none of
    id -1, which a model that takes such ids reads as no word.

    between  called after each window
    samples  average probabilities over so many draws of dropout masks (Gal's Monte Carlo dropout); 0: no dropout
    """
    step = max(1, model.config.steps * model.config.batch // batch)
    total = np.full(len(ids), -np.inf)
    for sample in range(samples) if samples else [None]:
        logs, options = np.empty(len(ids)), {} if sample is None else {"sample": sample}
        for at, logprobs in streams(model, np.asarray(ids), batch, step, fresh=True, **options):
            logs[at] = logprobs
            between()
        with np.errstate(invalid="ignore"):  # nan of a model that has diverged, which its users see
            np.logaddexp(total, logs, out=total)
    return (total - math.log(max(samples, 1)))[np.asarray(ids) >= 0]
