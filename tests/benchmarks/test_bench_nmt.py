"""Test the benchmarks `nmt` and `translate`."""

import dataclasses
import json

import numpy as np
import pytest
from benchmarks import nmt, translate, workers

from tiedtools.models.translation.interpreter import decode

SMALL = ["-vocabulary", 60, "-batch", 3, "-runs", 2, "-windows", 2]
PARTS = ["embedding", "dropout", "encoder", "decoder", "readout", "softmax", "update", "the rest"]


@pytest.fixture
def task(tmp_path):
    task = nmt.Task(str(tmp_path / "ids"), 60, hidden=9, size=6, tie="all", batch=3, dropout=0.0)
    task.write()
    return task


def test_against_torch(bench, quick):
    pytest.importorskip("torch")
    result = bench("nmt", *SMALL, "-variants", "9/6-all", "-threads", "1,", "--against", "torch", "--json")
    ours, theirs = json.loads(result.stdout)["rows"]
    assert [row["name"] for row in (ours, theirs)] == ["tiedtools 9/6-all", "torch 9/6-all"]
    assert theirs["ratio"] == pytest.approx(ours["tokens_per_s"] / theirs["tokens_per_s"])
    assert [part["part"] for part in ours["parts"]] == PARTS
    assert sum(part.get("flops", 0) for part in ours["parts"]) == pytest.approx(ours["flops"])
    assert theirs["nats"] == pytest.approx(ours["nats"], rel=0.1)
    result = bench("translate", *FEW, "-variants", "9/6-all", "--against", "torch", "--json")
    ours, theirs = json.loads(result.stdout)["rows"]
    assert [row["name"] for row in (ours, theirs)] == ["tiedtools 9/6-all", "torch 9/6-all"]
    assert theirs["ratio"] == pytest.approx(ours["sentences_per_s"] / theirs["sentences_per_s"])
    wrong = bench("translate", *FEW, "--against", "marian")
    assert wrong.exit_code == 2 and "--against marian: no such rival" in wrong.stderr


def test_torch_trains_the_same_model_on_the_same_text(task):
    """Both start near log 60; if all parameters but the bias of one word are 0, losses depend on its frequency only."""
    torch = pytest.importorskip("torch")
    from benchmarks import torchnmt

    ours, theirs = workers.NmtTraining(dataclasses.asdict(task)), torchnmt.Training(dataclasses.asdict(task))
    second_biases = 4 * 3 * task.hidden
    assert sum(p.numel() for p in theirs.model.parameters()) == ours.model.n_params + second_biases
    for k in range(5):
        ours.model.params.values[:] = 0
        ours.model.params["emb_out.b"][k % 3] = 1
        with torch.no_grad():
            for parameter in theirs.model.parameters():
                parameter.zero_()
            theirs.model.output.bias[k % 3] = 1
        assert ours.step() == pytest.approx(theirs.step(), rel=1e-5), k


def test_text_flops_and_steps_by_hand(task):
    ids, lengths = np.fromfile(task.path, np.int32), task.lengths()
    task.write()
    assert (ids == np.fromfile(task.path, np.int32)).all() and ids.size == lengths.sum() and ids.max() < 60
    given = nmt.batches(dataclasses.asdict(task))
    assert len(given) == nmt.PAIRS and all(batch.ids.shape[1] == 3 for batch in given)
    words = np.array([[np.count_nonzero(side >= 0) for side in batch[:2]] for batch in given])
    assert words.sum(0).tolist() == lengths.sum(1).tolist()
    assert task.tokens(nmt.PAIRS) == lengths.sum() and task.tokens(2) == words[:2].sum()
    source, target = task.lengths().sum(1).tolist()
    decoder = 18 * 18 * source + (27 * (6 + 9) + 9 * 18 + 27 * (18 + 9)) * target
    readout, softmax = (9 + 6 + 18) * 6 * target, 60 * 6 * target
    each = dict(encoder=2 * 27 * (6 + 9) * source, decoder=decoder, readout=readout, softmax=softmax)
    assert task.flops() == {part: pytest.approx(6 * weights / (source + target)) for part, weights in each.items()}
    worker = workers.NmtTraining(dataclasses.asdict(task))
    before = worker.model.params.values.copy()
    worker.step()
    assert np.abs(worker.model.params.values - before).max() == pytest.approx(nmt.LR, rel=0.01)  # of Adam


FEW = ["-vocabulary", 40, "-sentences", 5, "-batch", 3, "-beam", 2, "-length", 3, "-runs", 2, "-threads", "1,"]


def test_torch_searches_as_we_do():
    """With all parameters 0 but those of the output, both models translate everything alike."""
    torch = pytest.importorskip("torch")
    settings = dict(hidden=9, size=6, tie="none")
    ours, theirs = translate.ours(settings, 40, 1), translate.theirs(settings, 40, 1)
    bias = np.random.default_rng(1).normal(size=40).astype(np.float32)
    ours.params.values[:] = 0
    ours.params["emb_out.b"][:] = bias
    with torch.no_grad():
        for parameter in theirs.model.parameters():
            parameter.zero_()
        theirs.model.output.bias[:] = torch.from_numpy(bias)
    sources = translate.sentences(4, 40)
    for a, b in zip(*(decode(model, sources, 3, beam=3, max_length=4, align=True) for model in (ours, theirs))):
        assert [h.ids.tolist() for h in a] == [h.ids.tolist() for h in b]
        np.testing.assert_allclose([h.logprob for h in a], [h.logprob for h in b], atol=1e-4)
        for one, two in zip(a, b):
            np.testing.assert_allclose(one.weights, two.weights, atol=1e-6)
