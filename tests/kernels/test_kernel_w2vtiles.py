"""Test the tiled word2vec kernel against plain NumPy, finite differences, and the kernel with separate negatives."""

import itertools

import numpy as np
import pytest
import reference
import w2vcase
from slopes import slope
from w2vcase import TYINGS, V, label, sentences

from tiedtools.kernels.base.arrays import aligned
from tiedtools.kernels.base.tiles import ROWS
from tiedtools.kernels.word2vec import w2vtiles
from tiedtools.kernels.word2vec.w2v import DIVERGED, NAN, STOP
from tiedtools.kernels.word2vec.w2vtypes import Linear, Pairs, SharedSpace, Stores, Targets, Text
from tiedtools.models.word2vec.workspaces import banded, packed, rounded, store

LAYOUTS = {"one strip": (1, 8, 8), "strips": (3, 4, 12), "long run": (1, 32, 4), "short run": (2, 4, 4)}


def long_text(seed=0):
    """Return sentences of 1 to 16 words, with a refrain, a sentence that repeats one word, and a repeated last word."""
    rng = np.random.default_rng(seed)
    lists = [rng.integers(1, V, n).tolist() for n in rng.permutation(16) + 1]
    return sentences(*lists[:5], [4] * 11, *lists[5:10], *[[1, 7, 1, 8]] * 4, *lists[10:], [2, 2])


