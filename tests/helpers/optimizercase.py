"""Twenty steps of every optimizer on a small problem, in tiedtools and in PyTorch.

`W` has a gradient everywhere, two rows of `E` in each step. PyTorch's losses are stored in oracle_optimizers.json, for
comparison on machines without PyTorch.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tiedtools.network.config import Optimization
from tiedtools.network.optimizers import optimizer
from tiedtools.network.params import Params, uniform
from tiedtools.network.threads import Team

RECORDED = Path(__file__).with_name("oracle_optimizers.json")
STEPS, SHAPES = 20, {"W": (40, 5), "E": (60, 3)}
# name -> settings, learning rate, clip, and PyTorch's optimizer with its options. PyTorch's ASGD keeps
# its learning rate in float32, in which .25 is exact.
CASES: dict[str, Any] = {
    "sgd": (dict(), 0.3, 3.0, "SGD", {}),
    "sgd, l2": (dict(l2=0.2), 0.3, 3.0, "SGD", {}),
    "sgd, weight_decay": (dict(weight_decay=0.02), 0.3, 3.0, "SGD", {}),
    "sgd, lr_weight_decay": (dict(lr_weight_decay=0.2), 0.3, 3.0, "SGD", dict(weight_decay=0.2)),
    "asgd": (dict(optimizer="asgd"), 0.25, 3.0, "ASGD", dict(lambd=0.0, t0=0.0)),
    "asgd, lr_weight_decay": (
        dict(optimizer="asgd", lr_weight_decay=0.2), 0.25, 0.0, "ASGD", dict(lambd=0.0, t0=0.0, weight_decay=0.2)
    ),
    "adadelta": (dict(optimizer="adadelta"), 1.0, 3.0, "Adadelta", dict(rho=0.95, eps=1e-6)),
    "adadelta, l2": (dict(optimizer="adadelta", l2=0.2), 5.0, 0.0, "Adadelta", dict(rho=0.95, eps=1e-6)),
    "adam": (dict(optimizer="adam"), 0.05, 3.0, "Adam", {}),
    "adam, l2": (dict(optimizer="adam", l2=0.2), 0.05, 0.0, "Adam", {}),
    "adam, lr_weight_decay": (
        dict(optimizer="adam", lr_weight_decay=0.2), 0.05, 3.0, "AdamW", dict(weight_decay=0.2)
    ),
}  # fmt: skip


def params(threads=1, dtype="float64", by_rows=True, frozen=()):
    made = Params(Team(threads), dtype)
    made.frozen = {*frozen}
    for name, shape in SHAPES.items():
        made.add(name, shape, uniform(1.0), by_rows=by_rows and name == "E")
    made.build()
    made.draw(1)
    return made


def goal(k):
    """Return what W and two rows of E should become in step k: (W, rows, E[rows])."""
    rng = np.random.default_rng(k)
    return rng.normal(size=SHAPES["W"]), rng.choice(SHAPES["E"][0], 2, replace=False), rng.normal(size=(2, 3))


def loss(W, E, k):
    wanted, rows, vectors = goal(k)
    return float(np.square(W - wanted).sum() + np.square(E[rows] - vectors).sum()) / 2


def descend(p, k):
    """Compute the gradient of step k; returns the loss."""
    W, rows, vectors = goal(k)
    p.begin_step()
    p.gradient("W")[0][:, : W.shape[1]] = p["W"] - W
    p.row_gradient("E", rows)[rows, : vectors.shape[1]] += p["E"][rows] - vectors
    return loss(p["W"], p["E"], k)


def trained(name, **options):
    """Return (params, losses of all steps and of the parameters to score after them)."""
    settings, lr, clip, *_ = CASES[name]
    p = params(**options)
    update, losses = optimizer(p, Optimization(**settings), clip), []
    for k in range(STEPS):
        losses.append(descend(p, k))
        update.update(lr)
    with update.averaged():
        losses.append(loss(p["W"], p["E"], STEPS))
    return p, losses


def in_pytorch(name):
    """Return (parameters by name, losses) as `trained`."""
    import torch

    settings, lr, clip, kind, options = CASES[name]
    start, losses = params(), []
    p = {name: torch.tensor(start[name].copy(), requires_grad=True) for name in SHAPES}
    run = getattr(torch.optim, kind)(p.values(), lr=lr, **options)
    for k in range(STEPS):
        W, rows, vectors = (torch.tensor(part) for part in goal(k))
        value = ((p["W"] - W).square().sum() + (p["E"][rows] - vectors).square().sum()) / 2
        run.zero_grad()
        (value + settings.get("l2", 0.0) / 2 * sum(x.square().sum() for x in p.values())).backward()
        norm = torch.cat([x.grad.flatten() for x in p.values()]).norm().item()
        for x in p.values():
            x.grad *= min(1, clip / norm) if clip else 1
        run.step()
        with torch.no_grad():
            for x in p.values():
                x *= 1 - settings.get("weight_decay", 0.0)
        losses.append(value.item())
    found = {name: x.detach().numpy() for name, x in p.items()}
    means = {name: run.state[x]["ax"].numpy() for name, x in p.items()} if kind == "ASGD" else found
    return found, [*losses, loss(means["W"], means["E"], STEPS)]


def recorded():
    return json.loads(RECORDED.read_text())


if __name__ == "__main__":  # record PyTorch's losses
    lines = (f"{json.dumps(name)}: {json.dumps(np.round(in_pytorch(name)[1], 9).tolist())}" for name in CASES)
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
