"""Test the LSTM language model: losses and gradients, and equivalence of variants."""

import dataclasses
import functools

import lmcase
import lmreference
import numpy as np
import pytest
from lmcase import CONFIGS, B, T, V, assert_close, every_config, gradient, masks, model, train, update, values, window
from modelsizes import lstm_params
from slopes import slope

from tiedtools.network.network import Step, mask_seed
from tiedtools.training.scoring import evaluate


def assert_alike(state, expected, tolerance):
    for part, other in zip(state, expected, strict=True):
        np.testing.assert_allclose(part, other, rtol=tolerance, atol=tolerance / 100)


# Gradients


@pytest.mark.parametrize("options", [c for c in CONFIGS.values() if "sampled" not in c], ids=lambda c: repr(c)[5:-1])
def test_training_step_matches_reference(options):
    m = model(**options)
    ids, targets, state = window(m)
    nll, n, end = m.train_step(ids, targets, state, 7)
    expected = lmreference.language_model(values(m), m.config, ids, targets, state, *masks(m), lmcase.weight_masks(m))
    assert (nll, n) == (pytest.approx(expected[0].sum(), rel=1e-12), T * B - 1)
    assert_alike(end, expected[1], 1e-12)


@every_config
def test_gradients_match_finite_differences(options):
    """Checks random directions; the reference supplies loss terms that `train_step` does not report."""
    m = model(**options)
    c, (ids, targets, state) = m.config, window(m)
    ours = gradient(m)
    fixed = m.params["emb_in"].copy()

    def objective():
        nats, _, _ = m.train_step(ids, targets, state, 7)
        nats += lmcase.activity(m)
        if c.projection:
            nats += c.projection / 2 * (m.params["proj.W"] ** 2).sum()
        if c.augment or c.augment_share:
            step = Step(ids, targets, functools.partial(mask_seed, c.seed, 7), training=True)
            x, _ = m.network.forward(state, step)
            z0 = x[..., : m.network.output.n] @ m.params["emb_out"].T
            E = fixed if c.detach else m.params["emb_in"]
            weight = c.augment + c.augment_share * c.tau * V
            nats = (1 - c.augment_share) * nats + weight * lmreference.augmentation(z0, E, targets, c.tau).sum()
        return nats / (B if c.loss_scale == "sum" else T * B)

    rng = np.random.default_rng(1)
    for name, array in m.params.owners():
        direction, numeric = slope(array, rng, objective)
        assert (ours[name] * direction).sum() == pytest.approx(numeric, rel=1e-6, abs=1e-8), name
        assert np.abs(ours[name]).max() > 1e-4, name


def test_unit_embeddings_keep_norm_1():
    options = dict(hidden=17, augment_share=0.5, tau=2.0)
    m, drawn = model(unit_embeddings=True, **options), model(**options).params["emb_in"]
    expected = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    np.testing.assert_allclose(m.params["emb_in"], expected, rtol=1e-14)
    train(m)
    assert np.abs(m.params["emb_in"] - expected).max() > 1e-3
    np.testing.assert_allclose(np.linalg.norm(m.params["emb_in"], axis=1), 1, rtol=1e-14)
    trained = values(m)
    m.compile()  # as when a run is resumed
    assert all(np.array_equal(array, trained[name]) for name, array in values(m).items())


@pytest.mark.parametrize("more", [{}, dict(drop_out=0.4), lmcase.STATE_DROPOUT, dict(sampled=30), dict(augment=0.5)])
def test_tied_gradient_is_the_sum_of_input_and_output_gradients(more):
    tied = model(tying="tied", **more)
    untied = model(values(tied), **more)
    both, roles = gradient(tied), gradient(untied)
    roles["emb_in"] += roles.pop("emb_out")
    assert_close(both, roles)


# Equivalent variants


@every_config
def test_numbers_of_parameters_and_padding(options):
    m = model(**options)
    assert m.params.count == lstm_params(m.config, V) == sum(array.size for _, array in m.params.owners())
    m = model(**{**options, "weight_decay": 1e-3})
    start = m.params.values.copy()
    train(m)
    true = np.zeros(m.params.values.size, bool)
    for name in m.params.layout:
        m.params.cut(true, name)[:] = True
    assert not m.params.values[~true].any() and (m.params.values != start)[true].all()


