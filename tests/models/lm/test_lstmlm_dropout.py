"""Test dropout in the LSTM language model: which masks are drawn, and which are shared."""

import itertools

import lmcase
import numpy as np
import pytest
from lmcase import GAL, STATE_DROPOUT, B, T, gradient, masks, model, values, weight_masks, window


def drawn(**options):
    """Return a model after a step, with its dropout masks: {site: mask}, and pairs of each layer."""
    m = model(**options)
    gradient(m)
    return m, *masks(m)


def test_standard_dropout_draws_a_new_mask_for_every_token_and_site():
    m, found, layers = drawn(drop_emb=0.3, drop_layer=0.3, drop_out=0.3)
    assert {site: mask.shape for site, mask in found.items()} == {"in": (T, B, 11), 0: (T, B, 11), 1: (T, B, 11)}
    rows = np.concatenate([mask.reshape(-1, 11) for mask in found.values()])
    assert len(np.unique(rows, axis=0)) > 0.9 * len(rows)
    assert not any(len(mask) for pair in layers for mask in pair)
    _, found, _ = drawn(drop_emb=0.5, drop_layer=0.5, drop_out=0.5, tying="linear", linear_dropout="both", layers=3)
    assert len(found) == 5
    for a in found:
        for b in found:
            assert a == b or 0.3 < (found[a] == found[b]).mean() < 0.7


@pytest.mark.parametrize("sharing, different", [("example", B), ("batch", 1)])
def test_masks_are_shared_as_their_papers_say(sharing, different):
    m, found, layers = drawn(mask_sharing=sharing, size=40, **STATE_DROPOUT)
    assert set(found) == {0, 1}
    for k, (state, inputs) in enumerate(layers):
        assert found[k].shape == (1, different, 40) and state.shape == (1, B, 40) and not len(inputs)
        assert (state == found[k]).all(), "the next layer and the next step share a mask"
        assert len(np.unique(state[0], axis=0)) == different
    assert (found[0] != found[1]).any()
    m, found, layers = drawn(mask_sharing=sharing, size=40, hidden=30, **GAL)
    assert set(found) == {"word", 1} and found[1].shape == (1, different, 30)
    gate_masks = [mask for pair in layers for mask in pair]
    assert [mask.shape for mask in gate_masks] == [(4, B, 30), (4, B, 40), (4, B, 30), (4, B, 30)]
    for mask in gate_masks:
        assert len(np.unique(mask.reshape(4 * B, -1), axis=0)) == 4 * different
    assert [round(1 - 1 / mask.max(), 6) for mask in gate_masks] == [0.4, 0.3, 0.4, 0.3]
    m, found, layers = drawn(mask_sharing=sharing, size=40, **lmcase.LOCKED)
    assert {site: mask.shape for site, mask in found.items()} == {
        "word": (T, B, 1), "in": (1, different, 40), 0: (1, different, 40), 1: (1, different, 40)
    }  # fmt: skip
    assert not any(len(mask) for pair in layers for mask in pair)
    for site in "in", 0, 1:
        assert len(np.unique(found[site][0], axis=0)) == different
    words, ids = found["word"][..., 0], window(m)[0]
    assert all(len(set(words[ids == word])) == 1 for word in np.unique(ids)), "rows of E for the whole batch"


def test_variational_dropout_without_state_dropout():
    m, found, layers = drawn(**{**STATE_DROPOUT, "drop_state": 0.0})
    assert set(found) == {0, 1} and not any(len(mask) for pair in layers for mask in pair)


@pytest.mark.parametrize("sharing", ["example", "batch"])
def test_word_dropout_drops_all_occurrences_of_a_word(sharing):
    m = model(mask_sharing=sharing, **{**GAL, "drop_word": 0.5})
    ids = np.random.default_rng(1).integers(0, 12, (99, B)).astype(np.int32)
    m.train_step(ids, ids, m.start(B), 7)
    mask = masks(m)[0]["word"][..., 0]
    assert set(np.unique(mask)) == {0, 2}
    fates = [[set(mask[ids[:, b] == word, b]) for word in range(12)] for b in range(B)]
    assert all(len(fate) == 1 for row in fates for fate in row)
    assert (fates[0] == fates[1] == fates[2]) == (sharing == "batch")
    assert {0.0} in fates[0] and {2.0} in fates[0]


