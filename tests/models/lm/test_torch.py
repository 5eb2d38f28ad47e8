"""Test LstmLM against PyTorch's automatic differentiation: the same weights and batches give the same training.

With tests/helpers in PYTHONPATH, `python tests/models/lm/test_torch.py` records PyTorch's results, with which it is
compared where PyTorch is not installed.
"""

import importlib.util
import math

import numpy as np
import pytest
from lmcase import masks, weight_masks
from torchcase import CASES, record, recorded, trained

from tiedtools.network.network import mask_seed

every_case = pytest.mark.parametrize("case", CASES.values(), ids=map(str, CASES))
with_torch = CASES if importlib.util.find_spec("torch") else {}  # no case: pytest skips the test


def masks_of(model):
    """Return the masks of the model's last step in the form that Oracle.forward expects."""
    import torch

    found, cells = masks(model)
    product = lambda *sites: math.prod(torch.tensor(found[site]) for site in sites if site in found)
    h, x = ([torch.tensor(mask) if len(mask) else 1 for mask in each] for each in zip(*cells))
    layers, weights = range(model.config.layers), weight_masks(model)
    up, dropped = [product(k) for k in layers], [weights.get(f"lstm{k + 1}.W_h") for k in layers]
    W_h = [1 if mask is None else torch.tensor(mask) for mask in dropped]
    return {"in": product("in", "word"), "up": up, "h": h, "x": x, "after": product("after"), "W_h": W_h}


def no_masks(layers):
    return {"in": 1, "after": 1, **dict.fromkeys(("up", "h", "x", "W_h"), [1] * layers)}


def compared(case):
    """Train both; return (model, losses, norms) of tiedtools and (oracle, losses, norms) of PyTorch."""
    import torch
    from torchlm import Oracle

    torch.set_num_threads(1)  # arrays are small
    m, losses, norms = case.make(), [], []
    oracle, plain = Oracle(m), no_masks(m.config.layers)
    pair = lambda ids, targets: (torch.tensor(ids).long(), torch.tensor(targets).long())
    first = next(case.windows(m))[:2]
    state = start = oracle.start(m, first[0].shape[1])

    def step(model, k, ids, targets, lr, clip):
        nonlocal state
        c, applied = model.config, plain if case.records == "oracle_subwords" else masks_of(model)
        samples = model.network.output.draw(mask_seed(c.seed, k, "samples")) if c.sampled else None
        nats, norm, state = oracle.step(*pair(ids, targets), state, lr, clip, applied, samples)
        losses.append(nats / (targets >= 0).sum())
        norms.append(norm)

    ours = trained(case, step, oracle.average)
    if case.records == "oracle_awd":
        losses.append(oracle.score(*pair(*first), start, plain))
    return ours, (oracle, losses, norms)


@pytest.mark.parametrize("case", with_torch.values(), ids=map(str, with_torch))
def test_training(case):
    (model, *ours), (oracle, *theirs) = compared(case)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=case.tolerance)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=10 * case.tolerance)
    for name, tensor in oracle.p.items():
        values = tensor.detach().numpy()
        np.testing.assert_allclose(model.params[name], values, atol=10 * case.tolerance, err_msg=name)
    kept = recorded(case.records)[case.key]
    np.testing.assert_allclose(theirs[0], kept["loss"], rtol=case.tolerance)
    np.testing.assert_allclose(theirs[1], kept["norm"], rtol=10 * case.tolerance)


@every_case
def test_losses_and_norms_match_the_recorded_ones(case):
    theirs = recorded(case.records)[case.key]
    _, losses, norms = trained(case)
    np.testing.assert_allclose(losses, theirs["loss"], rtol=case.tolerance)
    np.testing.assert_allclose(norms, theirs["norm"], rtol=10 * case.tolerance)


def test_every_case_is_recorded():
    for file in {case.records for case in CASES.values()}:
        assert recorded(file).keys() == {case.key for case in CASES.values() if case.records == file}


@pytest.mark.parametrize("key", [key for key, c in with_torch.items() if c.records != "oracle_subwords"], ids=str)
def test_masks_passed_to_pytorch_contain_zeros(key):
    """Otherwise a model without dropout would match PyTorch with masks of 1."""
    model = CASES[key].make()
    c, (ids, targets, *_) = model.config, next(CASES[key].windows(model))
    model.train_step(ids, targets, model.start(ids.shape[1]), 0)
    applied, drops = masks_of(model), lambda mask: not isinstance(mask, int) and bool((mask == 0).any())
    gal = c.dropout_kind == "gal"
    between = [bool(c.drop_layer) and not gal] * (c.layers - 1)
    assert drops(applied["in"]) == bool(c.drop_word or c.drop_emb and not gal)
    assert [drops(mask) for mask in applied["up"]] == between + [bool(c.drop_out)]
    assert [drops(mask) for mask in applied["h"]] == [bool(c.drop_state)] * c.layers
    assert [drops(mask) for mask in applied["x"]] == [gal] * c.layers
    assert [drops(mask) for mask in applied["W_h"]] == [bool(c.drop_weights)] * c.layers
    assert drops(applied["after"]) == (c.linear_dropout == "both")


def test_the_cells_are_those_of_pytorch():
    """nn.LSTM and nn.GRU have a second bias per gate; the gates of nn.GRU are in the order r, u, c."""
    torch = pytest.importorskip("torch")
    from torchlm import gru, lstm

    rng, orders = np.random.default_rng(1), (lambda *gates: torch.cat(gates), lambda c, r, u: torch.cat([r, u, c]))
    for n, cell, kind, order in (4, lstm, torch.nn.LSTM, orders[0]), (3, gru, torch.nn.GRU, orders[1]):
        shapes = dict(W_x=(5, 4 * n), W_h=(4, 4 * n), b=4 * n)
        p = {name: torch.tensor(rng.normal(size=shape)) for name, shape in shapes.items()}
        x, theirs = torch.tensor(rng.normal(size=(6, 3, 5))), kind(5, 4).double()
        state = [torch.tensor(rng.normal(size=(3, 4))) for _ in range(n - 2)][:2] if n == 4 else [x[0, :, :4]]
        with torch.no_grad():
            theirs.weight_ih_l0.copy_(order(*p["W_x"].T.chunk(n)))
            theirs.weight_hh_l0.copy_(p["W_h"].T)
            theirs.bias_ih_l0.copy_(order(*p["b"].chunk(n)))
            theirs.bias_hh_l0.zero_()
            given = tuple(part[None] for part in state)
            y, _ = theirs(x, given if n == 4 else given[0])
            torch.testing.assert_close(y, cell(p.__getitem__, x, state, 1, 1)[0])


if __name__ == "__main__":
    for file in {case.records for case in CASES.values()}:
        cases = {case.key: case for case in reversed(CASES.values()) if case.records == file}
        record(file, ((key, compared(case)[1][1:]) for key, case in reversed(cases.items())))
