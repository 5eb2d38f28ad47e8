"""The training kernel against plain NumPy, and its gradients against finite differences."""

import itertools

import numpy as np
import pytest
import reference

from tiedtools.kernels import sampling, w2v
from tiedtools.models.word2vec import Config, huffman_tree, noise_table

V, M = 12, 7
SHARINGS = ["untied", "tied", "linear"]


class Case:
    """A small model with everything random, and the two ways to train it."""

    def __init__(self, batch=1, dtype=np.float64, scale=0.5, seed=3, **options):
        self.config = Config(size=M, window=3, **options)
        rng = np.random.default_rng(seed)
        counts = np.sort(rng.integers(5, 100, V))[::-1].astype(np.int64)
        self.noise = noise_table(counts) if self.config.negative else np.zeros((0, 2), np.uint32)
        empty = np.zeros(0, np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int64)
        self.tree = huffman_tree(counts) if self.config.hs else empty
        self.first_node = V if self.config.negative else 0
        # Three sentences, with a word twice in a window.
        self.tokens = np.array([0, 3, 5, 3, 8, 1, 0, 2, 0, 7, 11, 4, 9, 6, 10, 2, 0], np.int32)
        self.batch, self.dtype = batch, dtype
        draw = lambda *shape: rng.normal(0, scale, shape).astype(dtype)
        self.emb_in = draw(V, M)
        rows = self.first_node + (V - 1 if self.config.hs else 0)
        self.emb_out = draw(rows, M) if self.config.sharing == "untied" else self.emb_in
        self.proj = draw(M, M) if self.config.sharing == "linear" else np.zeros((0, 0), dtype)

    @property
    def parameters(self):
        named = dict(emb_in=self.emb_in, proj=self.proj)
        return named | ({} if self.emb_out is self.emb_in else dict(emb_out=self.emb_out))

    def copy(self):
        twin = object.__new__(Case)
        twin.__dict__.update(self.__dict__)
        twin.emb_in, twin.proj = self.emb_in.copy(), self.proj.copy()
        twin.emb_out = twin.emb_in if self.emb_out is self.emb_in else self.emb_out.copy()
        return twin

    def kernel(self, lr, lr_proj, seed=99, stop=0):
        """Train with the kernel; returns (nats, predictions, stop flag)."""
        zeros = lambda *shape: np.zeros(shape, self.dtype)
        hidden, grad = zeros(self.batch, M), zeros(self.batch, M)
        mapped, back = (zeros(self.batch, M), zeros(self.batch, M)) if self.proj.size else (hidden, grad)
        totals, flag = np.zeros(2), np.full(1, stop, np.uint8)
        c = self.config
        inputs, targets = np.zeros((2, self.batch, 1 + 2 * c.window), np.int32)
        w2v.train(
            self.emb_in, self.emb_out, self.proj, totals, flag,
            hidden, mapped, grad, back, np.zeros_like(self.proj), inputs, targets, np.zeros(100, np.int32),
            self.tokens, self.noise, *self.tree, len(self.tokens) - 2, self.first_node,
            c.window, c.negative, c.cbow, c.cbow_grad == "exact", c.skip_input, lr, lr_proj, np.uint64(seed),
        )  # fmt: skip
        return *totals, flag[0]

    def reference(self, lr, lr_proj, seed=99):
        return reference.word2vec(
            self.emb_in, self.emb_out, self.proj, self.tokens.tolist(), self.noise.tolist(), self.tree,
            self.first_node, self.config, self.batch, lr, lr_proj, seed,
        )  # fmt: skip


COMBINATIONS = [
    dict(cbow=cbow, sharing=sharing, hs=hs, negative=negative, cbow_grad=grad, skip_input=skip, batch=batch)
    for cbow, sharing, (hs, negative), grad, skip, batch in itertools.product(
        [True, False], SHARINGS, [(False, 4), (True, 0), (True, 3)], ["ctool", "exact"], [True, False], [1, 5]
    )
    if (sharing == "untied" or not hs) and (cbow or grad == "ctool") and (sharing == "linear" or batch == 1)
]


