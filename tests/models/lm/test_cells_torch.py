"""Test training with GRU and RHN cells against PyTorch, and against its recorded losses where it is missing.

With tests/helpers in PYTHONPATH, `python tests/models/lm/test_cells_torch.py` records PyTorch's results.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from lmcase import GAL, STATE_DROPOUT, masks, model, update, window
from recording import record

RECORDED = Path(__file__).parents[2] / "helpers" / "oracle_cells.json"
STEPS, LR = 20, 4.0
CASES = {
    "gru": dict(cell="gru", hidden=9), "gru, gal": dict(cell="gru", tying="tied", **GAL),
    "gru, variational": dict(cell="gru", **STATE_DROPOUT), "rhn of depth 1": dict(cell="rhn", depth=1, hidden=9),
    "rhn of depth 3, two layers": dict(cell="rhn", depth=3, tying="tied"),
    "rhn of depth 10, gal": dict(cell="rhn", depth=10, layers=1, tying="tied", **GAL),
    "rhn of depth 2, variational": dict(cell="rhn", depth=2, mask_sharing="batch", **STATE_DROPOUT),
}  # fmt: skip
cases = pytest.mark.parametrize("name", CASES)


def clip(k):
    return 0.1 if k % 2 else 10.0


def trained(name, between=lambda model, ids, targets: None):
    """Train for 20 steps; returns (model, mean losses, gradient norms). `between` is called before each update."""
    m, losses, norms = model(**{"init": 0.3, **CASES[name]}), [], []
    state = m.start(3)
    for k in range(STEPS):
        ids, targets, _ = window(m, k % 5)
        nats, n, state = m.train_step(ids, targets, state, k)
        between(m, ids, targets)
        losses.append(nats / n)
        norms.append(update(m, LR, clip(k)))
    return m, losses, norms


def compared(name):
    """Train both; returns what `trained` does, and the same of PyTorch, with its parameters by name."""
    torch = pytest.importorskip("torch")
    from torchcells import Oracle

    m = model(**{"init": 0.3, **CASES[name]})
    oracle, state, losses, norms, dropped = Oracle(m), [torch.tensor(part[0]) for part in m.start(3)], [], [], set()

    def step(m, ids, targets):
        nonlocal state
        k, (found, cells) = len(losses), masks(m)
        product = lambda *sites: math.prod(torch.tensor(found[site]) for site in sites if site in found)
        h, x = ([torch.tensor(mask) if len(mask) else 1 for mask in each] for each in zip(*cells))
        applied = {"in": product("in", "word"), "up": [product(k) for k in range(m.config.layers)], "h": h, "x": x}
        dropped.update(k for k, mask in enumerate(h + x) if not isinstance(mask, int) and (mask == 0).any())
        ids, targets = (torch.tensor(part).long() for part in (ids, targets))
        nats, norm, state = oracle.step(ids, targets, state, LR, clip(k), applied)
        losses.append(nats / int((targets >= 0).sum()))
        norms.append(norm)

    ours = trained(name, step)
    layers, rates = range(m.config.layers), m.config.rates
    inputs = [k + len(layers) for k in layers] * (m.config.dropout_kind == "gal")
    assert dropped == {*layers, *inputs} if rates["state"] else not dropped  # PyTorch got masks with zeros
    return ours, ({key: tensor.detach().numpy() for key, tensor in oracle.p.items()}, losses, norms)


@cases
def test_training_matches_pytorch(name):
    (m, *ours), (values, *theirs) = compared(name)
    np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    for parameter, array in m.params.owners():
        np.testing.assert_allclose(array, values[parameter], atol=1e-8, err_msg=parameter)


@cases
def test_losses_and_norms_match_the_recorded_ones(name):
    recorded = json.loads(RECORDED.read_text())[name]
    _, losses, norms = trained(name)
    np.testing.assert_allclose([losses, norms], [recorded["loss"], recorded["norm"]], rtol=1e-5)
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.1 and 0.1 < min(norms) and max(norms) < 10


def test_the_reference_is_pytorchs_gru():
    """nn.GRU has a second bias per gate, and its gates in the order r, u, c."""
    torch = pytest.importorskip("torch")
    from torchcells import gru

    rng = np.random.default_rng(1)
    p = {name: torch.tensor(rng.normal(size=shape)) for name, shape in (("W_x", (5, 12)), ("W_h", (4, 12)), ("b", 12))}
    x, h = torch.tensor(rng.normal(size=(6, 3, 5))), torch.tensor(rng.normal(size=(3, 4)))
    theirs = torch.nn.GRU(5, 4).double()
    order = lambda c, r, u: torch.cat([r, u, c])
    with torch.no_grad():
        theirs.weight_ih_l0.copy_(order(*p["W_x"].T.chunk(3)))
        theirs.weight_hh_l0.copy_(p["W_h"].T)
        theirs.bias_ih_l0.copy_(order(*p["b"].chunk(3)))
        theirs.bias_hh_l0.zero_()
        torch.testing.assert_close(theirs(x, h[None])[0], gru(p.__getitem__, x, h, [1], [1]))


if __name__ == "__main__":
    record(RECORDED, ((name, compared(name)[1][1:]) for name in CASES))