# Initialization


def test_initial_parameters():
    m = model(size=40, init=0.05, init_lstm=0.2, forget_bias=3.0)
    for name, array in m.params.owners():
        reach = 0.2 if name.startswith("lstm") else 0.05
        array = array.copy()
        if name.endswith(".b") and name.startswith("lstm"):
            array[40:80] -= 3
        assert 0.9 * reach < np.abs(array).max() <= reach + 1e-12 and abs(array.mean()) < 0.2 * reach
    zero = model(init_bias="zero", forget_bias=1.0)
    assert not zero.params["emb_out.b"].any()
    assert zero.params["lstm1.b"].reshape(4, 11).tolist() == [[0] * 11, [1] * 11, [0] * 11, [0] * 11]
    torch = model(size=40, init=0.1, init_lstm=0.05, init_bias="lstm", tying="linear", linear_bias=True)
    reach = {name: float(np.abs(array).max()) for name, array in torch.params.owners()}
    assert reach.pop("emb_out.b") == 0 and reach.pop("emb_in") == pytest.approx(0.1, rel=0.1)
    assert len(reach) == 8 and list(reach.values()) == pytest.approx([0.05] * 8, rel=0.2)
    merity = model(layer_widths="400,40", size=40, init=0.05, init_bias="lstm", init_by_width=True)
    for layer, reach in ("lstm1", 1 / 20), ("lstm2", 40**-0.5):
        for part in "W_x", "W_h", "b":
            assert 0.95 * reach < np.abs(merity.params[f"{layer}.{part}"]).max() <= reach, (layer, part)
    assert not np.array_equal(model(seed=1).params.values, model(seed=2).params.values)
    assert not any(part.any() for part in m.start(4)) and [part.shape for part in m.start(4)] == [(1, 4, 40)] * 4


# Scoring


@every_config
def test_scores_and_predictions(options):
    m = model(**options)
    ids, targets, state = window(m)
    logps, end = m.score(ids, targets, state)
    nll, expected_end = lmreference.language_model(
        values(m), dataclasses.replace(m.config, augment=0.0), ids, targets, state, {}, [()] * m.config.layers
    )
    assert logps.dtype == np.float64 and logps[0, B // 2] == 0
    np.testing.assert_allclose(logps, -nll, rtol=1e-12, atol=1e-13)
    assert_alike(end, expected_end, 1e-12)
    for t in range(T):
        predicted, state = m.predict(ids[t : t + 1], state)
        assert predicted.shape == (B, V) and predicted.dtype == np.float64
        np.testing.assert_allclose(np.exp(predicted).sum(1), 1, rtol=1e-12)
        known = targets[t] >= 0
        np.testing.assert_allclose(predicted[known, targets[t][known]], logps[t][known], rtol=1e-11)
    assert_alike(state, end, 1e-11)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12)])
def test_scores_do_not_depend_on_training_window_or_batch_size(dtype, tolerance):
    text = np.random.default_rng(2).integers(0, V, 61).astype(np.int32)
    start = values(model())
    whole = evaluate(model(start, dtype=dtype, steps=100, batch=1), text)
    for steps, batch in (1, 1), (7, 3), (60, 1):
        logps = evaluate(model(start, dtype=dtype, steps=steps, batch=batch), text)
        np.testing.assert_allclose(logps, whole, rtol=tolerance, atol=tolerance)
    half = evaluate(model(start, dtype=dtype), text, batch=2)
    np.testing.assert_allclose(half[:31], whole[:31], rtol=tolerance, atol=tolerance)
    assert abs(half[31] - whole[31]) > 1e-3, "streams are independent"


