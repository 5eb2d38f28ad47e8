"""Reference implementations of the word2vec kernels in plain float64 NumPy."""

import itertools
import math

import numpy as np

from tiedtools.kernels.word2vec.w2vtiles import PROJ_EVERY, SHARE_EVERY
from tiedtools.kernels.word2vec.windows import REPEATS

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(counter):
    z = ((counter ^ (counter >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


class Stream:
    """splitmix64 in Python integers."""

    def __init__(self, seed):
        self.counter = seed

    def draw(self):
        self.counter = (self.counter + GOLDEN) & MASK
        return mix(self.counter)

    def below(self, n):
        return ((self.draw() >> 32) * n) >> 32


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def context_of(text, at, radius):
    """Return the positions within `radius` of position `at` in its sentence, in order."""
    _, begins, ends = text
    return [q for q in range(max(begins[at], at - radius), min(ends[at], at + radius + 1)) if q != at]


def signs(width, config):
    """Return the diagonal of the matrix of signs, a row of `width` dimensions with padding; all 1 in other models."""
    return np.where(np.arange(width) < config.negations, -1.0, 1.0)


def drawn_radius(config, stream):
    """Return the radius of a window. A fixed one also takes a number from the stream."""
    drawn = stream.below(config.window)
    return config.window if config.fixed_window else config.window - drawn


def combined(rows, config, sizes):
    """Return h: the mean or sum of the inputs' rows; in a mean, their sizes are weights."""
    return rows.sum(0) if config.cbow_sum else np.average(rows, 0, sizes)


def share(sizes, config):
    """Return the factor of dh in the update of each input, of these sizes; see `cbow_grad` and `cbow_sum`."""
    return 1 / sum(sizes) if config.cbow_grad == "exact" and not config.cbow_sum else 1


def draw_negative(noise, stream):
    bits = stream.draw()
    word = ((bits >> 32) * len(noise)) >> 32
    return word if (bits & 0xFFFFFFFF) < noise[word][0] else int(noise[word][1])


def word2vec(emb_in, emb_out, proj, text, noise, tree, first_node, config, batch, lr, lr_proj, seed, sizes=None):
    """Train in place; returns (loss in nats, predictions). See kernels/word2vec/w2v.py.

    text: tokens, begins, ends from sampling.subsample. It is split into the smallest number k of batches of at most
    `batch` positions, each of every k-th position. All windows of a batch are drawn first, then the negatives, target
    by target. sizes: of the words, in means of CBOW; None: 1.
    """
    sizes = np.ones(len(emb_in)) if sizes is None else sizes
    stream, fixed = Stream(seed), signs(emb_in.shape[1], config)
    nats, predictions = 0.0, 0
    tokens = text[0]
    batches = -(-len(tokens) // batch)
    for first in range(batches):
        inputs, targets = [], []
        for at in range(first, len(tokens), batches):
            word = tokens[at]
            context = [tokens[q] for q in context_of(text, at, drawn_radius(config, stream))]
            if config.skip_input:
                context = [w for w in context if w != word]
            if context:
                inputs.append(context if config.cbow else [word])
                targets.append([word] if config.cbow else context)
        if not inputs:
            continue
        h = np.array([combined(emb_in[words], config, sizes[words]) for words in inputs])
        u = h @ proj if proj.size else h * fixed
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
                    score = u[b] @ emb_out[row] + (0 if on_path else config.shift)
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
        dh = du * fixed
        if proj.size:
            dh = du @ proj.T
            proj += lr_proj / lr * (h.T @ du)
        for b, words in enumerate(inputs):
            for word in words:
                emb_in[word] += share(sizes[words], config) * dh[b]
    return nats, predictions


def word2vec_tiles(emb_in, emb_out, proj, text, noise, config, layout, lr, lr_proj, seed, racing=1, sizes=None):
    """Train in place with one thread; returns (nats of each batch, predictions). See kernels/word2vec/w2vtiles.py.

    layout: (strips, run, negatives per run). racing: number of Hogwild threads to act as one of. Windows and negatives
    use separate random streams. All of a batch uses the parameters from before the batch; each center word is processed
    separately, where the kernel multiplies matrices. sizes: as for `word2vec`.
    """
    sizes = np.ones(len(emb_in)) if sizes is None else sizes
    strips, run, each = layout
    tokens = text[0]
    radii, draws, fixed = Stream(seed), Stream(mix(seed)), signs(emb_in.shape[1], config)
    bounds = [r * len(tokens) // strips for r in range(strips + 1)]
    runs = [runs_of(tokens, start, end, run) for start, end in itertools.pairwise(bounds)]
    nats, predictions, steps, every = [], 0, np.zeros_like(proj), PROJ_EVERY[config.cbow]
    for k in range(max(map(len, runs))):
        old_in, old_out, old_proj, dL, loss = emb_in.copy(), emb_out.copy(), proj.copy(), np.zeros_like(proj), 0.0
        for strip in runs:
            negatives = [draw_negative(noise, draws) for _ in range(each)]
            for at in strip[k] if k < len(strip) else []:
                word, radius = tokens[at], drawn_radius(config, radii)
                context = [tokens[q] for q in context_of(text, at, radius)]
                context = [w for w in context if not (config.skip_input and w == word)]
                if not context:
                    continue
                inputs, targets = (context, [word]) if config.cbow else ([word], context)
                barred = {*inputs} if config.skip_input else {}
                others = lambda w: len(targets) - targets.count(w)
                examples = [(w, 1, 1.0) for w in targets]
                examples += [(w, 0, config.negative * others(w) / each) for w in negatives if w not in barred]

                h = combined(old_in[inputs], config, sizes[inputs])
                u = h @ old_proj if proj.size else h * fixed
                du = np.zeros_like(u)
                for row, label, weight in examples:
                    probability = sigmoid(u @ old_out[row] + config.shift)
                    loss -= weight * math.log(probability if label else 1 - probability)
                    g = lr * weight * (label - probability)
                    emb_out[row] += g * u
                    du += g * old_out[row]
                dh = du * fixed
                if proj.size:
                    dh, dL = du @ old_proj.T, dL + np.outer(h, du)
                for w in inputs:
                    emb_in[w] += share(sizes[inputs], config) * dh
                predictions += len(targets)
        if (k + 1) % every == seed % every:
            steps += every * lr_proj / lr * dL
        if racing == 1 or (k + 1) % max(racing // 2 * every, SHARE_EVERY) == 0:
            proj += steps
            steps[:] = 0
        nats.append(loss)
    proj += steps
    return nats, predictions


def runs_of(tokens, start, end, longest):
    """Split positions start .. end - 1 into runs of at most `longest`, with each word at most REPEATS times per run."""
    runs = [[]]
    for at in range(start, end):
        if len(runs[-1]) == longest or [tokens[q] for q in runs[-1]].count(tokens[at]) == REPEATS:
            runs.append([])
        runs[-1].append(at)
    return runs
