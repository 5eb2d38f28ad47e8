"""LstmLM against PyTorch, which differentiates by itself: the same weights and batches give the same training."""

import numpy as np
import pytest

from tiedtools.models.lstmconfig import LstmConfig
from tiedtools.models.lstmlm import LstmLM, mask_seed
from tiedtools.vocab import Vocab

torch = pytest.importorskip("torch")
from torchlm import Oracle  # noqa: E402

torch.set_num_threads(1)  # arrays are small

V, T, B, STEPS = 110, 7, 4, 20
TOLERANCE = {"float64": 1e-5, "float32": 1e-4}  # relative, of losses

MODELS = {
    "untied": dict(emb=6, hidden=5),
    "tied": dict(emb=6, sharing="tied"),
    "tied, no bias": dict(emb=6, sharing="tied", output_bias=False),
    "linear": dict(emb=6, hidden=9, sharing="linear"),
    "linear, bias": dict(emb=17, hidden=5, sharing="linear", linear_bias=True, layers=3),
    "linear, two threads": dict(emb=20, hidden=40, sharing="linear", threads=2),
    "projection": dict(emb=5, hidden=8, projection=3.0),
    "tied, projection": dict(emb=6, sharing="tied", projection=3.0),
}
AUGMENTED = {
    f"{sharing}, {'detached' if detach else 'flowing'}": dict(
        emb=6, sharing=sharing, augment=0.8, tau=1.5, detach=detach, **more
    )
    for sharing, more in {"untied": {}, "tied": dict(output_bias=False), "linear": dict(hidden=9)}.items()
    for detach in (True, False)
}
DROPOUT = {
    "standard": dict(drop_emb=0.2, drop_layer=0.3, drop_out=0.4),
    "standard, linear": dict(drop_layer=0.3, drop_out=0.4, sharing="linear", hidden=9, linear_dropout="both"),
    "variational": dict(dropout="variational", drop_layer=0.3, drop_out=0.3, drop_state=0.3),
    "variational, up only": dict(dropout="variational", drop_layer=0.3, drop_out=0.5),
    "variational, batch": dict(
        dropout="variational", drop_layer=0.3, drop_out=0.3, drop_state=0.3, mask_sharing="batch"
    ),
    "gal": dict(dropout="gal", drop_word=0.4, drop_emb=0.2, drop_layer=0.3, drop_state=0.4, drop_out=0.5, hidden=9),
}


def new_model(**options):
    return LstmLM(Vocab([str(k) for k in range(V)], np.ones(V, np.int64)), LstmConfig(steps=T, batch=B, **options))


def batches():
    """Windows of a text in which some words come often; some shorter, as at the end of an epoch, with gaps."""
    rng = np.random.default_rng(3)
    share = 1 / np.arange(1, V + 1)
    for k in range(STEPS):
        words = rng.choice(V, ((3 if k % 6 == 5 else T) + 1, B), p=share / share.sum()).astype(np.int32)
        targets = words[1:].copy()
        targets[rng.random(targets.shape) < 0.1] = -1
        yield words[:-1], targets


def masks_of(model, step, ids):
    """The masks of the step that the model has just made, as Oracle.through wants them."""
    c = model.config
    mask = lambda drop, n: 1 if drop.mask is None else torch.tensor(drop.mask[..., :n])
    both = [model.masks_over_time(k, B, lambda place: mask_seed(c.seed, step, place)) for k in range(c.layers)]
    h, x = ([1 if mask is None else torch.tensor(mask) for mask in masks] for masks in zip(*both))
    words = model.drop_word.forward(np.ones((*ids.shape, 1), c.dtype), ids, mask_seed(c.seed, step, "word"))[..., :1]
    return {
        "in": mask(model.drop_in, c.emb) * torch.tensor(words),
        "up": [mask(drop, c.hidden) for drop in model.drop_up],
        "h": h,
        "x": x,
        "after": mask(model.drop_after, c.emb) if c.linear_dropout != "before" else 1,
    }


