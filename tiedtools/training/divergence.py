"""Signs that training has broken down, other than values that are not finite."""

WORST_LOSS = 2.0  # mean loss of an epoch, relative to that of a uniform guess
LARGEST = 1e4  # magnitude of a parameter


def is_sane(*arrays):
    """Whether all parameters are finite and of a magnitude that a useful model can have."""
    return all(-LARGEST <= array.min() and array.max() <= LARGEST for array in arrays if array.size)


def loss_limit(uniform_loss):
    """Mean loss of an epoch, in nats, above which training counts as diverged.

    uniform_loss  mean loss of a model that has learned nothing: log V for V words, log(1 + S) with S samples,
                  (1 + K) log 2 with K negative samples
    """
    return WORST_LOSS * uniform_loss


def beyond(limit):
    """What is wrong with a loss beyond loss_limit's `limit`, in words."""
    return f"the loss is beyond {limit:.1f} nats, {WORST_LOSS:g} times that of a uniform guess"
