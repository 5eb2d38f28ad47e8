"""Optimization steps over flat arrays of parameters and gradients, with clipping by global norm.

theta, grad  [N]; after the first `dense` elements, only the segments given by `starts` and `sizes` (int64 [R],
             disjoint) have a gradient
Kernels without these arguments read the gradient of all elements, which is 0 outside the segments.
"""

import numpy as np

from tiedtools.kernels.base.barrier import partition, sync
from tiedtools.kernels.base.jit import jit

BLOCK = 1024  # elements that stay in the L1 cache between loops


@jit
def square_sums(worker, sums, grad, dense, starts, sizes):
    """Set sums[thread, 0], float64 [threads, 8], to the sum of squares of this thread's part of the gradient."""
    begin, end = partition(worker, dense)
    first, last = partition(worker, starts.size)
    total = square(grad[begin:end])
    for k in range(first, last):
        total += square(grad[starts[k] : starts[k] + sizes[k]])
    sums[worker[0], 0] = total


@jit
def step(worker, theta, grad, dense, starts, sizes, lr, shrink):
    """theta -= lr * grad + shrink * theta."""
    begin, end = partition(worker, dense)
    first, last = partition(worker, starts.size)
    rate = theta.dtype.type(lr)
    if shrink:
        share, x, g = theta.dtype.type(shrink), theta[begin:end], grad[begin:end]
        for k in range(x.size):
            x[k] -= rate * g[k] + share * x[k]
        begin, end = partition(worker, theta.size - dense)
        rest = theta[dense + begin : dense + end]
        descend(rest, rest, share)
        sync(worker)
    else:
        descend(theta[begin:end], grad[begin:end], rate)
    for k in range(first, last):
        segment = slice(starts[k], starts[k] + sizes[k])
        descend(theta[segment], grad[segment], rate)


@jit
def add(worker, y, x, factor):
    """y += factor * x."""
    begin, end = partition(worker, y.size)
    descend(y[begin:end], x[begin:end], y.dtype.type(-factor))


@jit
def average(worker, mean, theta, weight):
    """mean += weight * (theta - mean)."""
    begin, end = partition(worker, theta.size)
    share, m, x = theta.dtype.type(weight), mean[begin:end], theta[begin:end]
    for k in range(m.size):
        m[k] += share * (x[k] - m[k])


@jit
def adam(worker, theta, grad, first, second, lr, shrink, scale, beta1, beta2, bias, epsilon):
    """Adam (Kingma & Ba 2015): with g = scale * grad,

    first = beta1 first + (1 - beta1) g        second = beta2 second + (1 - beta2) g^2
    theta -= lr first / (sqrt(second / bias) + epsilon) + shrink theta
    """
    begin, end = partition(worker, theta.size)
    one = theta.dtype.type(1)
    rate, share = theta.dtype.type(lr), theta.dtype.type(shrink)
    scale, epsilon = theta.dtype.type(scale), theta.dtype.type(epsilon)
    beta1, beta2, correction = theta.dtype.type(beta1), theta.dtype.type(beta2), theta.dtype.type(1 / bias)
    for start in range(begin, end, BLOCK):  # the compiler vectorizes loops that write one array
        part = slice(start, min(start + BLOCK, end))
        x, g, m, v = theta[part], grad[part], first[part], second[part]
        for k in range(x.size):
            m[k] = beta1 * m[k] + (one - beta1) * (scale * g[k])
        for k in range(x.size):
            v[k] = beta2 * v[k] + (one - beta2) * (scale * g[k]) * (scale * g[k])
        for k in range(x.size):
            x[k] -= rate * m[k] / (np.sqrt(v[k] * correction) + epsilon) + share * x[k]


@jit
def adadelta(worker, theta, grad, squares, changes, lr, shrink, scale, rho, epsilon):
    """Adadelta (Zeiler 2012): with g = scale * grad,

    squares = rho squares + (1 - rho) g^2      d = sqrt(changes + epsilon) / sqrt(squares + epsilon) g
    changes = rho changes + (1 - rho) d^2      theta -= lr d + shrink theta
    """
    begin, end = partition(worker, theta.size)
    one = theta.dtype.type(1)
    rate, share, scale = theta.dtype.type(lr), theta.dtype.type(shrink), theta.dtype.type(scale)
    rho, epsilon = theta.dtype.type(rho), theta.dtype.type(epsilon)
    for start in range(begin, end, BLOCK):
        part = slice(start, min(start + BLOCK, end))
        x, g, s, c = theta[part], grad[part], squares[part], changes[part]
        for k in range(x.size):
            s[k] = rho * s[k] + (one - rho) * (scale * g[k]) * (scale * g[k])
        for k in range(x.size):
            d = np.sqrt((c[k] + epsilon) / (s[k] + epsilon)) * (scale * g[k])
            x[k] -= rate * d + share * x[k]
        for k in range(x.size):
            d = np.sqrt((c[k] + epsilon) / (s[k] + epsilon)) * (scale * g[k])
            c[k] = rho * c[k] + (one - rho) * d * d


@jit(relaxed=True)
def square(grad):
    """Return the sum of squares: blocks of 4096 elements in the type of `grad`, the sum of blocks in float64."""
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
