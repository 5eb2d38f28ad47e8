"""The layers tested by tests/network/test_layers.py, each with the same in plain NumPy. To add one, add a table row."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import cellreference
import lmreference
import numpy as np

from tiedtools.network.cells import GRU, LSTM, RHN
from tiedtools.network.layers.feedforward import Embedding, Highway, Linear
from tiedtools.network.layers.output import AugmentedSoftmax, SampledSoftmax, Softmax
from tiedtools.network.layers.regularization import Dropout, WeightDrop, WordDropout
from tiedtools.network.network import Step
from tiedtools.network.params import Start, zeros
from tiedtools.network.tables import Lookup

V, SEED = 113, 5


class Row(NamedTuple):
    make: Callable  # (params, m, n) -> layer
    reference: Callable  # (p, x, layer) -> outputs in NumPy; the first one has a gradient
    forward: Callable = lambda layer, x: [layer.forward(x, step(x))]  # -> the layer's outputs
    square: bool = False  # output width equals input width


class Loss(NamedTuple):
    make: Callable  # (params, V, n) -> layer
    reference: Callable  # (p, x, targets, layer) -> nats [T, B]
    more: Callable = None  # (p, x, targets, given) -> [T, B], further loss with a gradient; given: constant p


def drawn(x, seed, *shape):
    """Return random input that depends only on the seed and shape."""
    return (np.random.default_rng(seed).normal(size=shape) * 0.5).astype(x.dtype)


def words(x, some=V):
    return np.random.default_rng(1).choice(some, x.shape[:2]).astype(np.int32)


def step(x, targets=None, scale=1.0):
    return Step(words(x), targets, lambda site: SEED, True, scale)


class Given(NamedTuple):
    """Masks [K, B, n] that are the same in every step."""

    seed: int
    K: int
    n: int
    dtype: np.dtype

    def draw(self, step, B):
        return drawn(np.empty(0, self.dtype), self.seed, self.K, B, self.n)


def cell(kind, plain, K, K_x=0, drop=0.0):
    """Return the table row of a cell with K masks for the state and K_x for x, and weight drop at rate `drop`.

    kind   the cell's constructor
    plain  the same in NumPy: (p, name, x, state, masks, masks_x) -> h, state after it, and others
    """

    def make(params, m, n):
        masks = Given(3, K, n, params.dtype) if K else None, Given(4, K_x, m, params.dtype) if K_x else None
        dropped = {"drop_weights": WeightDrop(params, "w", drop)} if drop else {}
        return kind(params, "l", m, n, Start(None, zeros), masks, **dropped)

    def state(x, layer):
        return [drawn(x, seed, 1, x.shape[1], layer.n) for seed in range(1, layer.parts + 1)]

    def forward(layer, x):
        h, after = layer.forward(x, state(x, layer), step(x))
        return h, *after

    def reference(p, x, layer):
        masks = (m and m.draw(None, x.shape[1]) for m in (layer.masks, layer.masks_x))
        if drop:
            p = {**p, "l.W_h": p["l.W_h"] * layer.drop_weights.mask[:, 0]}
        h, after, *_ = plain(p, "l", x, [part[0] for part in state(x, layer)], *masks)
        return h, *(part[None] for part in after)

    return Row(make, reference, forward)


lstm = functools.partial(cell, LSTM, lmreference.lstm)
gru = functools.partial(cell, GRU, cellreference.gru)


def rhn(depth, K=0, K_x=0):
    return cell(functools.partial(RHN, depth=depth, transform=0.0), cellreference.rhn, K, K_x)


def dropout(*same):
    return Row(
        lambda params, m, n: Dropout(params, "site", 0.4, same),
        lambda p, x, layer: [x * layer.mask[..., : x.shape[2]]],
        square=True,
    )


def linear(bias):
    return Row(
        lambda params, m, n: Linear(params, "l", m, n, Start(None, None), bias),
        lambda p, x, layer: [x @ p["l.W"] + p.get("l.b", 0)],
    )


def highway(p, x, layer):
    scores = x @ p["l.W"] + p["l.b"]
    gate, new = 1 / (1 + np.exp(-scores[..., : layer.n])), np.maximum(scores[..., layer.n :], 0)
    return [gate * new + (1 - gate) * x]


def softmax(bias):
    return Loss(
        lambda params, V, n: Softmax(params, Lookup(params, "l", V, n), "l.b" if bias else None),
        lambda p, x, targets, layer: cross_entropy(p, x, targets),
    )


def augmented(detach, weights=(0.6, 0.7), tau=3.0):
    """Return the table row of the augmented loss, with embeddings wider than the output by 2."""

    def more(p, x, targets, given):
        E = (given if detach else p)["E"]
        augmentation = lmreference.augmentation(x @ p["l"].T, E, targets, tau)
        return weights[1] * augmentation + (weights[0] - 1) * cross_entropy(p, x, targets)

    def make(params, V, n):
        tables = Lookup(params, "l", V, n), Lookup(params, "E", V, n + 2, by_rows=detach)
        return AugmentedSoftmax(params, *tables, weights, tau, detach, None if detach else "l.b")

    return Loss(make, lambda p, x, targets, layer: cross_entropy(p, x, targets), more)


def cross_entropy(p, x, targets):
    return lmreference.cross_entropy(x @ p["l"].T + p.get("l.b", 0), targets)[0]


def sampled_cross_entropy(p, x, targets, layer):
    words, expected = layer.draw(SEED)
    nats = np.zeros(targets.shape)
    for at in np.argwhere(targets >= 0):
        target = targets[tuple(at)]
        chosen = np.array([target, *words[words != target]])
        scores = p["l"][chosen] @ x[tuple(at)] + p["l.b"][chosen] - np.log(expected(chosen))
        nats[tuple(at)] = -lmreference.log_softmax(scores)[0]
    return nats


LAYERS = {
    "embedding": Row(
        lambda params, m, n: Embedding(params, Lookup(params, "l", V, n, by_rows=True)),
        lambda p, x, layer: [p["l"][words(x)]],
        lambda layer, x: [layer.forward(words(x), step(x))],
    ),
    "linear": linear(bias=False),
    "linear with bias": linear(bias=True),
    "highway": Row(lambda params, m, n: Highway(params, "l", n, Start(None, zeros)), highway, square=True),
    "lstm": lstm(0),
    "lstm, weight drop": lstm(0, drop=0.4),
    "lstm, state mask": lstm(1),
    "lstm, state mask per gate": lstm(4),
    "lstm, input mask per gate": lstm(0, 4),
    "lstm, input and state mask per gate": lstm(4, 4),
    "gru": gru(0),
    "gru, weight drop": gru(0, drop=0.4),
    "gru, state mask": gru(1),
    "gru, state mask per gate": gru(3),
    "gru, input mask per gate": gru(0, 3),
    "gru, input and state mask per gate": gru(3, 3),
    "rhn": rhn(1),
    "rhn, state mask": rhn(1, 1),
    "rhn of depth 2, input and state mask": rhn(2, 1, 1),
    "rhn of depth 3": rhn(3),
    "rhn of depth 3, input and state mask": rhn(3, 1, 1),
    "lstm, one mask for the input": lstm(1, 1),
    "dropout": dropout(),
    "dropout, mask shared over time": dropout("steps"),
    "dropout, mask shared over time and batch": dropout("steps", "sequences"),
    "dropout of word types": Row(
        lambda params, m, n: WordDropout(params, "word", 0.4, ()), lambda p, x, layer: [x * layer.mask], square=True
    ),
}
LOSSES = {
    "softmax": softmax(bias=True),
    "softmax without bias": softmax(bias=False),
    "augmented": augmented(detach=False),
    "augmented, detached, without bias": augmented(detach=True),
    "sampled": Loss(
        lambda params, V, n: SampledSoftmax(
            params, Lookup(params, "l", V, n, by_rows=True), 30, np.arange(V, 0, -1), "l.b"
        ),
        sampled_cross_entropy,
    ),
}
