"""Signs that training has broken down, other than values that are not finite."""

import math

WORST_LOSS = 2.0  # mean loss of an epoch, relative to that of a uniform guess
LARGEST = 1e4  # magnitude of a parameter; useful ones stay below 100


def is_sane(*arrays):
    """Whether all parameters are finite and of a magnitude that a useful model can have."""
    return all(-LARGEST <= array.min() and array.max() <= LARGEST for array in arrays if array.size)


def loss_limit(uniform_loss):
    """Mean loss of an epoch, in nats, above which training counts as diverged.

    uniform_loss  mean loss of a model that has learned nothing: log V for V words, log(1 + S) with S samples,
                  (1 + K) log 2 with K negative samples
    """
    return WORST_LOSS * uniform_loss


def finite(figures):
    """A dict of figures as JSON can hold it: None for numbers that are infinite or NaN."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in figures.items()
    }


def perplexity(loss):
    """exp(loss) of a mean loss in nats; infinite beyond exp(690), the largest number of model files and checkpoints."""
    return math.inf if loss > 690 else math.exp(loss)
