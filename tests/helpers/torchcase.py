"""Small language models of every kind, trained for 20 steps, as test_torch.py does in PyTorch.

PyTorch's losses and norms are stored in oracle*.json, for comparison on machines without PyTorch.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import lmcase
import numpy as np
import subwordcase

from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.text.vocab import Vocab

FOLDER = Path(__file__).parent
V, T, B, STEPS = 110, 7, 4, 20

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
MODELS |= {
    f"augmented, {tying}, {'detached' if detach else 'flowing'}": dict(
        size=6, tying=tying, augment=0.8, tau=1.5, detach=detach, **more
    )
    for tying, more in {"untied": {}, "tied": dict(output_bias=False), "linear": dict(hidden=9)}.items()
    for detach in (True, False)
}
MODELS["augmented, share"] = dict(size=6, hidden=9, augment_share=0.4, tau=3.0, unit_embeddings=True)
GAL = dict(
    dropout_kind="gal", drop_word=0.4, drop_emb=0.2, drop_layer=0.3, drop_state=0.4, drop_out=0.5, size=6, hidden=9
)
STATE = dict(size=6, dropout_kind="variational", drop_layer=0.3, drop_out=0.3, drop_state=0.3)
LAYER = dict(size=6, drop_layer=0.3, drop_out=0.4)
DROPOUT = {
    "standard": dict(LAYER, drop_emb=0.2),
    "standard, linear": dict(LAYER, tying="linear", hidden=9, linear_dropout="both"),
    "variational": STATE,
    "variational, up only": dict(size=6, dropout_kind="variational", drop_layer=0.3, drop_out=0.5),
    "variational, batch": dict(STATE, mask_sharing="batch"),
    "gal": GAL,
    "gal, batch": dict(mask_sharing="batch", **GAL),
}
CELLS = {
    "gru": dict(cell="gru", hidden=9),
    "gru, gal": dict(cell="gru", tying="tied", **lmcase.GAL),
    "gru, variational": dict(cell="gru", **lmcase.STATE_DROPOUT),
    "rhn of depth 1": dict(cell="rhn", depth=1, hidden=9),
    "rhn of depth 3, two layers": dict(cell="rhn", depth=3, tying="tied"),
    "rhn of depth 10, gal": dict(cell="rhn", depth=10, layers=1, tying="tied", **lmcase.GAL),
    "rhn of depth 2, variational": dict(cell="rhn", depth=2, mask_sharing="batch", **lmcase.STATE_DROPOUT),
}
WORDS = dict(
    lmcase.AWD, size=11, drop_weights=0.5, ar=2.0, tar=1.0, batch=4, steps=9, random_steps=True, init=0.3,
    dtype="float64", optimizer="nt-asgd", lr_weight_decay=1e-3,
)  # fmt: skip
AWD = {"words": WORDS, "morphs": dict(WORDS, tying="untied", subwords="morphs", reuse="all")}
AVERAGED = 12  # steps of averaged SGD after 20 of SGD


class Case(NamedTuple):
    records: str  # file of the records
    key: str  # in the records
    make: Callable  # () -> model
    windows: Callable  # (model) -> (ids, targets, learning rate, clip) of each step
    tolerance: float = 1e-5  # of losses, relative


def windows(model):
    """Yield windows with a skewed word distribution and ignored targets; some are shorter, as at an epoch's end.

    The gradient is clipped in every other step.
    """
    rng = np.random.default_rng(3)
    share, times = 1 / np.arange(1, V + 1), {"mean": 1, "sum": T}[model.config.loss_scale]
    for k in range(STEPS):
        words = rng.choice(V, ((3 if k % 6 == 5 else T) + 1, B), p=share / share.sum()).astype(np.int32)
        targets = words[1:].copy()
        targets[rng.random(targets.shape) < 0.1] = -1
        yield words[:-1], targets, 4 / times, (0.04 if k % 2 else 10) * times


def random_windows(model):
    return ((*lmcase.window(model, k % 5)[:2], 4.0, 0.1 if k % 2 else 10.0) for k in range(STEPS))


def text():
    share = 1 / np.arange(1, lmcase.V + 1)
    return np.random.default_rng(3).choice(lmcase.V, 4 * 500, p=share / share.sum()).astype(np.int32)


def windows_of_text(model):
    found = (model.batches(text())[k] for k in range(STEPS + AVERAGED))
    return ((window.ids, window.targets, 8.0 * window.lr_factor, 0.25) for window in found)


def lstm(**options):
    return LstmLM(Vocab([str(k) for k in range(V)], np.arange(V, 0, -1)), LstmConfig(steps=T, batch=B, **options))


def awd(name):
    return LstmLM(subwordcase.vocab(lmcase.V) if name == "morphs" else lmcase.VOCAB, LstmConfig(**AWD[name]))


CASES = {
    **{
        (name, scale, dtype): Case(
            "oracle", f"{name}, {scale}" + f", {dtype}" * (name in DROPOUT and dtype == "float32"),
            lambda options=options, scale=scale, dtype=dtype: lstm(init=0.3, dtype=dtype, loss_scale=scale, **options),
            windows, tolerance,
        )
        for name, options in (MODELS | DROPOUT).items()
        for scale in ("mean", "sum")
        for dtype, tolerance in (("float64", 1e-5), ("float32", 1e-4))
    },
    **{
        name: Case("oracle_cells", name, lambda o=o: lmcase.model(**{"init": 0.3, **o}), random_windows)
        for name, o in CELLS.items()
    },
    **{
        f"{kind}, {reuse}": Case(
            "oracle_subwords", f"{kind}, {reuse}",
            lambda kind=kind, reuse=reuse: subwordcase.model(kind, reuse, init=0.3), random_windows,
        )
        for kind in subwordcase.LAYERS
        for reuse in ("plain", "none", "all", "emb", "emb,hw2")
    },
    **{
        f"AWD, {name}": Case("oracle_awd", name, lambda name=name: awd(name), windows_of_text, 1e-6) for name in AWD
    },
}  # fmt: skip


def trained(case, between=lambda *step: None, average=lambda lr: None):
    """Train a case; returns (model, losses, norms). `between` is called before the update of each step.

    With AWD-LSTM, `average` is called when averaging begins, and the last loss is that of the averaged parameters.
    """
    m, losses, norms = case.make(), [], []
    ids, targets, lr, clip = next(case.windows(m))
    optimizer, state, averaging = m.learner(clip).optimizer, m.start(ids.shape[1]), case.records == "oracle_awd"
    for k, (ids, targets, lr, clip) in enumerate(case.windows(m)):
        if k == STEPS:
            assert optimizer.epoch([1.0] * 6 + [2.0])
            average(lr)
        nats, predicted, state = m.train_step(ids, targets, state, k)
        assert predicted == (targets >= 0).sum()
        between(m, k, ids, targets, lr, clip)
        losses.append(nats / predicted)
        optimizer.clip = clip
        norms.append(optimizer.update(lr))
        assert averaging or (norms[-1] > clip) == (k % 2 == 1)
    if averaging:
        with optimizer.averaged():
            ids, targets, *_ = next(case.windows(m))
            losses.append(-m.score(ids, targets, m.start(4))[0].mean())
        assert min(norms) < clip < max(norms)
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.1  # the model learns; otherwise agreement would mean little
    return m, losses, norms


def recorded(file):
    """Return the records of a file, a dict: key -> {"loss", "norm"} of each step."""
    return json.loads((FOLDER / f"{file}.json").read_text())


def record(file, figures):
    """Write pairs of a key and the (losses, norms) of each step to a file, a line for each key."""
    rounded = lambda values: np.round(values, 9).tolist()
    entries = {key: {"loss": rounded(losses), "norm": rounded(norms)} for key, (losses, norms) in figures}
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(entry)}" for key, entry in entries.items())
    (FOLDER / f"{file}.json").write_text(f"{{\n{lines}\n}}\n")
