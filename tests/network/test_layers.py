"""Test all layers of layerrows.py: outputs against plain NumPy, gradients against finite differences.

Gradients are checked along random directions in which all elements change, so that any wrong element is detected.
"""

import functools

import numpy as np
import pytest
from layerrows import LAYERS, LOSSES, V, cross_entropy, drawn, step, words
from slopes import slope

from tiedtools.network.params import Buffers, Params
from tiedtools.network.threads import Team

TARGETS = [-1, 0, 7, V - 2, V - 1]  # few, so that some repeat
# (T, B, m, n) and threads: fewer rows than threads, and widths within, at, and beyond a vector register
SHAPES = {(1, 1, 1, 1): 2, (1, 3, 5, 3): 3, (3, 1, 20, 37): 1, (5, 3, 9, 16): 2, (2, 5, 33, 70): 3}
LARGEST = (2, 5, 33, 70)
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
team = functools.cache(Team)


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
every_shape = pytest.mark.parametrize("shape, threads", SHAPES.items(), ids=str)


@every_shape
@every_layer
def test_output(name, shape, threads, dtype="float64"):
    bench = Bench(name, shape, threads, dtype)
    outputs, expected = bench.forward(), bench.expected()
    assert len(outputs) == len(expected)
    for ours, theirs in zip(outputs, expected):
        np.testing.assert_allclose(ours, theirs, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@every_layer
def test_gradients_accumulate_only_within_a_step(name):
    test_output(name, LARGEST, 2, "float32")
    bench = Bench(name, LARGEST, 2)
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


@every_shape
@every_layer
def test_gradients(name, shape, threads, monkeypatch):
    monkeypatch.setattr("tiedtools.network.layers.output.ROWS", 8)  # two blocks of rows for the larger shapes
    bench = Bench(name, shape, threads)
    grads = bench.gradients()
    arrays = dict(bench.params.owners())
    if "x" in grads:
        arrays["x"] = bench.true["x"]
    assert grads.keys() == arrays.keys()
    rng = np.random.default_rng(7)
    given = {key: array.copy() for key, array in bench.params.owners()}
    for key, array in arrays.items():
        for _ in range(3):
            direction, numeric = slope(array, rng, lambda: bench.objective(given))
            scale = np.linalg.norm(grads[key])
            assert (grads[key] * direction).sum() == pytest.approx(numeric, rel=1e-6, abs=1e-8 + 1e-7 * scale), key


@pytest.mark.parametrize("name", [name for name in {**LAYERS, **LOSSES} if not name.startswith("dropout")])
def test_gradients_of_float32(name):
    wide, narrow = (Bench(name, LARGEST, 2, dtype) for dtype in ("float64", "float32"))
    for (_, a), (_, b) in zip(wide.params.owners(), narrow.params.owners()):
        a[:] = b
    wide.true["x"][:] = narrow.true["x"]
    grads = wide.gradients()
    for key, ours in narrow.gradients().items():
        np.testing.assert_allclose(ours, grads[key], atol=2e-5 * abs(grads[key]).max(), err_msg=key)


@pytest.mark.parametrize("shape, threads", list(SHAPES.items())[1:], ids=str)
@pytest.mark.parametrize(
    "name", [name for name in {**LAYERS, **LOSSES} if name[:3] in ("lin", "hig", "lst", "gru", "rhn", "sof", "aug")]
)
def test_bfloat16(name, shape, threads, monkeypatch):
    """Results agree with float32 up to the rounding of operands to 8 bits in consecutive products; `score` is exact."""
    monkeypatch.setattr("tiedtools.network.layers.output.ROWS", 8)  # the second block has fewer rows than the first
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


@pytest.mark.parametrize("threads", [1, 3])
def test_highway_of_several_blocks_of_rows(threads, monkeypatch):
    shape = 1, 601, 33, 33
    test_output("highway", shape, threads)
    test_gradients("highway", shape, threads, monkeypatch)
    test_bfloat16("highway", shape, threads, monkeypatch)


@every_layer
def test_batch_size_may_change_between_calls(name):
    bench = Bench(name, LARGEST, 2)
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


def test_initial_gates_of_highway_layers():
    params = Bench("highway", (1, 1, 9, 9)).params
    params.draw(1)
    gates, biases = np.split(params["l.b"], 2)
    assert gates == pytest.approx([-2] * 9, abs=0.01) and not biases.any()


@pytest.mark.parametrize("name", LOSSES)
def test_scores_use_the_full_softmax(name):
    bench = Bench(name, LARGEST, 3)
    expected = cross_entropy(dict(bench.params.owners()), bench.true["x"], bench.targets)
    np.testing.assert_allclose(bench.layer.score(bench.x, bench.step()), -expected, rtol=1e-12, atol=1e-12)