@pytest.mark.parametrize("options", COMBINATIONS, ids=lambda o: "-".join(map(str, o.values())))
def test_kernel_agrees_with_reference(options):
    fast = Case(**options)
    plain = fast.copy()
    nats, predictions, _ = fast.kernel(lr=0.1, lr_proj=0.03)
    expected_nats, expected_predictions = plain.reference(lr=0.1, lr_proj=0.03)
    assert predictions == expected_predictions > 0
    assert nats == pytest.approx(expected_nats, rel=1e-6)
    for name, array in plain.parameters.items():
        np.testing.assert_allclose(fast.parameters[name], array, atol=2e-6, err_msg=name)


@pytest.mark.parametrize("sharing", SHARINGS)
def test_single_precision_agrees_with_reference(sharing):
    fast = Case(sharing=sharing, dtype=np.float32, batch=5 if sharing == "linear" else 1)
    plain = fast.copy()
    for name in ("emb_in", "emb_out", "proj"):
        setattr(plain, name, getattr(plain, name).astype(np.float64))
    if sharing != "untied":
        plain.emb_out = plain.emb_in
    nats, *_ = fast.kernel(lr=0.1, lr_proj=0.03)
    assert nats == pytest.approx(plain.reference(lr=0.1, lr_proj=0.03)[0], rel=1e-5)
    for name, array in plain.parameters.items():
        np.testing.assert_allclose(fast.parameters[name], array, atol=2e-5, err_msg=name)


GRADIENTS = [o for o in COMBINATIONS if o["cbow_grad"] == "exact" or not o["cbow"]]


@pytest.mark.parametrize("options", GRADIENTS, ids=lambda o: "-".join(map(str, o.values())))
def test_update_is_the_gradient(options):
    """For a vanishing learning rate, update / rate is minus the gradient of the loss in every parameter."""
    case = Case(**options)
    rate = 1e-9
    trained = case.copy()
    trained.kernel(lr=rate, lr_proj=rate)
    step = 1e-5
    for name, array in case.parameters.items():
        analytic = (trained.parameters[name] - array) / rate
        for index in np.ndindex(array.shape):
            losses = []
            for sign in (1, -1):
                moved = case.copy()
                moved.parameters[name][index] += sign * step
                losses.append(moved.reference(lr=1e-30, lr_proj=1e-30)[0])
            numeric = (losses[1] - losses[0]) / (2 * step)
            assert analytic[index] == pytest.approx(numeric, abs=2e-5), (name, index)


def test_tied_update_is_the_sum_of_both_roles():
    """dS = dU + dV (Press and Wolf 2017, section 3): tied is untied with one matrix in both places."""
    rate = 1e-9
    tied = Case(sharing="tied", skip_input=False)
    untied = Case(sharing="untied")
    untied.emb_in, untied.emb_out = tied.emb_in.copy(), tied.emb_in.copy()
    start = tied.emb_in.copy()
    tied.kernel(rate, rate)
    untied.kernel(rate, rate)
    roles = (untied.emb_in - start) + (untied.emb_out - start)
    np.testing.assert_allclose((tied.emb_in - start) / rate, roles / rate, atol=1e-5)
    assert np.abs(roles).max() > 0


@pytest.mark.parametrize("cbow", [True, False])
def test_frozen_identity_equals_tied_to_the_bit(cbow):
    linear = Case(sharing="linear", cbow=cbow, dtype=np.float32)
    linear.proj[:] = np.eye(M)
    tied = Case(sharing="tied", cbow=cbow, dtype=np.float32)
    tied.emb_in = tied.emb_out = linear.emb_in.copy()
    assert linear.kernel(0.1, 0) == tied.kernel(0.1, 0)
    assert linear.emb_in.tobytes() == tied.emb_in.tobytes()


