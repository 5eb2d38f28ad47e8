"""Hashed n-gram features for the class-factored softmax (rnnlm's direct connections).

Mikolov et al. 2011, "Strategies for training large scale neural network language models": a maximum entropy model
trained as part of the network. Each history of 0 .. order - 1 words hashes to a slot, the start of a run of weights:
in the first half of the array one per class, in the second half one per word of the target's class. The hash function
is rnnlm's, so that its models can be read. Histories whose slots overlap share weights.
"""

import numpy as np

from tiedtools.kernels.base.jit import jit

MAX_ORDER = 20
PRIMES = np.array([
    108641969, 116049371, 125925907, 133333309, 145678979, 175308587, 197530793, 234567803, 251851741, 264197411,
    330864029, 399999781, 407407183, 459258997, 479012069, 545678687, 560493491, 607407037, 629629243, 656789717,
    716048933, 718518067, 725925469, 733332871, 753085943, 755555077, 782715551, 790122953, 812345159, 814814293,
    893826581, 923456189, 940740127, 953085797, 985184539, 990122807,
], np.uint64)  # fmt: skip
LOW32 = 0xFFFFFFFF
BASE = np.uint64(int(PRIMES[0]) * int(PRIMES[1]) & LOW32)
# As in rnnlm, these indices wrap at 32 bits.
FACTORS = np.array([
    [PRIMES[(a * int(PRIMES[b]) + b & LOW32) % len(PRIMES)] for b in range(MAX_ORDER)] for a in range(MAX_ORDER)
])  # fmt: skip


@jit
def find_slots(slots, words, last, order, size, k):
    """Compute the slots of the current n-gram features for the words of class k, or for all classes if k = -1.

    slots  int64 [order], out
    words  words[last], words[last - 1], ... are the preceding words; -1, an out-of-vocabulary word, ends the history
    size   length of the weight array

    Returns the number of features; 0 without weights.
    """
    half = np.uint64(size // 2)
    for a in range(order if size else 0):
        if a > 0 and words[last - a + 1] < 0:
            return a
        slot = BASE * np.uint64(max(k + 1, 1))
        for b in range(1, a + 1):
            slot += FACTORS[a, b] * np.uint64(words[last - b + 1] + 1)
        slots[a] = np.int64(slot % half) + (size // 2 if k >= 0 else 0)
    return order if size else 0


@jit
def add(z, weights, slots, words, last, order, k, n):
    """Add the weights of all features to z, z[j] for j < n, and return `find_slots`; the array wraps around."""
    features = find_slots(slots, words, last, order, weights.size, k)
    for a in range(features):
        start, done = slots[a], 0
        while done < n:
            run = min(n - done, weights.size - start)
            for j in range(run):
                z[done + j] += weights[start + j]
            start, done = 0, done + run
    return features


@jit
def learn(weights, e, slots, features, n, lr, shrink):
    """weights = shrink * weights + lr * e, for all features."""
    for a in range(features):
        start, done = slots[a], 0
        while done < n:
            run = min(n - done, weights.size - start)
            for j in range(run):
                weights[start + j] = shrink * weights[start + j] + lr * e[done + j]
            start, done = 0, done + run
