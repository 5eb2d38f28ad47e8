"""Test the loss on a held-out text that word2vec reports after each epoch."""

import json

import numpy as np
import pytest
import reference
from w2vcase import VARIANTS, encoded, topic_text

from tiedtools.kernels.base.scalar import mix
from tiedtools.kernels.word2vec import sampling
from tiedtools.models.word2vec import run as word2vecrun
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.run import Run

VOCAB, TEXT = topic_text(600)
VALID = topic_text(200, seed=1)[1]


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("a b c d e f\n" * 500)
    return path


def trained(valid=VALID, **options):
    run = Run(Word2Vec(VOCAB, Config(size=10, **dict(epochs=2, sample=0.01) | options)), TEXT, valid=valid)
    run.go()
    return run


def losses(run):
    return [epoch["valid_loss"] for epoch in run.history]


WHOLE = {name: options for name, options in VARIANTS.items() if "subwords" not in options}  # others have local matrices


@pytest.mark.parametrize("options", WHOLE.values(), ids=WHOLE)
def test_loss_agrees_with_reference_and_changes_no_parameter(options):
    run = trained(**options)
    before = [array.tobytes() for array in run.model.arrays.values()]
    config, model = run.model.config, run.model
    own = run.valid.workspaces[0]
    seed = np.uint64(mix(np.uint64(0)))
    n = sampling.subsample(*own.text, VALID.ids, run.thresholds, seed)
    text = [array[:n].tolist() for array in own.text]
    matrices = {name: array.astype(np.float64) for name, array in model.arrays.items()}
    nats, predictions = reference.word2vec(
        matrices["emb_in"], matrices.get("emb_out", matrices["emb_in"]), matrices.get("proj", np.zeros((0, 0))), text,
        run.noise.tolist(), run.tree, model.first_node, config, len(own.space.hidden), 1e-30, 1e-30, int(mix(seed)),
    )  # fmt: skip
    assert len(run.valid.cuts) == 2 and predictions > 100
    assert run.valid.loss() == pytest.approx(nats / predictions, rel=1e-5)
    assert before == [array.tobytes() for array in model.arrays.values()]


@pytest.mark.parametrize("options", [{}, dict(threads=3, deterministic=True)], ids=str)
def test_training_is_the_same_with_and_without(options, monkeypatch):
    monkeypatch.setattr(word2vecrun, "CHUNK", 1000)
    runs = [trained(valid, **options) for valid in (VALID, None)]
    assert runs[0].model.emb_in.tobytes() == runs[1].model.emb_in.tobytes()
    assert [epoch["loss"] for epoch in runs[0].history] == [epoch["loss"] for epoch in runs[1].history]
    assert "valid_loss" not in runs[1].history[0] and len(set(losses(runs[0]))) == 2


def test_loss_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr(word2vecrun, "CHUNK", 300)
    runs = [trained(epochs=1, threads=threads) for threads in (1, 3)]
    runs[1].model.emb_in[:], runs[1].model.emb_out[:] = runs[0].model.emb_in, runs[0].model.emb_out
    assert runs[0].valid.loss() == runs[1].valid.loss() == losses(runs[0])[0]


def test_each_epoch_ends_before_its_loss_is_computed(monkeypatch):
    """All threads wait: no piece of the next epoch may have begun."""
    monkeypatch.setattr(word2vecrun, "CHUNK", 100)
    seen = []

    class Watched(Run):
        def report_epochs(self):
            seen.append(self.next)
            super().report_epochs()

    run = Watched(Word2Vec(VOCAB, Config(size=4, epochs=3, threads=4)), TEXT, valid=VALID)
    run.go()
    assert seen == [(len(run.cuts) - 1) * epoch for epoch in (1, 2, 3)] and len(losses(run)) == 3


def test_overfitting_is_visible():
    """On few sentences the training loss falls on while the validation loss rises."""
    ids = np.random.default_rng(0).integers(1, len(VOCAB), 2000).astype(np.int32)
    ids[::11] = 0
    other = np.random.default_rng(1).integers(1, len(VOCAB), 2000).astype(np.int32)
    model = Word2Vec(VOCAB, Config(size=50, epochs=30, sample=0, lr=0.1))
    run = Run(model, encoded(ids, VOCAB), valid=encoded(other, VOCAB))
    run.go()
    assert run.history[-1]["loss"] < run.history[2]["loss"] - 0.1 and losses(run)[-1] > min(losses(run)) + 0.1


def test_a_text_without_predictions_has_no_loss():
    run = trained(encoded(np.array([1, 0, 2, 0], np.int32), VOCAB), epochs=1)
    assert losses(run) == [None]


def test_command_line(run, tmp_path, corpus):
    log, valid = tmp_path / "log", tmp_path / "valid.txt"
    valid.write_text("a b c zebra\n" + corpus.read_text()[:2000])
    given = "w2v", "-size", 4, "-iter", 2, "-threads", 1, "-min-count", 1, "-output", tmp_path / "v", "--log-json", log
    result = run(*given, "--valid", valid, corpus)
    assert result.exit_code == 0, result.output
    assert "validation text: " in result.stderr and "nats per prediction, valid loss " in result.stderr
    epochs = [json.loads(line) for line in log.read_text().splitlines()][:2]
    assert all(0 < epoch["valid_loss"] < 10 for epoch in epochs)
    manifest = json.loads((tmp_path / "v.run.json").read_text())
    assert str(valid) in json.dumps(manifest["inputs"]) and manifest["valid_loss"] == epochs[1]["valid_loss"]


def test_a_text_of_other_words_is_an_error(run, tmp_path, corpus):
    valid = tmp_path / "valid.txt"
    valid.write_text("zebra yak\n")
    result = run("w2v", "--valid", valid, corpus)
    assert result.exit_code == 1 and "valid.txt: no word of the vocabulary" in result.output
