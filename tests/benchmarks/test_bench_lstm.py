"""Test the benchmark `lstm`: figures, FLOP counts, the parts of a step, and the comparison with PyTorch."""

import contextlib
import dataclasses
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from benchmarks import clock, lm, processes, workers
from benchmarks.subwords import KINDS, Synthetic
from common import ROOT, refused
from modelsizes import lstm_params

from tiedtools.models.lm.config import LstmConfig

SMALL = ["-vocabulary", 60, "-batch", 3, "-steps", 4, "-runs", 2, "-windows", 2]
PARTS = ["embedding", "dropout", "LSTM forward", "LSTM backward", "L", "softmax", "update", "the rest"]


@pytest.fixture
def task(tmp_path):
    task = lm.Task(str(tmp_path / "ids"), 60, hidden=9, size=6, tying="linear", batch=3, steps=4)
    task.write()
    return task


def test_json(bench, quick):
    result = bench("lstm", *SMALL, "-variants", "9/6-linear", "-threads", "2,", "--json")
    answer = json.loads(result.stdout)
    (row,) = answer["rows"]
    assert row["name"] == "tiedtools 9/6-linear" and row["threads"] == 2 and answer["windows"] == 2
    assert row["slowest"] <= row["tokens_per_s"] <= row["fastest"]
    assert row["tokens_per_s"] == pytest.approx((row["slowest"] + row["fastest"]) / 2)  # the median of two
    peak = max(answer["gflops"]["2"].values())
    assert row["limit"] * row["flops"] == pytest.approx(1e9 * peak)
    assert row["share"] == pytest.approx(row["tokens_per_s"] / row["limit"]) == pytest.approx(row["gflops"] / peak)
    assert [part["part"] for part in row["parts"]] == PARTS
    assert sum(part["of_step"] for part in row["parts"]) == pytest.approx(1)  # medians of two, so means
    assert sum(part.get("flops", 0) for part in row["parts"]) == row["flops"]
    softmax = row["parts"][PARTS.index("softmax")]
    assert softmax["share"] * peak == pytest.approx(softmax["gflops"])
    assert softmax["gflops"] == pytest.approx(softmax["flops"] / softmax["microseconds"] / 1e3)
    assert 0 < row["nats"] < 5 and row["megabytes"] > 20


def test_against_torch(bench, quick):
    torch = pytest.importorskip("torch")
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("PyTorch has no LSTM in bfloat16 for this processor")
    rivals = "--against", "torch", "--against", "torch-bf16", "--against", "torch"
    result = bench("lstm", *SMALL, "-variants", "9/6-linear", "-threads", "1,", *rivals, "--json")
    assert result.exit_code == 0, result.stderr
    told = [line.split(": ")[1] for line in result.stderr.splitlines() if line.startswith("run ")]
    names = [f"{name} 9/6-linear" for name in ("tiedtools", "torch", "torch-bf16")]
    assert told == [f"{name}, 1 thread" for name in names] * 2
    answer = json.loads(result.stdout)
    ours, theirs, low = rows = answer["rows"]
    assert [row["name"] for row in rows] == names and answer["libraries"][-1].startswith("torch ")
    assert theirs["ratio"] == pytest.approx(ours["tokens_per_s"] / theirs["tokens_per_s"]) and "ratio" not in ours
    assert theirs["limit"] == ours["limit"] and "limit" not in low
    assert all(row["nats"] == pytest.approx(ours["nats"], rel=0.1) for row in rows)


@pytest.mark.parametrize("tying, widths", [("untied", (9, 6)), ("tied", (6, 6)), ("linear", (9, 6))])
def test_torch_trains_the_same_model_on_the_same_text(task, tying, widths):
    torch = pytest.importorskip("torch")
    from benchmarks import torchlm

    hidden, emb = widths
    task = dataclasses.replace(task, tying=tying, hidden=hidden, size=emb, dropout=0.0, lr=0.0)
    ours, theirs = workers.LmTraining(dataclasses.asdict(task)), torchlm.Training(dataclasses.asdict(task))
    config = LstmConfig(size=emb, hidden=hidden, tying=tying)
    second_biases = config.layers * 4 * hidden
    assert sum(p.numel() for p in theirs.parameters) == lstm_params(config, task.vocabulary) + second_biases
    # If all parameters are 0 except the bias of one word, the loss depends on how often the text has that word.
    for k in range(2 * lm.WINDOWS):
        ours.model.params.values[:] = 0
        ours.model.params["emb_out.b"][k % 7] = 1
        with torch.no_grad():
            for parameter in theirs.parameters:
                parameter.zero_()
            theirs.model.output.bias[k % 7] = 1
        assert ours.step() == pytest.approx(theirs.step(), rel=1e-5), k


