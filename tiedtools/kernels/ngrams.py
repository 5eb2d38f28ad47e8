"""Features of the last words for the softmax over classes and words, kept in one hashed array.

Mikolov et al. 2011, "Strategies for training large scale neural network language models": a maximum entropy model
inside the network. Each history of 0 .. order - 1 words has a slot in the array, from which on the weights of all
classes follow each other, or in its second half those of the words of a class. The slots are those of rnnlm, so that
its models can be read; histories whose slots overlap share weights.
"""

import numpy as np

from tiedtools.kernels.jit import jit

MAX_ORDER = 20
PRIMES = np.array([
    108641969, 116049371, 125925907, 133333309, 145678979, 175308587, 197530793, 234567803, 251851741, 264197411,
    330864029, 399999781, 407407183, 459258997, 479012069, 545678687, 560493491, 607407037, 629629243, 656789717,
    716048933, 718518067, 725925469, 733332871, 753085943, 755555077, 782715551, 790122953, 812345159, 814814293,
    893826581, 923456189, 940740127, 953085797, 985184539, 990122807,
], np.uint64)  # fmt: skip
LOW32 = 0xFFFFFFFF
BASE = np.uint64(int(PRIMES[0]) * int(PRIMES[1]) & LOW32)
# rnnlm takes these indices, too, in 32 bits.
FACTORS = np.array([
    [PRIMES[(a * int(PRIMES[b]) + b & LOW32) % len(PRIMES)] for b in range(MAX_ORDER)] for a in range(MAX_ORDER)
])  # fmt: skip


@jit
def slots(found, words, last, order, size, k):
    """Fill `found`, int64 [order], with the slots of the features of class k's words, or of all classes with k = -1.

    words[last], words[last - 1], ... are the last words; -1, one outside the vocabulary, ends what histories can have.
    size  of the array. Returns the number of features.
    """
    half = np.uint64(size // 2)
    for a in range(order):
        if a > 0 and words[last - a + 1] < 0:
            return a
        slot = BASE * np.uint64(max(k + 1, 1))
        for b in range(1, a + 1):
            slot += FACTORS[a, b] * np.uint64(words[last - b + 1] + 1)
        found[a] = np.int64(slot % half) + (size // 2 if k >= 0 else 0)
    return order


@jit
def add(z, weights, found, features, n):
    """z[j] += the weights of all features, j < n; behind the array's last weight comes its first."""
    for a in range(features):
        start, done = found[a], 0
        while done < n:
            run = min(n - done, weights.size - start)
            for j in range(run):
                z[done + j] += weights[start + j]
            start, done = 0, done + run


@jit
def learn(weights, e, found, features, n, lr, kept):
    """weights = kept * weights + lr e, of all features."""
    for a in range(features):
        start, done = found[a], 0
        while done < n:
            run = min(n - done, weights.size - start)
            for j in range(run):
                weights[start + j] = kept * weights[start + j] + lr * e[done + j]
            start, done = 0, done + run
