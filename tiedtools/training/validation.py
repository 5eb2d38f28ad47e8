"""The log probabilities that a language model gives the tokens of a text in memory: validation, and the test."""

import math

import numpy as np


def memory(*texts):
    """Bytes that `evaluate` takes for any of these texts, None or ids."""
    return 36 * max((len(ids) for ids in texts if ids is not None), default=0)


def evaluate(model, ids, batch=1, between=lambda: None, samples=0):
    """Natural log probability of each token of a text, float64 [tokens].

    The text is cut into `batch` streams. Each starts from `</s>` and the state before any word; states are carried, so
    that the result does not depend on how streams are cut into windows. Every token is predicted, but none of id -1,
    which a model that takes such ids reads as no word.

    between  called between windows
    samples  average probabilities over so many draws of dropout masks (Gal's Monte Carlo dropout); 0: no dropout
    """
    length = -(-len(ids) // batch)
    padded = lambda fill: np.append(ids, np.full(length * batch - len(ids), fill, np.int32)).reshape(batch, length).T
    targets = np.ascontiguousarray(padded(-1), np.int32)
    inputs = np.zeros_like(targets)
    inputs[1:] = padded(0)[:-1]
    steps = max(1, model.config.steps * model.config.batch // batch)  # as many words at a time as in training

    total = np.full(targets.shape, -np.inf)
    for sample in range(samples) if samples else [None]:
        logs, state = np.empty(targets.shape), model.start(batch)
        options = {} if sample is None else {"sample": sample}
        for start in range(0, length, steps):
            window = slice(start, start + steps)
            logs[window], state = model.score(inputs[window], targets[window], state, **options)
            between()
        with np.errstate(invalid="ignore"):  # nan of a model that has diverged, which its users see
            np.logaddexp(total, logs, out=total)
    return (total - math.log(max(samples, 1))).T[targets.T >= 0]