def test_skip_input_never_pushes_the_input_away():
    """With the input as the only other word, skipping leaves nothing but positive targets."""
    case = Case(cbow=False, sharing="untied", skip_input=True, negative=50)
    case.tokens = np.array([0, 1, 2, 0], np.int32)
    case.noise = np.array([[0, 1], [0xFFFFFFFF, 1], [0xFFFFFFFF, 2]], np.uint32)
    case.emb_in[:], case.emb_out[:] = 0.1, 0.1
    case.kernel(0.1, 0)
    assert (case.emb_out[1:3] > 0.1).all()
    case.config = Config(size=M, window=3, cbow=False, skip_input=False, negative=50)
    case.kernel(0.1, 0)
    assert (case.emb_out[1:3] < 0.1).any()


def test_saturated_scores():
    """Beyond +-6 a right prediction changes nothing, a wrong one gets the full error; a tree node is passed over."""
    case = Case(cbow=False, negative=1, scale=0)
    case.tokens = np.array([0, 1, 2, 0], np.int32)
    case.noise = np.array([[0xFFFFFFFF, 0]] * 3, np.uint32)
    case.noise[:, 0], case.noise[:, 1] = 0, 3
    case.emb_in[:, 0] = 1
    case.emb_out[[1, 2], 0] = 7  # right
    case.emb_out[3, 0] = 7  # wrong
    case.kernel(lr=0.5, lr_proj=0)
    assert (case.emb_out[[1, 2], 0] == 7).all()
    assert case.emb_out[3, 0] < 7 - 0.5 + 1e-9
    tree = Case(cbow=False, negative=0, hs=True, scale=0)
    tree.tokens = case.tokens
    tree.emb_in[:, 0] = 1
    tree.emb_out[:, 0] = -7
    tree.kernel(lr=0.5, lr_proj=0)
    assert (tree.emb_out[:, 0] == -7).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_divergence_stops_before_it_spreads(bad):
    case = Case(cbow=False)
    case.emb_in[3, 0] = bad
    before = case.copy()
    *_, flag = case.kernel(0.1, 0.1)
    assert flag == w2v.NAN
    assert np.isfinite(np.delete(case.emb_in, 3, 0)).all() and np.isfinite(case.emb_out).all()
    np.testing.assert_array_equal(case.emb_out, before.emb_out)


def test_stop_flag_is_obeyed():
    case = Case()
    before = case.copy()
    case.kernel(0.1, 0.1, stop=w2v.STOP)
    np.testing.assert_array_equal(case.emb_in, before.emb_in)


def test_windows_reach_every_radius_alike():
    """A word next to the centre is always used, one at the full distance once in `window` times."""
    case = Case(cbow=False, negative=1)
    case.tokens = np.array([0, 1, 2, 3, 4, 0], np.int32)
    predictions = [case.copy().kernel(1e-9, 0, seed=s)[1] for s in range(2000)]
    # Four centres, radius uniform on 1..3: 6 pairs at distance 1, 4 at distance 2 (2 in 3), 2 at distance 3 (1 in 3).
    assert np.mean(predictions) == pytest.approx(6 + 4 * 2 / 3 + 2 / 3, abs=0.1)


def test_thin_keeps_in_proportion_and_cuts_long_sentences():
    rng = np.random.default_rng(0)
    ids = rng.integers(1, 3, 200_000).astype(np.int32)
    keep = np.array([0, 0xFFFFFFFF, 0xFFFFFFFF // 4], np.uint32)
    out = np.empty(2 + 2 * ids.size, np.int32)
    n = sampling.thin(out, ids, keep, np.uint64(5))
    kept = out[1 : n + 1]
    assert out[0] == out[n + 1] == 0
    assert np.count_nonzero(kept == 1) == np.count_nonzero(ids == 1)
    assert np.count_nonzero(kept == 2) / np.count_nonzero(ids == 2) == pytest.approx(0.25, abs=0.01)
    ends = np.flatnonzero(kept == 0)
    assert (np.diff(ends) == sampling.LONGEST_SENTENCE + 1).all() and ends[0] == sampling.LONGEST_SENTENCE
    n = sampling.thin(out, np.array([1, 0, 0, 1, 1], np.int32), keep, np.uint64(5))
    assert out[: n + 2].tolist() == [0, 1, 0, 0, 1, 1, 0]
