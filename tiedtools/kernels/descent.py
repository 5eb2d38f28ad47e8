"""Stochastic gradient descent with gradient clipping by global norm."""

import numpy as np

from tiedtools.kernels.barrier import partition, sync
from tiedtools.kernels.jit import jit


@jit
def step(worker, norm, squares, theta, grad, dense, starts, sizes, lr, clip, decay):
    """theta -= lr * grad * min(1, clip / |grad|), then theta -= decay * theta.

    theta, grad    [N]; after the first `dense` elements, only the segments given by `starts` and `sizes` (int64 [R],
                   disjoint) have a gradient
    norm           float64 [1], set to |grad|; if that is not finite, the parameters do not change
    squares        float64 [threads, 8]: scratch
    clip           maximum norm; infinity: no clipping
    """
    begin, end = partition(worker, dense)
    first, last = partition(worker, starts.size)
    total = square(grad[begin:end])
    for k in range(first, last):
        total += square(grad[starts[k] : starts[k] + sizes[k]])
    squares[worker[0], 0] = total
    sync(worker)
    total = 0.0
    for thread in range(worker[1]):
        total += squares[thread, 0]
    size = np.sqrt(total)
    if worker[0] == 0:
        norm[0] = size
    if not np.isfinite(size):
        return
    if size > clip:
        lr *= clip / size
    rate = theta.dtype.type(lr)
    descend(theta[begin:end], grad[begin:end], rate)
    for k in range(first, last):
        segment = slice(starts[k], starts[k] + sizes[k])
        descend(theta[segment], grad[segment], rate)
    if decay:
        sync(worker)
        begin, end = partition(worker, theta.size)
        descend(theta[begin:end], theta[begin:end], theta.dtype.type(decay))


@jit(relaxed=True)
def square(grad):
    """Return the sum of squares: blocks of 4096 elements in their own type, the sum of blocks in float64."""
    total = 0.0
    for start in range(0, grad.size, 4096):
        part = grad[start : start + 4096]
        block = part[0] * part[0] - part[0] * part[0]
        for k in range(part.size):
            block += part[k] * part[k]
        total += block
    return total


@jit
def descend(theta, grad, rate):
    """theta -= rate * grad."""
    for k in range(theta.size):
        theta[k] -= rate * grad[k]
