"""Test training with composed word vectors against PyTorch, and against its recorded losses where it is missing.

With tests/helpers in PYTHONPATH, `python tests/models/lm/test_composed_torch.py` records PyTorch's results.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from lmcase import update
from recording import record
from subwordcase import LAYERS, model, window

RECORDED = Path(__file__).parents[2] / "helpers" / "oracle_subwords.json"
STEPS, LR = 20, 4.0
CASES = [(kind, reuse) for kind in LAYERS for reuse in ("plain", "none", "all", "emb", "emb,hw2")]
cases = pytest.mark.parametrize("kind, reuse", CASES)


def clip(k):
    return 0.1 if k % 2 else 10.0


def trained(kind, reuse):
    """Train for 20 steps; returns (model, mean losses, gradient norms)."""
    m, losses, norms = model(kind, reuse, init=0.3), [], []
    state = m.start(3)
    for k in range(STEPS):
        ids, targets, _ = window(m, k % 5)
        nats, n, state = m.train_step(ids, targets, state, k)
        losses.append(nats / n)
        norms.append(update(m, LR, clip(k)))
    return m, losses, norms


def reference(kind, reuse):
    """Train the same model in PyTorch; returns (its parameters by name, losses, norms)."""
    torch = pytest.importorskip("torch")
    from torchsubwords import Composing

    m, losses, norms = model(kind, reuse, init=0.3), [], []
    oracle, start = Composing(m), [torch.tensor(part[0]) for part in m.start(3)]
    state = list(zip(start[::2], start[1::2]))
    for k in range(STEPS):
        ids, targets = (torch.tensor(part).long() for part in window(m, k % 5)[:2])
        nats, norm, state = oracle.step(ids, targets, state, LR, clip(k))
        losses.append(nats / int((targets >= 0).sum()))
        norms.append(norm)
    return {name: tensor.detach().numpy() for name, tensor in oracle.p.items()}, losses, norms


@cases
def test_training_matches_pytorch(kind, reuse):
    (m, *ours), (values, *theirs) = trained(kind, reuse), reference(kind, reuse)
    np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    for name, array in m.params.owners():
        np.testing.assert_allclose(array, values[name], atol=1e-8, err_msg=name)


@cases
def test_losses_and_norms_match_the_recorded_ones(kind, reuse):
    recorded = json.loads(RECORDED.read_text())[f"{kind}, {reuse}"]
    _, losses, norms = trained(kind, reuse)
    np.testing.assert_allclose([losses, norms], [recorded["loss"], recorded["norm"]], rtol=1e-5)
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.1 and 0.1 < min(norms) and max(norms) < 10


if __name__ == "__main__":
    record(RECORDED, ((f"{kind}, {reuse}", reference(kind, reuse)[1:]) for kind, reuse in CASES))
