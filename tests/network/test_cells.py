"""Test that a new cell, added as a module and a table entry, can be trained, resumed, saved, and scored."""

import dataclasses

import numpy as np
import pytest
from fitcase import TRAIN, VALID, VOCAB, Stopping, fit
from lmcase import grads, values, window
from lmcase import model as lstm

from tiedtools import interrupts
from tiedtools.errors import Contradiction
from tiedtools.evaluation.continuation import generate
from tiedtools.models import load_language_model
from tiedtools.models.lstm.config import LstmConfig
from tiedtools.models.lstm.model import LstmLM
from tiedtools.network.cells import CELLS
from tiedtools.training.progress import Progress
from tiedtools.training.schedules import Training
from tiedtools.training.scoring import evaluate

CONFIG = LstmConfig(cell="lstm", size=9, hidden=12, tying="linear", batch=3, steps=5, drop_out=0.2, init=0.3)
TRAINING = Training(epochs=8, lr=3.0, clip=0.5, eval_batch=4)


@pytest.fixture
def elman(monkeypatch):
    """The configuration of a model with the Elman cell."""
    monkeypatch.setitem(CELLS, "elman", "elman:Elman")
    return dataclasses.replace(CONFIG, cell="elman")


def test_a_cell_is_trained_resumed_saved_and_scored(elman, tmp_path, no_signals):
    whole = LstmLM(VOCAB, elman)
    history = fit(whole, TRAIN, VALID, TRAINING, Progress())
    assert history[-1]["valid_ppl"] < 0.6 * len(VOCAB)

    path, model = str(tmp_path / "checkpoint"), LstmLM(VOCAB, elman)
    with pytest.raises(KeyboardInterrupt):
        fit(model, TRAIN, VALID, TRAINING, Stopping(20), path)
    interrupts.received.clear()
    again = LstmLM(VOCAB, elman)
    fit(again, TRAIN, VALID, TRAINING, Progress(), path, resume=True)
    assert again.params.values.tobytes() == whole.params.values.tobytes()

    with open(tmp_path / "model", "wb") as file:
        whole.save(file)
    loaded = load_language_model(str(tmp_path / "model"))
    assert loaded.config.cell == "elman" and "elman1.W" in loaded.params.names
    np.testing.assert_array_equal(evaluate(loaded, VALID), evaluate(whole, VALID))
    words = generate(loaded, lambda logprobs: int(logprobs.argmax()))
    assert all(0 <= next(words) < len(VOCAB) for _ in range(20))
    assert LstmLM.memory(VOCAB, elman) > 3 * whole.params.values.nbytes  # plus gradients, the best model, and buffers


def test_gradients_of_the_elman_cell(elman):
    model = lstm(cell="elman", layers=2, hidden=17, tying="linear")
    ids, targets, state = window(model)
    model.train_step(ids, targets, state, 7)
    ours, rng, e = grads(model), np.random.default_rng(1), 1e-5
    assert {"elman1.W", "elman1.U", "elman2.W", "elman2.U", "emb_in", "proj.W"} <= values(model).keys()
    for name, array in model.params.owners():
        middle, direction, ends = array.copy(), rng.normal(size=array.shape), []
        for side in e, -e:
            array[:] = middle + side * direction
            ends.append(model.train_step(ids, targets, state, 7)[0] / targets.size)
        array[:] = middle
        assert (ours[name] * direction).sum() == pytest.approx((ends[0] - ends[1]) / (2 * e), rel=1e-5, abs=1e-9), name


def test_unknown_cell():
    with pytest.raises(Contradiction, match="`cell='gru'` is not one of lstm"):
        LstmConfig(cell="gru")
