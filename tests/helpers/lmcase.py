"""Small LSTM language models of every configuration, and accessors for tests."""

import numpy as np
import pytest

from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.network.cells import LSTM
from tiedtools.network.layers.regularization import Activity, Dropout, TemporalActivity
from tiedtools.network.optimizers import SGD
from tiedtools.text.vocab import Vocab

V, T, B = 103, 5, 3
VOCAB = Vocab(["</s>", *(f"w{k}" for k in range(1, V))], np.arange(V, 0, -1))
STATE_DROPOUT = dict(dropout_kind="variational", drop_layer=0.3, drop_state=0.3, drop_out=0.3)
GAL = dict(dropout_kind="gal", drop_word=0.2, drop_emb=0.3, drop_layer=0.3, drop_state=0.4, drop_out=0.3)
LOCKED = dict(dropout_kind="locked", drop_word=0.2, drop_emb=0.3, drop_layer=0.3, drop_out=0.4)
AWD = dict(tying="tied", layer_widths="17,13,11", drop_weights=0.4, ar=0.8, tar=0.6, **LOCKED)
CONFIGS = {
    "untied": dict(),
    "one layer": dict(layers=1, hidden=17),
    "three layers": dict(layers=3, hidden=17, output_bias=False),
    "sum": dict(loss_scale="sum"),
    "tied": dict(tying="tied"),
    "tied without bias": dict(tying="tied", output_bias=False),
    "linear": dict(tying="linear", hidden=17),
    "linear with bias": dict(tying="linear", hidden=17, linear_bias=True, loss_scale="sum"),
    "projection": dict(projection=0.15, hidden=17),
    "tied, projection": dict(tying="tied", projection=0.15, loss_scale="sum"),
    "standard dropout": dict(drop_emb=0.2, drop_layer=0.3, drop_out=0.4),
    "dropout before L": dict(tying="linear", drop_out=0.4),
    "dropout after L": dict(tying="linear", hidden=17, drop_out=0.4, drop_layer=0.3, linear_dropout="after"),
    "dropout at both": dict(tying="linear", hidden=17, drop_out=0.4, linear_dropout="both"),
    "variational": dict(dropout_kind="variational", drop_layer=0.3, drop_out=0.4, hidden=17),
    "variational, state": dict(tying="tied", **STATE_DROPOUT),
    "variational, batch": dict(mask_sharing="batch", **STATE_DROPOUT),
    "gal": dict(hidden=17, **GAL),
    "gal, batch": dict(tying="tied", mask_sharing="batch", **GAL),
    "locked": dict(hidden=17, **LOCKED),
    "locked, batch": dict(mask_sharing="batch", layers=1, **LOCKED),
    "weight drop": dict(drop_weights=0.4, layer_widths="17,9"),
    "weight drop, gal": dict(drop_weights=0.4, hidden=17, **GAL),
    "activation regularization": dict(ar=0.8, tar=0.6, hidden=17, tying="linear", loss_scale="sum", drop_out=0.4),
    "awd": AWD,
    "awd, one layer": AWD | dict(layer_widths="11", loss_scale="sum"),
    "augmented": dict(augment=0.7, tau=3.0),
    "augmented, tied": dict(augment=0.7, tau=3.0, tying="tied"),
    "augmented, detached": dict(augment=0.7, tau=3.0, tying="tied", detach=True, drop_out=0.3),
    "augmented, linear": dict(augment=0.7, tau=3.0, tying="linear", hidden=17),
    "augmented, share": dict(augment_share=0.3, tau=3.0, hidden=17, unit_embeddings=True),
    "augmented loss alone": dict(augment_share=1.0, tau=3.0, tying="tied", loss_scale="sum", output_bias=False),
    "sampled": dict(sampled=30),
    "sampled, tied": dict(sampled=30, tying="tied", drop_out=0.3),
    "sampled, without bias": dict(sampled=30, tying="linear", hidden=17, output_bias=False),
}
every_config = pytest.mark.parametrize("options", CONFIGS.values(), ids=CONFIGS)


def model(values=None, **options):
    return LstmLM(VOCAB, LstmConfig(**{"size": 11, "init": 0.4, "dtype": "float64", **options}), values)


def window(model, seed=3, T=T, B=B):
    """Return ids and targets [T, B], with one ignored target, and a random state."""
    rng = np.random.default_rng(seed)
    ids, targets = (rng.integers(0, len(model.vocab), (T, B)).astype(np.int32) for _ in range(2))
    targets[0, B // 2] = -1
    return ids, targets, tuple(0.3 * rng.normal(size=part.shape).astype(part.dtype) for part in model.start(B))


def values(model):
    """Return float64 copies of all parameters under all of their names."""
    return {name: model.params[name].astype(float) for name in model.params.names}


def grads(model):
    """Return copies of all gradients; tied ones under one name."""
    return {name: model.params.cut(model.params.grads, name).copy() for name in model.params.layout}


def gradient(model, step=7, **options):
    model.train_step(*window(model, **options), step)
    return grads(model)


def masks(model):
    """Return the dropout masks of the last step: a dict by site, and per LSTM layer its (masks, masks_x)."""
    widths = {"word": 1, "in": model.config.size, "after": model.network.output.n}
    widths |= dict(enumerate(model.config.units))
    drops = [layer for layer in model.network.layers if isinstance(layer, Dropout)]
    found = {drop.site[1] if drop.site[0] == "up" else drop.site: drop.mask for drop in drops}
    cut = {site: m[..., : widths[site]] for site, m in found.items() if m is not None}
    return cut, [(masked.masks, masked.masks_x) for _, masked, _ in (cell.saved for cell in cells(model))]


def cells(model):
    return [layer for layer in model.network.layers if isinstance(layer, LSTM)]


def weight_masks(model):
    """Return the masks of weight drop in the last step, a dict: name of W_h -> [n, 4n]; empty without weight drop."""
    return {cell.names[1]: cell.drop_weights.mask[:, 0].copy() for cell in cells(model) if cell.drop_weights}


def activity(model):
    """Return the sum of AR and TAR in the last step, on the scale of the sum of nats."""
    total = 0.0
    for layer in model.network.layers:
        if isinstance(layer, Activity):
            x = layer.x[..., : layer.n]
            x = np.diff(x, axis=0) if isinstance(layer, TemporalActivity) else x
            total += layer.weight * np.square(x).mean() * layer.x[..., 0].size
    return total


def assert_close(ours, theirs, tolerance=1e-11):
    assert ours.keys() == theirs.keys()
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=tolerance, atol=tolerance, err_msg=name)


def update(model, lr, clip):
    return SGD(model.params, clip, model.config.weight_decay).update(lr)


def train(model, steps=3, lr=0.5, clip=0.0):
    state = model.start(B)
    for step in range(steps):
        ids, targets, _ = window(model, step)
        _, _, state = model.train_step(ids, targets, state, step)
        update(model, lr, clip)
    return values(model)
