"""Test LstmLM against PyTorch's automatic differentiation: the same weights and batches give the same training.

With tests/helpers in PYTHONPATH, `python tests/models/lm/test_torch.py` records PyTorch's results in oracle.json,
for comparison by test_oracle.py.
"""

import math

import numpy as np
import pytest
from lmcase import masks
from recording import record

from tiedtools.network.network import mask_seed

torch = pytest.importorskip("torch")
from torchcase import (  # noqa: E402
    DROPOUT,
    RECORDED,
    TOLERANCE,
    VARIANTS,
    B,
    V,
    batches,
    cases,
    new_model,
    rates,
    recorded,
    trained,
)  # fmt: skip
from torchlm import Oracle  # noqa: E402

torch.set_num_threads(1)  # arrays are small


def masks_of(model):
    """Return the masks of the model's last step in the form that Oracle.through expects."""
    found, cells = masks(model)
    tensor = lambda mask: torch.tensor(mask) if len(mask) else 1
    product = lambda *sites: math.prod(torch.tensor(found[site]) for site in sites if site in found)
    h, x = ([tensor(mask) for mask in each] for each in zip(*cells))
    up = [product(k) for k in range(model.config.layers)]
    return {"in": product("in", "word"), "up": up, "h": h, "x": x, "after": product("after")}


def stacked(state):
    """Return the state of an LstmLM in PyTorch's layout: h and c, each for all layers."""
    return tuple(torch.tensor(np.concatenate(state[k::2])) for k in range(2))


def compared(name, dtype, loss_scale):
    """Train both; return (model, losses, norms) of tiedtools and (oracle, losses, norms) of PyTorch."""
    oracle, state, losses, norms = None, None, [], []

    def step(model, k, ids, targets):
        nonlocal oracle, state
        if oracle is None:
            start = new_model(init=0.3, dtype=dtype, loss_scale=loss_scale, **VARIANTS[name])
            oracle = Oracle(model.config, V, dict(start.params.owners()))
            state = stacked(model.start(B))
        wide = torch.tensor(ids).long(), torch.tensor(targets).long()
        applied = masks_of(model) if name in DROPOUT else None
        samples = (
            model.network.output.draw(mask_seed(model.config.seed, k, "samples")) if model.config.sampled else None
        )
        nll, norm, state = oracle.step(*wide, state, *rates(k, loss_scale), applied, samples)
        losses.append(nll / (targets >= 0).sum())
        norms.append(norm)

    return trained(name, dtype, loss_scale, step), (oracle, losses, norms)


@pytest.mark.parametrize("name, loss_scale, dtype", cases())
def test_training(name, loss_scale, dtype):
    (model, *ours), (oracle, *theirs) = compared(name, dtype, loss_scale)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=TOLERANCE[dtype])
    np.testing.assert_allclose(ours[1], theirs[1], rtol=10 * TOLERANCE[dtype])
    for parameter, values in oracle.values().items():
        np.testing.assert_allclose(model.params[parameter], values, atol=10 * TOLERANCE[dtype], err_msg=parameter)
    kept = recorded()[cases()[name, loss_scale, dtype]]
    np.testing.assert_allclose(theirs, [kept["loss"], kept["norm"]], rtol=1e-6 if dtype == "float64" else 1e-4)


@pytest.mark.parametrize("name", DROPOUT)
def test_masks_passed_to_pytorch_contain_zeros(name):
    """Otherwise a model without dropout would match PyTorch with masks of 1."""
    model = new_model(**DROPOUT[name])
    c, (ids, targets) = model.config, next(batches())
    model.train_step(ids, targets, model.start(B), 0)
    applied = masks_of(model)
    drops = lambda mask: not isinstance(mask, int) and bool((mask == 0).any())
    assert drops(applied["in"]) == bool(c.drop_word or c.drop_emb and c.dropout_kind != "gal")
    assert [drops(mask) for mask in applied["up"]] == [c.dropout_kind != "gal", True]
    assert [drops(mask) for mask in applied["h"]] == [bool(c.drop_state)] * 2
    assert [drops(mask) for mask in applied["x"]] == [c.dropout_kind == "gal"] * 2
    assert drops(applied["after"]) == (c.linear_dropout == "both")


def test_oracle_with_masks_of_1_equals_plain_pytorch():
    model = new_model(size=6, hidden=9, tying="linear", dtype="float64", layers=3)
    oracle = Oracle(model.config, V, dict(model.params.owners()))
    ids, state = torch.tensor(next(batches())[0]), stacked(model.start(B))
    masks = {"in": 1, "up": [1] * 3, "h": [1] * 3, "x": [1] * 3, "after": 1}
    (scores, end), (again, end_again) = oracle(ids, state), oracle.through(masks, ids, state)
    torch.testing.assert_close(scores, again)
    torch.testing.assert_close(end, end_again)


if __name__ == "__main__":
    first = {}
    for case, key in cases().items():
        first.setdefault(key, case)
    record(RECORDED, ((key, compared(name, dtype, scale)[1][1:]) for key, (name, scale, dtype) in first.items()))
