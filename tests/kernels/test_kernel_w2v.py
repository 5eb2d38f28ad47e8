"""Test the word2vec kernel against plain NumPy, and its gradients against finite differences."""

import itertools

import numpy as np
import pytest
import w2vcase
from slopes import slope
from w2vcase import RULES, TYINGS, Exact, M, has_gradient, label, sentences

from tiedtools.kernels.word2vec import w2v
from tiedtools.models.word2vec.config import Config

COMBINATIONS = [
    dict(cbow=cbow, tying=tying, hs=hs, negative=negative, cbow_grad=grad, skip_input=skip, batch=batch)
    for cbow, tying, (hs, negative), grad, skip, batch in itertools.product(
        [True, False], TYINGS, [(False, 4), (True, 0), (True, 3)], ["ctool", "exact"], [True, False], [1, 4, 12]
    )
    if (tying == "untied" or not hs) and (cbow or grad == "ctool") and (tying == "linear") == (batch > 1)
]
COMBINATIONS += [dict(rules, tying=t, batch=4 if t == "linear" else 1) for rules in RULES for t in TYINGS]
COMBINATIONS += [dict(rules, hs=True, negative=0) for rules in RULES]


@pytest.mark.parametrize("options", COMBINATIONS, ids=label)
def test_kernel_agrees_with_reference(options):
    fast = Exact(**options)
    plain = fast.copy()
    nats, predictions, _ = fast.kernel(lr=0.1, lr_proj=0.03)
    expected_nats, expected_predictions = plain.reference(lr=0.1, lr_proj=0.03)
    assert predictions == expected_predictions > 0
    assert nats == pytest.approx(expected_nats, rel=1e-6)
    fast.assert_close(plain, atol=2e-6)


@pytest.mark.parametrize("tying", TYINGS)
def test_single_precision_agrees_with_reference(tying):
    fast = Exact(tying=tying, dtype=np.float32, batch=4 if tying == "linear" else 1)
    plain = fast.copy(np.float64)
    nats, *_ = fast.kernel(lr=0.1, lr_proj=0.03)
    assert nats == pytest.approx(plain.reference(lr=0.1, lr_proj=0.03)[0], rel=1e-5)
    fast.assert_close(plain, atol=2e-5)


@pytest.mark.parametrize(
    "options", [o for o in COMBINATIONS if has_gradient(o) and not (o.get("skip_input") and o.get("hs"))], ids=label
)
def test_update_is_the_gradient(options):
    """As the learning rate approaches 0, update / rate approaches minus the gradient of the loss."""
    case = Exact(**options)
    rate = 1e-9
    trained = case.copy()
    trained.kernel(lr=rate, lr_proj=rate)
    for name, array in case.parameters.items():
        analytic = (trained.parameters[name] - array) / rate
        for rng in map(np.random.default_rng, range(5)):
            direction, numeric = slope(array, rng, lambda: -case.copy().reference(lr=1e-30, lr_proj=1e-30)[0])
            assert (analytic * direction).sum() == pytest.approx(numeric, abs=2e-5), name


@pytest.mark.parametrize("tying", ["tied", "signs"])
@pytest.mark.parametrize("options", w2vcase.EACH_INPUT, ids=label)
def test_tied_updates(options, tying):
    w2vcase.assert_tied_update_is_the_sum_of_both_roles(Exact, tying, **options)
    w2vcase.assert_tied_l_at_rate_0_equals_fixed_signs(Exact, tying, batch=4, **options)


def test_skip_input_never_pushes_the_input_away():
    """If the input is the only other word, all negatives are skipped."""
    case = Exact(cbow=False, tying="untied", skip_input=True, negative=50)
    case.text = sentences([1, 2])
    case.noise = np.array([[0, 1], [0xFFFFFFFF, 1], [0xFFFFFFFF, 2]], np.uint32)
    case.emb_in[:, :M], case.emb_out[:, :M] = 0.1, 0.1
    case.kernel(0.1, 0)
    assert (case.emb_out[1:3, :M] > 0.1).all()
    case.config = Config(size=M, window=3, architecture="skipgram", skip_input=False, negative=50)
    case.kernel(0.1, 0)
    assert (case.emb_out[1:3, :M] < 0.1).any()


def test_saturated_scores():
    """Beyond +-6, correct predictions cause no update, wrong ones the full error, and tree nodes are skipped."""
    case = Exact(cbow=False, negative=1, scale=0, shift=0)
    case.text = sentences([1, 2])
    case.noise = np.array([[0xFFFFFFFF, 0]] * 3, np.uint32)
    case.noise[:, 0], case.noise[:, 1] = 0, 3
    case.emb_in[:, 0] = 1
    case.emb_out[[1, 2], 0] = 7  # right
    case.emb_out[3, 0] = 40  # wrong, also beyond the scores whose probability is computed
    assert case.kernel(lr=0.5, lr_proj=0)[0] == pytest.approx(40 + 39.5 + 2 * np.log1p(np.exp(-7)))
    assert (case.emb_out[[1, 2], 0] == 7).all()
    assert case.emb_out[3, 0] < 40 - 0.5 + 1e-9
    tree = Exact(cbow=False, negative=0, hs=True, scale=0)
    tree.text = case.text
    tree.emb_in[:, 0] = 1
    tree.emb_out[:, 0] = -7
    tree.kernel(lr=0.5, lr_proj=0)
    assert (tree.emb_out[:, 0] == -7).all()


@pytest.mark.parametrize("shift", [-2, 2])
def test_saturation_applies_to_shifted_scores(shift):
    case = Exact(cbow=False, negative=1, scale=0, shift=shift)
    case.text, case.noise = sentences([1, 2]), np.array([[0, 3]] * 3, np.uint32)
    case.emb_in[:, 0] = 1
    case.emb_out[[1, 2], 0] = 6.5 - shift  # right
    case.emb_out[3, 0] = -6.5 - shift  # right
    before = case.copy()
    case.kernel(lr=0.5, lr_proj=0)
    case.assert_close(before, atol=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_training_stops_before_divergence_spreads(bad):
    case = Exact(cbow=False)
    case.emb_in[3, 0] = bad
    before = case.copy()
    *_, flag = case.kernel(0.1, 0.1)
    assert flag == w2v.NAN
    assert np.isfinite(np.delete(case.emb_in, 3, 0)).all() and np.isfinite(case.emb_out).all()
    np.testing.assert_array_equal(case.emb_out, before.emb_out)


def test_stop_flag_is_obeyed():
    case = Exact()
    before = case.copy()
    case.kernel(0.1, 0.1, stop=w2v.STOP)
    np.testing.assert_array_equal(case.emb_in, before.emb_in)


def test_window_radius_is_uniform_or_fixed():
    """An adjacent word is always used, one at distance `window` with probability 1 / window."""
    case = Exact(cbow=False, negative=1)
    case.text = sentences([1, 2, 3, 4])
    predictions = [case.copy().kernel(1e-9, 0, seed=s)[1] for s in range(2000)]
    # 4 center words, radius uniform on 1..3: 6 pairs at distance 1, 4 at distance 2 (2 in 3), 2 at distance 3 (1 in 3).
    assert np.mean(predictions) == pytest.approx(6 + 4 * 2 / 3 + 2 / 3, abs=0.1)
    fixed = Exact(cbow=False, negative=1, fixed_window=True)
    fixed.text = case.text
    assert {fixed.copy().kernel(1e-9, 0, seed=s)[1] for s in range(20)} == {12}