class Tiles(w2vcase.Case):
    """A case trained by w2vtiles.train with one thread or by its reference."""

    def __init__(self, layout=LAYOUTS["one strip"], racing=1, half=False, **options):
        super().__init__(**options)
        self.layout, self.racing, self.half = layout, racing, half

    def kernel(self, lr, lr_proj, seed=99, stop=0):
        """Train with the kernel; returns (nats, predictions, stop flag)."""
        c = self.config
        strips, run, each = self.layout
        batch, span = strips * run, run + rounded(2 * c.window)

        def rows(n):
            # NaN: the kernel must not read what it has not written.
            return np.full_like(aligned(n, w2vcase.M, self.dtype), np.nan)

        hidden, grad = rows(batch), rows(batch)
        mapped, back = (rows(batch),) * 2 if self.proj.size else (hidden, grad)
        around, d_around, drawn, d_drawn = (rows(strips * n) for n in (span, span, each, each))
        targets = Targets(rows(batch), rows(batch), *np.zeros((2, batch, 1), self.dtype)) if c.cbow else None
        sizes = (batch, each), (batch, each), batch
        words = batch, batch, batch, strips * span, strips * span if c.cbow else batch, strips * each, strips * each
        P = hidden.shape[1]
        shapes = *[(batch, P // 2)] * 2, (P, P // 2), *[(P // 2, P)] * 2, *[(batch // 2, P)] * 2
        pairs = tuple(aligned(*shape, np.uint32) if self.half else None for shape in shapes)
        steps = self.proj if self.racing == 1 else np.zeros_like(self.proj)
        linear = Linear(self.proj, self.proj[None], steps, None if self.half else aligned(P, P, self.dtype), pairs)
        store_in, tied = store(self.emb_in, 1, 0), c.tying != "untied"
        vectors = hidden, mapped, grad, back, around, d_around, drawn, d_drawn
        step = span - run + ROWS if strips == 1 else span
        (near, near_cells), (scores, scores_cells) = (banded(batch, span, step, self.dtype) for _ in range(2))
        bands = (np.zeros((n // ROWS, 2), np.int32) for n in (batch, strips * span))
        space = SharedSpace(
            *vectors, near, scores, near_cells, scores_cells, *bands, *(np.zeros(n, self.dtype) for n in sizes),
            *(np.zeros(n, np.int32) for n in words), np.zeros(strips, np.int64),
            packed(vectors, batch, each, span, step) if self.half else Pairs(*[None] * 12),
        )  # fmt: skip
        totals, flag = np.zeros(2), np.full(1, stop, np.uint8)
        w2vtiles.train(
            Stores(store_in, store_in if tied else store(self.emb_out, 1, 0), tied),
            linear if self.proj.size else None, targets, None, totals, flag, space, 0, self.racing,
            Text(*self.text), self.noise, len(self.text[0]), self.rules, lr, lr_proj, np.uint64(seed),
        )  # fmt: skip
        return *totals, flag[0]

    def reference(self, lr, lr_proj, seed=99):
        """Train with the reference; returns (nats of each batch, predictions)."""
        return reference.word2vec_tiles(
            self.emb_in, self.emb_out, self.proj, self.text_lists, self.noise.tolist(), self.config, self.layout,
            lr, lr_proj, seed, self.racing,
        )  # fmt: skip


COMBINATIONS = [
    dict(cbow=cbow, tying=tying, cbow_grad=grad, skip_input=skip)
    for cbow, tying, grad, skip in itertools.product([True, False], TYINGS, ["ctool", "exact"], [True, False])
    if cbow or grad == "ctool"
]
COMBINATIONS += [dict(rules, tying=tying) for rules in w2vcase.RULES for tying in TYINGS]


BASIC = [dict(cbow=cbow, tying=tying) for cbow, tying in itertools.product([True, False], TYINGS)]
CASES = [(options, "strips", np.float64) for options in COMBINATIONS]
CASES += [(options, layout, np.float64) for options in BASIC for layout in LAYOUTS if layout != "strips"]
CASES += [(options, layout, np.float32) for options, layout in zip(BASIC, itertools.cycle(LAYOUTS))]


@pytest.mark.parametrize(
    "options, layout, dtype", CASES, ids=lambda value: label(value) if isinstance(value, dict) else None
)
def test_kernel_agrees_with_reference(options, layout, dtype):
    fast = Tiles(LAYOUTS[layout], dtype=dtype, **options)
    fast.text = long_text()
    plain = fast.copy(np.float64)
    nats, predictions, _ = fast.kernel(lr=0.02, lr_proj=0.001)
    expected_nats, expected_predictions = plain.reference(lr=0.02, lr_proj=0.001)
    assert predictions == expected_predictions > 0 and len(expected_nats) > max(w2vtiles.PROJ_EVERY)
    assert nats == pytest.approx(sum(expected_nats), rel=1e-5)
    fast.assert_close(plain, atol=2e-5)


WIDTHS = [dict(window=window, negative=negative) for window, negative in [(1, 1), (2, 5), (4, 20), (40, 3)]]
OTHERS = [dict(width, tying="signs") for width in WIDTHS] + [
    dict(width, tying="linear", cbow=False) for width in WIDTHS
]
RACES = [dict(layout=(1, 4, 4), tying="signs", cbow=cbow, racing=n) for cbow in (True, False) for n in (2, 5)]


@pytest.mark.parametrize("options", OTHERS + RACES, ids=str)  # racing threads do not change a fixed L
def test_windows_negatives_and_races_agree_with_reference(options):
    fast = Tiles(**options)
    fast.text = long_text()
    plain = fast.copy()
    assert fast.kernel(0.01, 0.005)[0] == pytest.approx(sum(plain.reference(0.01, 0.005)[0]), rel=1e-5)
    fast.assert_close(plain, atol=2e-5)


@pytest.mark.parametrize("options, layout", list(zip(BASIC, itertools.cycle(LAYOUTS))), ids=str)
def test_products_in_bfloat16(options, layout):
    start = Tiles(LAYOUTS[layout], dtype=np.float32, half=True, **options)
    start.text = long_text()
    half, plain = start.copy(), start.copy()
    plain.half = False
    nats, expected = (case.kernel(0.01, 0.01, seed=100)[0] for case in (half, plain))
    assert nats != expected and nats == pytest.approx(expected, rel=1e-3)
    for name, array in start.parameters.items():
        moved, expected = (case.parameters[name] - array for case in (half, plain))
        assert np.linalg.norm(moved - expected) <= 2**-6 * np.linalg.norm(expected), name


@pytest.mark.parametrize("racing, seed", [(2, 96), (3, 99), (16, 99), (100, 96)])
@pytest.mark.parametrize("cbow", [True, False])
def test_racing_threads_accumulate_updates_of_l(cbow, racing, seed):
    """All updates are applied by the end of a text, but not at once."""
    fast = Tiles((1, 4, 4), cbow=cbow, tying="linear", racing=racing)
    fast.text = long_text()
    plain, alone = fast.copy(), fast.copy()
    alone.racing = 1
    assert fast.kernel(0.02, 0.01, seed)[0] == pytest.approx(sum(plain.reference(0.02, 0.01, seed)[0]), rel=1e-5)
    fast.assert_close(plain, atol=2e-5)
    alone.kernel(0.02, 0.01, seed)
    assert np.abs(alone.proj - fast.proj).max() > 1e-4


@pytest.mark.parametrize("tying", TYINGS)
def test_short_texts(tying):
    """With fewer words than strips, some strips are empty."""
    for words in 0, 1, 2, 5:
        fast = Tiles(LAYOUTS["strips"], tying=tying)
        fast.text = sentences([], range(1, words + 1)) if words else tuple(np.zeros((3, 0), np.int32))
        plain = fast.copy()
        nats, predictions, _ = fast.kernel(0.1, 0)
        assert predictions == (words if words > 1 else 0)
        if words:
            assert nats == pytest.approx(sum(plain.reference(0.1, 0)[0]), rel=1e-5)
        fast.assert_close(plain, atol=2e-5)


@pytest.mark.parametrize("options", [*filter(w2vcase.has_gradient, COMBINATIONS)], ids=label)
def test_update_is_the_gradient(options):
    """As the learning rate approaches 0, update / rate approaches minus the gradient of the loss.

    L is updated by one batch in PROJ_EVERY, with its gradient scaled by PROJ_EVERY.
    """
    case = Tiles((1, 4, 4), **options)
    case.text = sentences([3, 5, 3, 8, 1], [7, 11, 3, 9, 6, 10, 6, 2, 3, 3, 4])
    rate, seed = 1e-9, 99
    trained = case.copy()
    trained.kernel(lr=rate, lr_proj=rate, seed=seed)
    for name, array in case.parameters.items():
        analytic = (trained.parameters[name] - array) / rate
        assert analytic.any() or not array.size
        every = w2vtiles.PROJ_EVERY[case.config.cbow] if name == "proj" else 1
        nats = lambda: case.copy().reference(lr=1e-30, lr_proj=1e-30, seed=seed)[0][(seed - 1) % every :: every]
        for rng in map(np.random.default_rng, range(5)):
            direction, numeric = slope(array, rng, lambda: -every * sum(nats()))
            assert (analytic * direction).sum() == pytest.approx(numeric, abs=1e-4), name


@pytest.mark.parametrize("tying", ["tied", "signs"])
@pytest.mark.parametrize("options", w2vcase.EACH_INPUT, ids=label)
def test_tied_updates(options, tying):
    w2vcase.assert_tied_update_is_the_sum_of_both_roles(Tiles, tying, **options)
    w2vcase.assert_tied_l_at_rate_0_equals_fixed_signs(Tiles, tying, **options)


@pytest.mark.parametrize("tying", TYINGS)
@pytest.mark.parametrize("cbow", [True, False])
def test_mean_update_equals_that_of_the_exact_kernel(cbow, tying):
    """Sharing negatives changes only the variance of the update, even if negatives occur in the text."""
    rate, runs = 1e-6, 600
    text = sentences([3, 5, 3, 1], [1, 4, 2, 5, 2, 6])
    noise = np.array([[0xFFFFFFFF, k] for k in range(V)], np.uint32)
    noise[:, 0], noise[:, 1] = 0, np.arange(V) % 9 + 1  # words 1 to 6, which are in the text, and three others
    means, errors = [], []
    for kind in (Tiles, w2vcase.Exact):
        case = kind(cbow=cbow, tying=tying, negative=4, batch=4 if tying == "linear" else 1)
        case.text, case.noise = text, noise
        updates = []
        for seed in range(runs):
            trained = case.copy()
            trained.kernel(rate, 0, seed=seed * 2**40)
            moved = [trained.parameters[name] - array for name, array in case.parameters.items() if name != "proj"]
            updates.append(np.concatenate(moved) / rate)
        means.append(np.mean(updates, 0))
        errors.append(np.std(updates, 0) / runs**0.5)
    error = np.hypot(*errors) + 1e-4
    assert np.abs(means[0] - means[1]).max() > 0 and (np.abs(means[0] - means[1]) < 5 * error).all()
    assert np.median(np.abs(means[1][1:7]) / error[1:7]) > 10, "the test cannot detect small differences"


@pytest.mark.parametrize("tying", TYINGS)
@pytest.mark.parametrize("cbow", [True, False])
def test_training_stops_before_divergence_spreads(cbow, tying):
    numbers = np.nan, np.inf, -np.inf, 1e30
    for bad, matrix, dtype in itertools.product(numbers, ("emb_in", "emb_out"), (np.float32, np.float64)):
        case = Tiles(cbow=cbow, tying=tying, dtype=dtype)
        getattr(case, matrix)[3, 0] = bad  # of the first word
        before = case.copy()
        *totals, flag = case.kernel(0.1, 0.1)
        assert flag == NAN and totals == [0, 0]
        for name, array in case.parameters.items():
            np.testing.assert_array_equal(array, before.parameters[name])


def test_scores_beyond_the_limit_count_as_divergence():
    for score, flag in [(0.99 * DIVERGED, 0), (1.01 * DIVERGED, NAN)]:
        for sign in (1, -1):
            case = Tiles(cbow=False, scale=0, shift=0)
            case.text = sentences([1, 2])
            case.emb_in[1:3, 0], case.emb_out[1:3, 0] = 1, sign * score
            nats, _, returned = case.kernel(1e-9, 0)
            assert returned == flag and (flag or sign == 1 or nats > 2 * 0.99 * DIVERGED)


def test_stop_flag_is_obeyed():
    case = Tiles()
    before = case.copy()
    case.kernel(0.1, 0.1, stop=STOP)
    np.testing.assert_array_equal(case.emb_in, before.emb_in)
