"""Test training of translation models against PyTorch, and against its recorded losses where it is missing.

With tests/helpers in PYTHONPATH, `python tests/models/translation/test_translator_torch.py` records PyTorch's results.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from nmtcase import batch, model
from recording import record

RECORDED = Path(__file__).parents[2] / "helpers" / "oracle_nmt.json"
STEPS = 20
DROPOUT = dict(drop_emb=0.2, drop_annotation=0.4, drop_out=0.3)
CASES = {  # (settings, learning rate, clip)
    "untied, adadelta": (dict(optimizer="adadelta"), 1.0, 1.0),
    "tied decoder, adam": (dict(tie="decoder", optimizer="adam"), 0.02, 2.5),
    "all tied, adadelta": (dict(tie="all", optimizer="adadelta", threads=2), 1.0, 2.0),
    "untied, dropout": (dict(optimizer="adam", **DROPOUT), 0.02, 3.0),
    "all tied, dropout": (dict(tie="all", optimizer="sgd", threads=3, **DROPOUT), 0.1, 3.0),
}
cases = pytest.mark.parametrize("name", CASES)


def made(name):
    return model(size=11, hidden=17, init=0.3, **CASES[name][0])


def trained(name, between=lambda model, batch: None):
    """Train for 20 steps; returns (model, mean losses, gradient norms). `between` is called before each update."""
    m, losses, norms = made(name), [], []
    _, lr, clip = CASES[name]
    learner = m.learner(clip)
    for k in range(STEPS):
        given = batch(m, seed=k % 4)
        nats, n, _ = m.train_step(given.ids, given.targets, (), k)
        between(m, given)
        losses.append(nats / n)
        norms.append(learner.optimizer.update(lr))
    return m, losses, norms


def masks(m):
    """Return the masks of the last step by site."""
    net, c = m.network, m.config
    found = {
        "source": (net.drop_source, c.size), "target": (net.drop_target, c.size),
        "annotation": (net.drop_annotation, 2 * c.hidden), "out": (net.drop_out, c.size),
    }  # fmt: skip
    return {site: drop.mask[..., :width] for site, (drop, width) in found.items() if drop.mask is not None}


def compared(name):
    """Train both; returns what `trained` does, and parameters by name, losses, and norms of PyTorch."""
    pytest.importorskip("torch")
    from torchnmt import Oracle

    oracle, losses, norms = Oracle(made(name), *CASES[name][1:]), [], []

    def step(m, given):
        found = masks(m)
        assert len(found) == (4 if m.config.drop_out else 0) and all((mask == 0).any() for mask in found.values())
        nats, norm = oracle.step(given.ids, given.targets, found)
        losses.append(nats / np.count_nonzero(given.targets >= 0))
        norms.append(norm)

    return trained(name, step), (oracle.values(), losses, norms)


@cases
def test_training_matches_pytorch(name):
    (m, *ours), (values, *theirs) = compared(name)
    np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    for parameter, array in m.params.owners():
        np.testing.assert_allclose(array, values[parameter], atol=1e-7, err_msg=parameter)


@cases
def test_losses_and_norms_match_the_recorded_ones(name):
    recorded = json.loads(RECORDED.read_text())[name]
    _, losses, norms = trained(name)
    np.testing.assert_allclose([losses, norms], [recorded["loss"], recorded["norm"]], rtol=1e-5)
    assert np.mean(losses[-4:]) < np.mean(losses[:4]) - 0.02 and max(norms) > CASES[name][2]


if __name__ == "__main__":
    record(RECORDED, ((name, compared(name)[1][1:]) for name in CASES))
