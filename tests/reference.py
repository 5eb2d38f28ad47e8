"""Plain float64 NumPy versions of the kernels, written for reading: what the fast ones are checked against."""

import math

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


class Stream:
    """splitmix64 in Python integers."""

    def __init__(self, seed):
        self.counter = seed

    def draw(self):
        self.counter = (self.counter + GOLDEN) & MASK
        z = self.counter
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, n):
        return ((self.draw() >> 32) * n) >> 32


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def context_of(text, at, radius):
    """Positions at most `radius` from position `at` in its sentence, from left to right."""
    _, begins, ends = text
    return [q for q in range(max(begins[at], at - radius), min(ends[at], at + radius + 1)) if q != at]


def draw_negative(noise, stream):
    bits = stream.draw()
    word = ((bits >> 32) * len(noise)) >> 32
    return word if (bits & 0xFFFFFFFF) < noise[word][0] else int(noise[word][1])


def word2vec(emb_in, emb_out, proj, text, noise, tree, first_node, config, batch, lr, lr_proj, seed):
    """Train in place; returns (loss in nats, predictions). See kernels/w2v.py.

    text: tokens, begins, ends of sampling.thin. It falls into batches of every k-th position, the fewest that hold at
    most `batch` each. All windows of a batch are drawn first, then the negatives, target by target.
    """
    stream = Stream(seed)
    nats, predictions = 0.0, 0
    tokens = text[0]
    batches = -(-len(tokens) // batch)
    for first in range(batches):
        inputs, targets = [], []
        for at in range(first, len(tokens), batches):
            word = tokens[at]
            context = [tokens[q] for q in context_of(text, at, config.window - stream.below(config.window))]
            if config.skip_input:
                context = [w for w in context if w != word]
            if context:
                inputs.append(context if config.cbow else [word])
                targets.append([word] if config.cbow else context)
        if not inputs:
            continue
        h = np.array([emb_in[words].mean(0) for words in inputs])
        u = h @ proj if proj.size else h
        du = np.zeros_like(u)
        for b in range(len(inputs)):
            for target in targets[b]:
                examples = []  # (row of emb_out, label, on the path)
                if config.hs:
                    nodes, codes, starts = tree
                    for k in range(starts[target], starts[target + 1]):
                        examples.append((first_node + nodes[k], 1 - codes[k], True))
                if config.negative:
                    examples.append((target, 1, False))
                    for _ in range(config.negative):
                        word = draw_negative(noise, stream)
                        if word != target and not (config.skip_input and word in inputs[b]):
                            examples.append((word, 0, False))
                for row, label, on_path in examples:
                    score = u[b] @ emb_out[row]
                    probability = sigmoid(score)
                    nats -= math.log(probability if label else 1 - probability)
                    if abs(score) >= 6:
                        if on_path:
                            continue
                        probability = float(score > 0)
                    g = lr * (label - probability)
                    old = emb_out[row].copy()
                    emb_out[row] += g * u[b]
                    du[b] += g * old
                predictions += 1
        dh = du
        if proj.size:
            dh = du @ proj.T
            proj += lr_proj / lr * (h.T @ du)
        for b, words in enumerate(inputs):
            share = 1 / len(words) if config.cbow and config.cbow_grad == "exact" else 1
            for word in words:
                emb_in[word] += share * dh[b]
    return nats, predictions
