"""Test models and checkpoints of version 0.1, written to of_0_1/ by the commands below with TIEDTOOLS_CPU=haswell."""

import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

import tiedtools as tt

OLD = Path(__file__).parent / "of_0_1"
# Commands of 0.1; the loss or perplexity of each epoch; the perplexity of the saved model. The default precision of
# products with L depends on the CPU.
RUNS = {
    "w2v": "w2v --tie-linear --precision float32 -size 6 -window 3 -min-count 1 -threads 1 -iter 3 -sample 0",
    "lstm": "lstm --tie-linear --emb 6 --hidden 5 --layers 2 --batch 10 --steps 10 --epochs 3 --threads 1"
    " --dropout-kind variational --dropout .1 --init .5 --lr 2 --clip 1 --valid-share .2",
    "rnnlm": "rnnlm --doc-dim 4 -hidden 5 -class 3 -direct 0 -min-count 1 --max-iter 3 --threads 1 --valid-share .2",
}
FIGURES = {
    "w2v": [2.2400590238952636, 2.016045124835968, 1.889746824054718],
    "lstm": [2.123855373286604, 2.102176646599535, 2.0810644694111256],
    "rnnlm": [2.1238913940330653, 2.07983997869641, 2.070730548340459],
}
PERPLEXITY = {"lstm": 2.089065303859635, "rnnlm": 2.0714417064732658}


@pytest.fixture
def text(tmp_path, monkeypatch):
    draw, nouns, verbs = random.Random(1), "cat dog owl fox hen".split(), "sees hears likes".split()
    lines = [f"the {draw.choice(nouns)} {draw.choice(verbs)} a {draw.choice(nouns)}\n" for _ in range(5000)]
    (tmp_path / "text").write_text("".join(lines))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("kind", RUNS)
def test_a_resumed_checkpoint_gives_the_original_results(run, text, tmp_path, kind):
    """All three runs were interrupted after the first epoch or during the second."""
    shutil.copy(OLD / f"{kind}.checkpoint", "checkpoint")
    more = "--checkpoint checkpoint --resume --log-json log --save-model model -output vectors --no-manifest text"
    result = run(*RUNS[kind].split(), *more.split())
    assert result.exit_code == 0, result.stderr
    assert "resumed: " in result.stderr and "epoch 1: " not in result.stderr and "epoch 3: " in result.stderr
    epochs = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()[:-1]]
    found = [epoch["loss" if kind == "w2v" else "valid_ppl"] for epoch in epochs]
    assert found == pytest.approx(FIGURES[kind], rel=1e-3) and all("words_per_s" in epoch for epoch in epochs)


@pytest.mark.parametrize("kind", PERPLEXITY)
def test_a_language_model_gives_the_original_perplexity(run, text, kind):
    result = run("ppl", "--json", OLD / f"{kind}.npz", "text")
    assert json.loads(result.stdout)["ppl"] == pytest.approx(PERPLEXITY[kind], rel=1e-4)


@pytest.mark.parametrize(
    "other, told",
    [
        ("--tie-signs --no-fit-pmi", "with --tie-linear; this run has signs"),
        ("--tie-linear --fit-pmi --lr .05 --shift 0 --cbow-grad ctool", "with --fit-pmi False; this run has True"),
        ("--tie-linear --ns-exponent .5", "with --ns-exponent 0.75; this run has 0.5"),
        ("--tie-linear --cbow-sum", "with --cbow-sum False; this run has True"),
        ("--tie-linear --fixed-window", "with --fixed-window False; this run has True"),
        ("--tie-linear --min-alpha 0", "with --min-alpha None; this run has 0.0"),
    ],
)
def test_a_checkpoint_is_not_resumed_with_other_options(run, text, other, told):
    shutil.copy(OLD / "w2v.checkpoint", "checkpoint")
    result = run(*RUNS["w2v"].replace("--tie-linear", other).split(), *"--checkpoint checkpoint --resume text".split())
    assert result.exit_code == 1 and told in result.stderr, result.stderr
    assert Path("checkpoint").read_bytes() == (OLD / "w2v.checkpoint").read_bytes()


def test_a_word2vec_model_keeps_its_settings_and_its_l():
    model = tt.load(OLD / "w2v.npz").model
    config = model.config
    assert (config.tying, config.fit_pmi, config.shift, config.cbow_grad) == ("linear", False, 0, "ctool")
    assert model.proj.shape == (6, 6) and np.array_equal(model.linear, model.proj)
    expected = model.emb_in @ model.proj + model.emb_in
    np.testing.assert_allclose(tt.Vectors.read(f"{OLD}/w2v.npz:sum").matrix, expected, atol=1e-6)


def test_nearest_neighbors_in_a_model(run):
    result = run("nn", "--top", 3, f"{OLD}/w2v.npz:sum", "cat")
    assert result.stdout == "cat\t</s>\t0.3794\ncat\tlikes\t0.1203\ncat\tsees\t0.0663\n"