@pytest.mark.parametrize(
    "name", ["standard dropout", "dropout at both", "variational, batch", "gal", "awd", "sampled, tied"]
)
def test_masks_depend_only_on_seed_and_step(name):
    options = lmcase.CONFIGS[name]
    first = model(**options)
    start, ours = values(first), gradient(first)
    again = model(start, **options)
    gradient(again, step=8, seed=5, T=2, B=7)  # earlier steps have no effect
    lmcase.assert_close(gradient(again), ours, 0)
    others = gradient(again, step=8), gradient(model(start, **options, seed=2), step=7), gradient(again, step=-9)
    for other in others:
        assert not np.allclose(other["emb_in"], ours["emb_in"])


def test_weight_drop_has_a_mask_per_layer_for_all_gates():
    m = model(size=40, drop_weights=0.4)
    gradient(m)
    first = weight_masks(m)
    assert {name: mask.shape for name, mask in first.items()} == dict.fromkeys(["lstm1.W_h", "lstm2.W_h"], (40, 160))
    for mask in first.values():
        assert set(np.unique(mask)) == {0, 1 / 0.6} and (mask == 0).mean() == pytest.approx(0.4, abs=0.02)
        assert all((a != b).any() for a, b in itertools.combinations(np.split(mask, 4, 1), 2))
    assert (first["lstm1.W_h"] != first["lstm2.W_h"]).any()
    gradient(m, step=8)
    assert (weight_masks(m)["lstm1.W_h"] != first["lstm1.W_h"]).any(), "a mask for each window"
    gradient(m)
    assert (weight_masks(m)["lstm1.W_h"] == first["lstm1.W_h"]).all()
    wide = model(size=40, drop_weights=0.4, dtype="float32", precision="bfloat16")
    gradient(wide)
    assert ((weight_masks(wide)["lstm1.W_h"] == 0) == (first["lstm1.W_h"] == 0)).all()


def test_scoring_drops_nothing_except_in_monte_carlo_samples():
    for options in dict(drop_weights=0.5), dict(dropout_kind="variational", drop_layer=0.5, drop_out=0.5):
        m = model(**options)
        plain, (ids, targets, state) = model(values(m)), window(m)
        gradient(m)
        expected = plain.score(ids, targets, state)[0]
        np.testing.assert_array_equal(m.score(ids, targets, state)[0], expected)
        first, second, again = (m.score(ids, targets, state, sample=k)[0] for k in (0, 1, 0))
        np.testing.assert_array_equal(first, again)
        assert not np.allclose(first, second) and not np.allclose(first, expected)
        np.testing.assert_array_equal(m.score(ids, targets, state)[0], expected)
        np.testing.assert_array_equal(m.predict(ids, state)[0], plain.predict(ids, state)[0])
    cut = m.score(ids[:2], targets[:2], state, sample=0)
    rest = m.score(ids[2:], targets[2:], cut[1], sample=0)
    np.testing.assert_allclose(np.concatenate([cut[0], rest[0]]), first, rtol=1e-12)
    # As in Gal & Ghahramani's code; masks at the other sites do not depend on drop_word.
    gal = dict(dropout_kind="gal", drop_emb=0.3, drop_layer=0.3, drop_state=0.4, drop_out=0.3)
    some, none = (model(drop_word=p, **gal) for p in (0.9, 0.0))
    ids, targets, state = window(some)
    for sample in range(3):
        expected = none.score(ids, targets, state, sample=sample)[0]
        np.testing.assert_array_equal(some.score(ids, targets, state, sample=sample)[0], expected)
    assert not np.array_equal(expected, none.score(ids, targets, state)[0])