def test_calls_do_not_affect_each_other_but_use_the_current_parameters():
    """Packed weights are discarded when parameters change, even by weight decay alone."""
    m = model(weight_decay=0.1)
    ids, targets, state = window(m)
    for lr in 0.5, 0.0:
        m.score(ids, targets, state)
        m.train_step(ids, targets, state, 1)
        update(m, lr, 0.0)
        fresh = model(values(m))
        np.testing.assert_array_equal(m.score(ids, targets, state)[0], fresh.score(ids, targets, state)[0])
    m = model()
    ids, targets, state = window(m)
    before = [part.copy() for part in state]
    for call in (lambda: m.score(ids, targets, state), lambda: m.predict(ids, state)):
        first, end = call()
        kept = first.copy(), [part.copy() for part in end]
        m.score(ids[::-1].copy(), targets, end)
        m.train_step(ids, targets, end, 1)
        np.testing.assert_array_equal(first, kept[0])
        for now, then in zip((*state, *end), (*before, *kept[1])):
            np.testing.assert_array_equal(now, then)
    m = model(tying="tied")
    ids, targets, state = window(m)
    logps, end = m.score(ids, targets, state)
    for b in range(B):
        alone, alone_end = m.score(ids[:, b : b + 1], targets[:, b : b + 1], tuple(s[:, b : b + 1] for s in state))
        np.testing.assert_allclose(alone[:, 0], logps[:, b], rtol=1e-12)
        np.testing.assert_allclose(np.array(alone_end)[:, :, 0], np.array(end)[:, :, b], rtol=1e-12)


# Training


@pytest.mark.parametrize("name", ["tied", "gal", "sampled, tied", "augmented"])
def test_one_thread_is_bitwise_reproducible(name):
    for dtype in "float32", "float64":
        runs = [model(dtype=dtype, **CONFIGS[name]) for _ in range(2)]
        for run in runs:
            train(run, clip=0.3)
        assert runs[0].params.values.tobytes() == runs[1].params.values.tobytes()


@every_config
def test_compiling_and_threads_do_not_change_results(options):
    compiled, other = (model(**{**options, "weight_decay": 0.1}) for _ in range(2))
    compiled.compile()
    assert compiled.params.values.tobytes() == other.params.values.tobytes()
    assert_close(train(compiled), train(other), 0)
    first = train(model(**options), clip=0.3)
    for threads in 2, 3:
        assert_close(train(model(threads=threads, **options), clip=0.3), first, 1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["emb_in", "lstm1.W_x", "lstm2.W_h", "lstm1.b", "proj.W", "emb_out.b"])
def test_divergence_is_detected_and_leaves_parameters_unchanged(name, dtype):
    m = model(tying="linear", dtype=dtype)
    ids, targets, state = window(m)
    m.params[name][...] = np.nan
    start = m.params.values.copy()
    assert np.isnan(m.train_step(ids, targets, state, 1)[0]) and np.isnan(m.score(ids, targets, state)[0][-1]).all()
    assert not np.isfinite(update(m, 1.0, 0.25))
    np.testing.assert_array_equal(m.params.values, start)


# bfloat16


@pytest.mark.parametrize("name", ["untied", "linear with bias", "gal", "awd", "augmented, tied", "sampled"])
@pytest.mark.parametrize("threads", [1, 2])
def test_bfloat16_trains_alike_and_scores_in_full_precision(name, threads):
    options = dict(**CONFIGS[name], dtype="float32", threads=threads)
    wide, half = model(**options), model(precision="bfloat16", **options)
    for step in range(20):
        losses = []
        for m in wide, half:
            ids, targets, state = window(m, step % 3)
            losses.append(m.train_step(ids, targets, state, step)[0])
            update(m, 0.05, 1.0)
        assert losses[1] == pytest.approx(losses[0], rel=0.01), step
    assert losses[1] != losses[0]
    ids, targets, state = window(half)
    same = model({name: array.copy() for name, array in half.params.owners()}, **options)
    (ours, end), (theirs, expected) = half.score(ids, targets, state), same.score(ids, targets, state)
    np.testing.assert_array_equal(ours, theirs)
    assert_alike(end, expected, 0)


@pytest.mark.parametrize("threads", [1, 3])
def test_one_stream_is_predicted_as_it_is_scored(threads):
    """With few rows, threads share columns of the products, and scores are dot products."""
    m = model(size=24, hidden=40, tying="linear", init=0.5, threads=threads)
    ids, state = np.arange(1, 6, dtype=np.int32)[:, None], m.start(1)
    logps, _ = m.score(ids[:-1], ids[1:], state)
    for word, target, logp in zip(ids, ids[1:, 0], logps[:, 0]):
        predicted, state = m.predict(word[None], state)
        np.testing.assert_allclose(predicted[0, target], logp, rtol=1e-11)
        np.testing.assert_allclose(np.exp(predicted).sum(), 1, rtol=1e-12)
