"""Test the benchmark `lm`: GRU and RHN in tiedtools and in PyTorch."""

import dataclasses

import numpy as np
import pytest
from benchmarks import lm, workers

CELLS = {
    "gru": dict(cell="gru", hidden=6, size=6, tying="tied"),
    "rhn": dict(cell="rhn", depth=3, hidden=6, size=6, tying="tied", layers=1, dropout_kind="gal"),
}
both = pytest.mark.parametrize("name", CELLS)


@pytest.fixture
def task(tmp_path):
    def make(name, **options):
        given = dict(batch=3, steps=4, dropout=0.0, lr=0.0) | CELLS[name] | options
        task = lm.Task(str(tmp_path / "ids"), 60, **given)
        task.write()
        return dataclasses.asdict(task)

    return make


@both
def test_torch_trains_the_same_model(task, name):
    torch = pytest.importorskip("torch")
    from benchmarks import torchlm

    given = task(name)
    ours, theirs = workers.LmTraining(given), torchlm.Training(given)
    p, module = ours.model.params, theirs.model.recurrent
    with torch.no_grad():
        theirs.model.embedding.weight.copy_(torch.tensor(p["emb_in"]))
        theirs.model.output.bias.copy_(torch.tensor(p["emb_out.b"]))
        if name == "rhn":
            module.inputs.weight.copy_(torch.tensor(p["rhn1.W_x"].T))
            for linear, R, b in zip(module.states, p["rhn1.R"], p["rhn1.b"], strict=True):
                linear.weight.copy_(torch.tensor(R.T))
                linear.bias.copy_(torch.tensor(b))
        for k in range(2 * (name == "gru")):
            order = lambda part: torch.tensor(np.roll(p[part].reshape(-1, 3, 6), -1, 1).reshape(-1, 18).T)
            getattr(module, f"weight_ih_l{k}").copy_(order(f"gru{k + 1}.W_x"))
            getattr(module, f"weight_hh_l{k}").copy_(torch.tensor(p[f"gru{k + 1}.W_h"].T))
            getattr(module, f"bias_ih_l{k}").copy_(order(f"gru{k + 1}.b")[:, 0])
            getattr(module, f"bias_hh_l{k}").zero_()
    for _ in range(5):
        assert ours.step() == pytest.approx(theirs.step(), rel=1e-5)
    second_biases = 2 * 18 * (name == "gru")
    assert sum(q.numel() for q in theirs.parameters) == ours.model.n_params + second_biases
