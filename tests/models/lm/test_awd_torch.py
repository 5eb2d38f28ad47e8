"""Test AWD-LSTM with all regularizers against PyTorch, and against its recorded losses where it is missing.

With tests/helpers in PYTHONPATH, `python tests/models/lm/test_awd_torch.py` records PyTorch's results.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import subwordcase
from lmcase import AWD, VOCAB, V, masks, weight_masks
from recording import record

from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM

RECORDED = Path(__file__).parents[2] / "helpers" / "oracle_awd.json"
STEPS, AVERAGED, LR, CLIP = 20, 12, 8.0, 0.25
SETTINGS = dict(
    AWD, size=11, drop_weights=0.5, ar=2.0, tar=1.0, batch=4, steps=9, random_steps=True, init=0.3, dtype="float64",
    optimizer="nt-asgd", lr_weight_decay=1e-3,
)  # fmt: skip
CASES = {"words": SETTINGS, "morphs": dict(SETTINGS, tying="untied", subwords="morphs", reuse="all")}
every_case = pytest.mark.parametrize("name", CASES)


def model(name):
    vocab = subwordcase.vocab(V) if name == "morphs" else VOCAB
    return LstmLM(vocab, LstmConfig(**CASES[name]))


def text():
    rng, share = np.random.default_rng(3), 1 / np.arange(1, V + 1)
    return rng.choice(V, 4 * 500, p=share / share.sum()).astype(np.int32)


def trained(name, between=lambda model, window: None, average=lambda: None):
    """Train 20 steps of SGD and 12 of averaged SGD, then score; returns (model, losses with the last, norms)."""
    m, losses, norms = model(name), [], []
    windows, optimizer, state = m.batches(text()), m.learner(CLIP).optimizer, m.start(4)
    for k in range(STEPS + AVERAGED):
        if k == STEPS:
            assert optimizer.epoch([1.0] * 6 + [2.0])
            average()
        window = windows[k]
        nats, n, state = m.train_step(window.ids, window.targets, state, k)
        between(m, window)
        losses.append(nats / n)
        norms.append(optimizer.update(LR * window.lr_factor))
    with optimizer.averaged():
        losses.append(-m.score(windows[0].ids, windows[0].targets, m.start(4))[0].mean())
    return m, losses, norms


def compared(name):
    """Train both; return (model, losses, norms) of tiedtools and (parameters by name, losses, norms) of PyTorch."""
    torch = pytest.importorskip("torch")
    from torchawd import Awd

    oracle, losses, norms, dropped = Awd(model(name), LR, CLIP), [], [], set()
    start = [torch.tensor(part[0]) for part in model(name).start(4)]
    first = state = list(zip(start[::2], start[1::2]))

    def step(m, window):
        nonlocal state
        found = {site: torch.tensor(mask) for site, mask in masks(m)[0].items()}
        weights = {weight: torch.tensor(mask) for weight, mask in weight_masks(m).items()}
        dropped.update(site for site, mask in {**found, **weights}.items() if (mask == 0).any() and (mask != 0).any())
        ids, targets = (torch.tensor(part).long() for part in (window.ids, window.targets))
        nats, norm, state = oracle.step(ids, targets, state, found, weights, window.lr_factor)
        losses.append(nats)
        norms.append(norm)

    ours = trained(name, step, oracle.average)
    assert dropped == {"word", "in", 0, 1, 2, "lstm1.W_h", "lstm2.W_h", "lstm3.W_h"}
    window = ours[0].batches(text())[0]
    losses.append(oracle.score(*(torch.tensor(part).long() for part in window[:2]), first))
    return ours, ({key: tensor.detach().numpy() for key, tensor in oracle.p.items()}, losses, norms)


@every_case
def test_training_matches_pytorch(name):
    (m, *ours), (values, *theirs) = compared(name)
    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-8)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-7)
    for key, array in m.params.owners():
        np.testing.assert_allclose(array, values[key], atol=1e-7, err_msg=key)


@every_case
def test_losses_and_norms_match_the_recorded_ones(name):
    recorded = json.loads(RECORDED.read_text())[name]
    m, losses, norms = trained(name)
    np.testing.assert_allclose(losses, recorded["loss"], rtol=1e-6)
    np.testing.assert_allclose(norms, recorded["norm"], rtol=1e-6)
    windows = m.batches(text())
    shares = {windows[k].lr_factor for k in range(STEPS + AVERAGED)}
    assert len(shares) > 5 and min(norms) < CLIP < max(norms) and losses[-1] < losses[0] - 0.1


if __name__ == "__main__":
    record(RECORDED, ((name, compared(name)[1][1:]) for name in CASES))
