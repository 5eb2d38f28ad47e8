"""Criteria for divergence in training, in addition to non-finite values."""

import numpy as np

WORST_LOSS = 2.0  # mean loss of an epoch, relative to the loss of uniform predictions
LARGEST = 1e4  # magnitude of a parameter


def is_sane(*arrays: np.ndarray) -> bool:
    """Return whether all parameters are finite, with magnitudes up to LARGEST."""
    return all(-LARGEST <= array.min() and array.max() <= LARGEST for array in arrays if array.size)


def loss_limit(uniform_loss: float) -> float:
    """Return the mean loss of an epoch, in nats, above which training counts as diverged.

    uniform_loss  mean loss of an untrained model: log V for V words, log(1 + S) with S samples, (1 + K) log 2 with
                  K negative samples
    """
    return WORST_LOSS * uniform_loss


def beyond(limit: float) -> str:
    """Return the message for a loss above loss_limit's `limit`."""
    return f"the loss exceeds {limit:.1f} nats, {WORST_LOSS:g} times that of uniform predictions"
