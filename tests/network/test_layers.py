"""Test all layers: outputs against plain NumPy, gradients against finite differences. To add a layer, add a table row.

Gradients are checked along random directions in which all elements change, so that any wrong element is detected.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import cellreference
import lmreference
import numpy as np
import pytest

from tiedtools.network.buffers import Buffers, stride
from tiedtools.network.cells.gru import GRU
from tiedtools.network.cells.lstm import LSTM
from tiedtools.network.cells.rhn import RHN
from tiedtools.network.layers.augmented import AugmentedSoftmax
from tiedtools.network.layers.dropout import Dropout, WeightDrop, WordDropout
from tiedtools.network.layers.embedding import Embedding
from tiedtools.network.layers.highway import Highway
from tiedtools.network.layers.linear import Linear
from tiedtools.network.layers.sampled import SampledSoftmax
from tiedtools.network.layers.softmax import Softmax
from tiedtools.network.params import Params
from tiedtools.network.start import Start, zeros
from tiedtools.network.step import Step
from tiedtools.network.tables import Lookup
from tiedtools.network.threads import Team

V, SEED = 113, 5
TARGETS = [-1, 0, 7, V - 2, V - 1]  # few, so that some repeat
SHAPES = [(1, 1, 1, 1), (1, 3, 5, 3), (3, 1, 20, 37), (5, 3, 9, 16), (2, 5, 33, 70)]  # T, B, m, n
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
team = functools.cache(Team)


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
        augmentation = lmreference.augmentation(x @ p["l"].T, E, targets, tau)[0]
        return weights[1] * augmentation + (weights[0] - 1) * cross_entropy(p, x, targets)

    def make(params, V, n):
        tables = Lookup(params, "l", V, n), Lookup(params, "E", V, n + 2, by_rows=detach)
        return AugmentedSoftmax(params, *tables, weights, tau, detach, "l.b")

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
        lambda params, m, n: WordDropout(params, "word", 0.4, ()),
        lambda p, x, layer: [x * layer.mask],
        square=True,
    ),
}
LOSSES = {
    "softmax": softmax(bias=True),
    "softmax without bias": softmax(bias=False),
    "augmented": augmented(detach=False),
    "augmented, detached": augmented(detach=True),
    "sampled": Loss(
        lambda params, V, n: SampledSoftmax(
            params, Lookup(params, "l", V, n, by_rows=True), 30, np.arange(V, 0, -1), "l.b"
        ),
        sampled_cross_entropy,
    ),
}


class Bench:
    """A layer with random parameters and input. The objective is sum(weights * output) or the scaled loss."""

    SCALE = 0.3

    def __init__(self, name, shape, threads=1, dtype="float64", half=False):
        self.loss, self.dtype = name in LOSSES, np.dtype(dtype)
        self.row = LOSSES[name] if self.loss else LAYERS[name]
        T, B, m, n = shape
        self.n = m if not self.loss and self.row.square else n
        self.params = Params(team(threads), dtype, half=half)
        self.layer = self.row.make(self.params, V if self.loss else m, self.n)
        self.params.build()
        for seed, (_, array) in enumerate(self.params.owners()):
            array[:] = drawn(array, seed, *array.shape)
        self.x = self.padded("x", T, B, self.n if self.loss else m)
        self.targets = words(self.x, TARGETS) if self.loss else None

    def padded(self, name, *shape):
        """Return a random array with padded rows; stores a view without the padding in `true`."""
        array = Buffers(self.dtype)(name, *shape)
        true = array[..., : shape[-1]]
        true[:] = drawn(array, len(name), *shape)
        self.true = {**getattr(self, "true", {}), name: true}
        return array

    def step(self):
        return step(self.x, self.targets, self.SCALE)

    def forward(self):
        """Return copies of the outputs without padding."""
        if self.loss:
            return [self.layer.loss(self.x, self.step())[0].copy()]
        y, *rest = self.row.forward(self.layer, self.x)
        assert not y[..., self.n :].any(), "padding must be 0"
        return [y[..., : self.n].copy(), *(np.array(part) for part in rest)]

    def objective(self, given):
        """Return the objective, with unreported loss terms from the reference; `given`: initial parameters."""
        y = self.forward()[0]
        if not self.loss:
            return (y * self.true["dy"]).sum(dtype=float)
        if self.row.more:
            y += self.row.more(dict(self.params.owners()), self.true["x"], self.targets, given)
        return self.SCALE * y.sum()

    def gradients(self):
        """Return copies of the gradients by name; "x" is that of the input."""
        if self.loss:
            self.params.begin_step()
            dx = self.layer.loss(self.x, self.step())[1]
        else:
            dy = self.padded("dy", *self.x.shape[:2], self.n)
            self.forward()
            self.params.begin_step()
            dx = self.layer.backward(dy.copy())
        grads = self.parameter_gradients()
        if dx is not None:
            width = self.true["x"].shape[2]
            assert dx.shape == self.x.shape and not dx[..., width:].any()
            grads["x"] = dx[..., :width].copy()
        return grads

    def parameter_gradients(self):
        padded = self.params.grads.copy()
        grads = {}
        for name in self.params.layout:
            true = self.params.cut(padded, name)
            grads[name] = true.copy()
            true[:] = 0
        assert not padded.any(), "padding must be 0"
        return grads

    def expected(self):
        p = {name: array.astype(float) for name, array in self.params.owners()}
        x = self.true["x"].astype(float)
        if self.loss:
            return [self.row.reference(p, x, self.targets, self.layer)]
        self.forward()
        return self.row.reference(p, x, self.layer)


every_layer = pytest.mark.parametrize("name", [*LAYERS, *LOSSES])
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
threads = pytest.mark.parametrize("threads", [1, 2, 3])


@pytest.mark.parametrize("dtype", TOLERANCE)
@threads
@every_shape
@every_layer
def test_output(name, shape, threads, dtype):
    bench = Bench(name, shape, threads, dtype)
    outputs, expected = bench.forward(), bench.expected()
    assert len(outputs) == len(expected)
    for ours, theirs in zip(outputs, expected):
        np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@threads
@every_shape
@every_layer
def test_gradients(name, shape, threads, monkeypatch):
    monkeypatch.setattr("tiedtools.network.layers.softmax.ROWS", 8)  # two blocks of rows for the larger shapes
    bench = Bench(name, shape, threads)
    grads = bench.gradients()
    arrays = dict(bench.params.owners())
    if "x" in grads:
        arrays["x"] = bench.true["x"]
    assert grads.keys() == arrays.keys()
    rng, e = np.random.default_rng(7), 1e-5
    given = {key: array.copy() for key, array in bench.params.owners()}
    for key, array in arrays.items():
        middle = array.copy()
        for _ in range(3):
            direction = rng.normal(size=array.shape)
            ends = []
            for side in e, -e:
                array[:] = middle + side * direction
                ends.append(bench.objective(given))
            array[:] = middle
            slope = (ends[0] - ends[1]) / (2 * e)
            scale = np.linalg.norm(grads[key])
            assert (grads[key] * direction).sum() == pytest.approx(slope, rel=1e-6, abs=1e-8 + 1e-7 * scale), key


@pytest.mark.parametrize("name", [name for name in {**LAYERS, **LOSSES} if not name.startswith("dropout")])
def test_gradients_of_float32(name):
    wide, narrow = (Bench(name, SHAPES[-1], 2, dtype) for dtype in ("float64", "float32"))
    for (_, a), (_, b) in zip(wide.params.owners(), narrow.params.owners()):
        a[:] = b
    wide.true["x"][:] = narrow.true["x"]
    grads = wide.gradients()
    for key, ours in narrow.gradients().items():
        np.testing.assert_allclose(ours, grads[key], atol=2e-5 * abs(grads[key]).max(), err_msg=key)


@threads
@every_shape
@pytest.mark.parametrize(
    "name", [name for name in {**LAYERS, **LOSSES} if name[:3] in ("lin", "hig", "lst", "gru", "rhn", "sof", "aug")]
)
def test_bfloat16(name, shape, threads, monkeypatch):
    """Results agree with float32 up to the rounding of operands to 8 bits in consecutive products; `score` is exact."""
    monkeypatch.setattr(
        "tiedtools.network.layers.softmax.ROWS", 8
    )  # so that the second block has fewer rows than the first
    # Rounding may change the sign of a ReLU's input, and so its slope; the large weights of this RHN amplify rounding.
    limit = {"highway": 2**-5, "rhn of depth 3": 2**-4}.get(name, 2**-6)
    wide, half = (Bench(name, shape, threads, "float32", half) for half in (False, True))
    pairs = list(zip(wide.forward(), half.forward(), strict=True))
    ours, theirs = half.gradients(), wide.gradients()
    for expected, rounded in pairs + [(theirs[key], ours[key]) for key in theirs]:
        assert np.linalg.norm(rounded - expected) < limit * max(np.linalg.norm(expected), 1e-6)
    assert any((theirs[key] != ours[key]).any() for key in theirs)
    if half.loss:
        scores = (bench.layer.score(bench.x, bench.step()).copy() for bench in (wide, half))
        np.testing.assert_array_equal(*scores)


@threads
def test_highway_of_several_blocks_of_rows(threads, monkeypatch):
    shape = 1, 601, 33, 33
    test_output("highway", shape, threads, "float64")
    test_gradients("highway", shape, threads, monkeypatch)
    test_bfloat16("highway", shape, threads, monkeypatch)


@every_layer
def test_gradients_accumulate_only_within_a_step(name):
    bench = Bench(name, SHAPES[-1], 2)
    first = bench.gradients()
    if bench.loss:
        bench.layer.loss(bench.x, bench.step())
    else:
        bench.forward()
        bench.layer.backward(bench.padded("dy", *bench.x.shape[:2], bench.n))
    for key, twice in bench.parameter_gradients().items():
        np.testing.assert_allclose(twice, 2 * first[key], rtol=1e-12, atol=1e-13, err_msg=key)
    for key, again in bench.gradients().items():
        np.testing.assert_array_equal(again, first[key], err_msg=key)


@every_layer
def test_batch_size_may_change_between_calls(name):
    bench = Bench(name, SHAPES[-1], 2)
    first = bench.forward(), bench.gradients()
    x, targets = bench.x, bench.targets
    bench.x = bench.padded("x", 4, 7, bench.true["x"].shape[2])
    bench.targets = words(bench.x, TARGETS) if bench.loss else None
    for ours, theirs in zip(bench.forward(), bench.expected()):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
    bench.gradients()
    bench.x, bench.targets = x, targets
    for ours, theirs in zip((bench.forward(), bench.gradients().values()), (first[0], first[1].values())):
        for a, b in zip(ours, theirs):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", LOSSES)
@threads
def test_scores_use_the_full_softmax(name, threads):
    bench = Bench(name, SHAPES[-1], threads)
    expected = cross_entropy(dict(bench.params.owners()), bench.true["x"], bench.targets)
    np.testing.assert_allclose(bench.layer.score(bench.x, bench.step()), -expected, rtol=1e-12, atol=1e-12)


# Dropout

T, B, n = 10, 20, 45


def mask(drop=0.3, same=(), seed=1, threads=1, shape=(T, B, n)):
    drawn = Dropout(Params(team(threads), "float32"), "site", drop, same).draw(
        Step(None, seed=lambda site: seed), *shape
    )
    return drawn[..., : shape[2]].copy()


@pytest.mark.parametrize("drop", [0.1, 0.5, 0.8])
def test_dropout_rate_and_scale(drop):
    drawn = mask(drop, shape=(40, 50, 50))
    assert set(np.unique(drawn)) == {0, np.float32(1 / (1 - drop))}
    N = drawn.size
    assert abs((drawn == 0).mean() - drop) < 4 * np.sqrt(drop * (1 - drop) / N)
    for axis in range(3):  # the rate is uniform along each axis
        rate = (drawn == 0).mean(tuple({0, 1, 2} - {axis}))
        assert abs(rate - drop).max() < 5 * np.sqrt(drop * (1 - drop) / (N / drawn.shape[axis]))


@pytest.mark.parametrize(
    "same, shape",
    [((), (T, B, n)), (("steps",), (1, B, n)), (("steps", "sequences"), (1, 1, n)), (("sequences",), (T, 1, n))],
)
def test_masks_are_shared_only_along_the_given_axes(same, shape):
    drawn = mask(same=same)
    assert drawn.shape == shape
    rows = drawn.reshape(-1, n)
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_masks_depend_only_on_the_seed():
    first = mask()
    for threads in 1, 2, 3:
        assert (mask(threads=threads) == first).all()
    others = [mask(seed=seed) for seed in (2, 3, 2**63)]
    for other in others:
        # Independent masks agree in .3^2 + .7^2 = 58% of all elements.
        assert abs((other == first).mean() - 0.58) < 0.03
    assert stride(n, np.float32) != n, "n must need padding"


def test_no_dropout_without_a_seed():
    x = np.ones((T, B, n), np.float32)
    layer = Dropout(Params(team(1)), "site", 0.5)
    assert layer.forward(x, Step(None)) is x and layer.backward(x) is x
    layer.forward(x, Step(None, seed=lambda site: 1))
    layer.forward(x, Step(None))
    assert layer.backward(x) is x and (x == 1).all(), "the previous mask was applied"