def agree(masked=False, dtype="float64", loss_scale="mean", **options):
    """Train both, every other step with a gradient that is clipped."""
    model = new_model(init=0.3, dtype=dtype, loss_scale=loss_scale, **options)
    oracle = Oracle(model.config, V, dict(model.params.owners()))
    times = 1 if loss_scale == "mean" else T
    state, their_state = model.start(B), tuple(map(torch.tensor, model.start(B)))
    ours, theirs = [], []
    for k, (ids, targets) in enumerate(batches()):
        lr, clip = 4 / times, (0.04 if k % 2 else 10) * times
        nll, predicted, state = model.train_step(ids, targets, state, k)
        norm = model.update(lr, clip)
        assert predicted == (targets >= 0).sum() and 0.04 * times < norm < 10 * times
        wide = torch.tensor(ids).long(), torch.tensor(targets).long()
        masks = masks_of(model, k, ids) if masked else None
        their_nll, their_norm, their_state = oracle.step(*wide, their_state, lr, clip, masks)
        ours.append((nll / predicted, norm))
        theirs.append((their_nll / predicted, their_norm))
    ours, theirs = np.array(ours), np.array(theirs)
    np.testing.assert_allclose(ours[:, 0], theirs[:, 0], rtol=TOLERANCE[dtype])
    np.testing.assert_allclose(ours[:, 1], theirs[:, 1], rtol=10 * TOLERANCE[dtype])
    for name, values in oracle.values().items():
        np.testing.assert_allclose(model.params[name], values, atol=10 * TOLERANCE[dtype], err_msg=name)
    assert ours[-5:, 0].mean() < ours[:5, 0].mean() - 0.1  # it learns, or agreement would say little


@pytest.mark.parametrize("loss_scale, dtype", [("mean", "float64"), ("mean", "float32"), ("sum", "float64")])
@pytest.mark.parametrize("name", MODELS)
def test_training(name, loss_scale, dtype):
    agree(dtype=dtype, loss_scale=loss_scale, **MODELS[name])


@pytest.mark.parametrize("loss_scale, dtype", [("mean", "float64"), ("mean", "float32"), ("sum", "float64")])
@pytest.mark.parametrize("name", AUGMENTED)
def test_augmented_loss(name, loss_scale, dtype):
    agree(dtype=dtype, loss_scale=loss_scale, **AUGMENTED[name])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", DROPOUT)
def test_training_with_the_same_masks(name, dtype):
    agree(masked=True, dtype=dtype, **dict(emb=6) | DROPOUT[name])


@pytest.mark.parametrize("name", DROPOUT)
def test_masks_given_to_torch_drop_something(name):
    """Dropout that the model left out would agree with masks of 1."""
    model = new_model(**dict(emb=6) | DROPOUT[name])
    c, (ids, targets) = model.config, next(batches())
    model.train_step(ids, targets, model.start(B), 0)
    masks = masks_of(model, 0, ids)
    drops = lambda mask: not isinstance(mask, int) and bool((mask == 0).any())
    assert drops(masks["in"]) == bool(c.drop_word or c.drop_emb and c.dropout != "gal")
    assert [drops(mask) for mask in masks["up"]] == [c.dropout != "gal", True]
    assert [drops(mask) for mask in masks["h"]] == [bool(c.drop_state)] * 2
    assert [drops(mask) for mask in masks["x"]] == [c.dropout == "gal"] * 2
    assert drops(masks["after"]) == (c.linear_dropout == "both")


def test_oracle_through_masks_of_one_is_torch_itself():
    model = new_model(emb=6, hidden=9, sharing="linear", dtype="float64", layers=3)
    oracle = Oracle(model.config, V, dict(model.params.owners()))
    ids, state = torch.tensor(next(batches())[0]), tuple(map(torch.tensor, model.start(B)))
    masks = {"in": 1, "up": [1] * 3, "h": [1] * 3, "x": [1] * 3, "after": 1}
    (scores, behind), (again, behind_again) = oracle(ids, state), oracle.through(masks, ids, state)
    torch.testing.assert_close(scores, again)
    torch.testing.assert_close(behind, behind_again)
