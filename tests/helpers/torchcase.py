"""Small LSTM language models of every variant, trained for 20 steps, as test_torch.py does in PyTorch.

PyTorch's losses and norms are stored in oracle.json, for comparison on machines without PyTorch.
"""

import json
from pathlib import Path

import numpy as np
from lmcase import update

from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.text.vocab import Vocab

RECORDED = Path(__file__).with_name("oracle.json")
V, T, B, STEPS = 110, 7, 4, 20
TOLERANCE = {"float64": 1e-5, "float32": 1e-4}  # relative tolerance of losses

MODELS = {
    "untied": dict(size=6, hidden=5),
    "tied": dict(size=6, tying="tied"),
    "tied, no bias": dict(size=6, tying="tied", output_bias=False),
    "linear": dict(size=6, hidden=9, tying="linear"),
    "linear, bias": dict(size=17, hidden=5, tying="linear", linear_bias=True, layers=3),
    "linear, two threads": dict(size=20, hidden=40, tying="linear", threads=2),
    "projection": dict(size=5, hidden=8, projection=3.0),
    "tied, projection": dict(size=6, tying="tied", projection=3.0),
    "weight decay": dict(size=6, hidden=9, weight_decay=0.003),
    "weight decay, tied": dict(size=6, tying="tied", weight_decay=0.003),
    "sampled": dict(size=6, hidden=9, sampled=30),
    "sampled, tied": dict(size=6, tying="tied", sampled=30),
    "sampled, linear": dict(size=6, hidden=9, tying="linear", sampled=30),
}
AUGMENTED = {
    f"augmented, {tying}, {'detached' if detach else 'flowing'}": dict(
        size=6, tying=tying, augment=0.8, tau=1.5, detach=detach, **more
    )
    for tying, more in {"untied": {}, "tied": dict(output_bias=False), "linear": dict(hidden=9)}.items()
    for detach in (True, False)
}
GAL = dict(
    dropout_kind="gal", drop_word=0.4, drop_emb=0.2, drop_layer=0.3, drop_state=0.4, drop_out=0.5, size=6, hidden=9
)  # fmt: skip
DROPOUT = {
    "standard": dict(size=6, drop_emb=0.2, drop_layer=0.3, drop_out=0.4),
    "standard, linear": dict(
        size=6, drop_layer=0.3, drop_out=0.4, tying="linear", hidden=9, linear_dropout="both"
    ),
    "variational": dict(size=6, dropout_kind="variational", drop_layer=0.3, drop_out=0.3, drop_state=0.3),
    "variational, up only": dict(size=6, dropout_kind="variational", drop_layer=0.3, drop_out=0.5),
    "variational, batch": dict(
        size=6, dropout_kind="variational", drop_layer=0.3, drop_out=0.3, drop_state=0.3, mask_sharing="batch"
    ),
    "gal": GAL,
    "gal, batch": dict(mask_sharing="batch", **GAL),
}  # fmt: skip
AUGMENTED["augmented, share"] = dict(size=6, hidden=9, augment_share=0.4, tau=3.0, unit_embeddings=True)
VARIANTS = MODELS | AUGMENTED | DROPOUT
SCALES = {"mean": 1, "sum": T}


def new_model(**options):
    return LstmLM(Vocab([str(k) for k in range(V)], np.arange(V, 0, -1)), LstmConfig(steps=T, batch=B, **options))


def batches():
    """Yield windows with a skewed word distribution and ignored targets; some are shorter, as at an epoch's end."""
    rng = np.random.default_rng(3)
    share = 1 / np.arange(1, V + 1)
    for k in range(STEPS):
        words = rng.choice(V, ((3 if k % 6 == 5 else T) + 1, B), p=share / share.sum()).astype(np.int32)
        targets = words[1:].copy()
        targets[rng.random(targets.shape) < 0.1] = -1
        yield words[:-1], targets


def rates(k, loss_scale):
    """Return learning rate and clip of step k; the gradient is clipped in every other step."""
    times = SCALES[loss_scale]
    return 4 / times, (0.04 if k % 2 else 10) * times


def trained(name, dtype, loss_scale, between=lambda model, k, ids, targets: None):
    """Train a variant; returns (model, losses, norms). `between` is called before the update of each step."""
    model = new_model(init=0.3, dtype=dtype, loss_scale=loss_scale, **VARIANTS[name])
    state, losses, norms, times = model.start(B), [], [], SCALES[loss_scale]
    for k, (ids, targets) in enumerate(batches()):
        nll, predicted, state = model.train_step(ids, targets, state, k)
        assert predicted == (targets >= 0).sum()
        between(model, k, ids, targets)
        norms.append(update(model, *rates(k, loss_scale)))
        assert 0.04 * times < norms[-1] < 10 * times
        losses.append(nll / predicted)
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.1  # the model learns; otherwise agreement would mean little
    return model, losses, norms


def cases():
    """Return a dict: (variant, scale, dtype) -> key in the records. float32 has its own only if masks differ."""
    return {
        (name, scale, dtype): f"{name}, {scale}" + f", {dtype}" * (name in DROPOUT and dtype == "float32")
        for name in VARIANTS
        for scale in SCALES
        for dtype in TOLERANCE
    }


def recorded():
    """Return the records, a dict: key from cases() -> {"loss", "norm"} of each step."""
    return json.loads(RECORDED.read_text())