@pytest.mark.parametrize("kind", KINDS)
def test_torch_composes_the_same_word_vectors(task, kind):
    torch = pytest.importorskip("torch")
    from benchmarks import torchlm

    task = dataclasses.replace(task, **lm.shape(kind), tying="untied", dropout=0.0, lr=0.0)
    ours, theirs = workers.LmTraining(dataclasses.asdict(task)), torchlm.Training(dataclasses.asdict(task))
    second_biases, padding = 2 * 4 * 200, ours.model.config.subword_dim
    assert sum(p.numel() for p in theirs.parameters) == ours.model.n_params + second_biases + padding
    p, module = ours.model.params, theirs.model
    pairs = [(module.embedding.weight[1:], p["emb_in.emb.E"])]
    pairs += [(module.project.weight, p["emb_in.proj.W"].T)] if kind == "syllables" else []
    for k, layer in enumerate(module.convolutions, 1):
        weights = p[f"emb_in.cnn.W{k}"].reshape(k, layer.in_channels, -1).transpose(2, 1, 0)
        pairs += [(layer.weight, weights), (layer.bias, p[f"emb_in.cnn.b{k}"])]
    for k, layer in enumerate(module.highways, 1):
        pairs += [(layer.weight, p[f"emb_in.hw{k}.W"].T), (layer.bias, p[f"emb_in.hw{k}.b"])]
    with torch.no_grad():
        module.embedding.weight[0] = 0
        for tensor, array in pairs:
            tensor.copy_(torch.tensor(np.ascontiguousarray(array)))
        table = module.table().numpy()
    np.testing.assert_allclose(ours.model.vectors("in").matrix, table, rtol=1e-4, atol=1e-5)
    assert ours.step() == pytest.approx(np.log(60), rel=0.2) == theirs.step()


def test_parts_cover_the_requested_windows(task, monkeypatch):
    ticks = iter(range(10**6))
    training = workers.LmTraining(dataclasses.asdict(task))
    monkeypatch.setattr(clock.time, "perf_counter", lambda: next(ticks))
    for windows in 3, 5:  # one tick for each call of a wrapped method, and one between calls
        answer = training(windows)
        # Dropout of embeddings and of two layers' outputs, in each direction.
        expected = {"embedding": 2, "LSTM forward": 2, "LSTM backward": 2, "L": 2, "softmax": 1, "update": 2}
        assert {part: answer["parts"][part] for part in expected} == {p: windows * n for p, n in expected.items()}
        assert answer["parts"]["dropout"] == windows * 6
        assert sum(answer["parts"].values()) == answer["seconds"]


def test_flops_by_hand(task):
    # Layers of 9 units: 4 gates of 6 + 9 and of 9 + 9 inputs; L 9 x 6; 60 words of 6.
    lstm_weights = 36 * 15 + 36 * 18
    forward = {"LSTM forward": 2 * lstm_weights, "LSTM backward": 4 * lstm_weights}
    assert task.flops() == forward | {"L": 6 * 54, "softmax": 6 * 360}
    untied = dataclasses.replace(task, tying="untied", layers=1)
    assert untied.flops() == {"LSTM forward": 1080, "LSTM backward": 2160, "L": 0, "softmax": 6 * 540}
    syllables, chars = (dataclasses.replace(task, **lm.shape(kind), tying="untied") for kind in list(KINDS)[1:])
    rows = Synthetic("syllables", 60).rows
    pairs = {(unit, k) for row in rows.tolist() for k, unit in enumerate(row) if unit}
    assert syllables.flops()["subwords"] == pytest.approx(6 * len(pairs) * 50 * 200 / 12)
    assert syllables.flops()["softmax"] == 6 * 60 * 200 and chars.flops()["L"] == 6 * 200 * 525
    assert chars.flops()["subwords"] == pytest.approx(6 * 51 * 15 * 25 * sum(w * w for w in range(1, 7)) / 12)


def test_programs_and_workers_answer_and_report_errors():
    """`python examples/benchmarks` needs no installation and runs in any folder, like its workers."""
    command = [sys.executable, processes.FOLDER, "predict", "--words", "1e9", "exchange_words=1e6"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment)
    assert result.stdout.startswith("1 billion words in 5 epochs") and not result.stderr
    with contextlib.ExitStack() as stack:
        rate, _ = processes.Worker("NumPy", processes.worker("sgemm:Products"), stack)([16, 1])
        assert rate > 0
    code = "import os, sys\nfrom benchmarks.processes import serve\n{}"
    with contextlib.ExitStack() as stack:
        body = "serve(lambda question: [os.environ['TEST'], 10 / question])"
        worker = processes.Worker("it", [sys.executable, "-c", code.format(body)], stack, {"TEST": "a", **PATHS})
        assert worker(5) == ["a", 2] and worker(4) == ["a", 2.5]
        process = worker.process
        refused(lambda: worker(0), "it: ZeroDivisionError")
        echo = code.format("serve(lambda question: question)")
        fine = processes.Worker("it", [sys.executable, "-c", echo], stack, PATHS)
        assert fine("x") == "x" and fine.process.poll() is None
    assert process.returncode == 1 and fine.process.returncode == 0


PATHS = {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "examples")))}
