"""Test the benchmark `translate`, and that PyTorch's model translates like ours."""

import json

import numpy as np
import pytest
from benchmarks import translate

from tiedtools.models.translation.interpreter import decode

SMALL = ["-vocabulary", 40, "-sentences", 5, "-batch", 3, "-beam", 2, "-length", 3, "-runs", 2, "-threads", "1,"]


def test_table(bench):
    result = bench("translate", *SMALL, "-variants", "9/6-all, 7/5")
    assert result.exit_code == 0 and "run 2 of 2: tiedtools 7/5, 1 thread: " in result.stderr
    head, table = result.stdout.rstrip().split("\n\n")
    assert "vocabulary 40, beam 2, 3 sentences a batch; 5 sentences a run" in head
    assert [row.split()[:3] for row in table.splitlines()[1:]] == [["tiedtools", v, "1"] for v in ("9/6-all", "7/5")]


def test_against_torch(bench):
    pytest.importorskip("torch")
    result = bench("translate", *SMALL, "-variants", "9/6-all", "--against", "torch", "--json")
    ours, theirs = json.loads(result.stdout)["rows"]
    assert [row["name"] for row in (ours, theirs)] == ["tiedtools 9/6-all", "torch 9/6-all"]
    assert theirs["ratio"] == pytest.approx(ours["sentences_per_s"] / theirs["sentences_per_s"])
    wrong = bench("translate", *SMALL, "--against", "marian")
    assert wrong.exit_code == 2 and "--against marian: no such rival" in wrong.stderr


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
