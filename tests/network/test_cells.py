"""Test that every cell, including one added as a module and a table entry, is trained, resumed, saved, and scored."""

import dataclasses

import numpy as np
import pytest
from fitcase import TRAIN, VALID, VOCAB, Stopping, fit
from lmcase import assert_close, grads, train, values, window
from lmcase import model as lstm

from tiedtools.base import interrupts
from tiedtools.base.errors import Contradiction
from tiedtools.evaluation.continuation import generate
from tiedtools.files.modelfile import load_language_model
from tiedtools.kernels.base.arrays import imagining
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.lm.presets import PRESETS
from tiedtools.network.config import CELLS
from tiedtools.network.network import Step
from tiedtools.network.threads import idle
from tiedtools.runs.progress import Progress
from tiedtools.text.vocab import Vocab
from tiedtools.training.schedules import Training
from tiedtools.training.scoring import evaluate

CONFIG = LstmConfig(cell="lstm", size=9, hidden=12, tying="linear", batch=3, steps=5, drop_out=0.2, init=0.3)
TRAINING = Training(epochs=8, lr=3.0, clip=0.5, eval_batch=4)


GAL = dict(dropout_kind="gal", drop_word=0.1, drop_emb=0.1, drop_layer=0.1, drop_state=0.2, drop_out=0.1)
VARIANTS = {
    "gru": dict(cell="gru"),
    "gru, masks": dict(cell="gru", **GAL),
    "rhn of depth 1": dict(cell="rhn", depth=1),
    "rhn of depth 2, masks": dict(cell="rhn", depth=2, **GAL),
    "rhn of depth 3, masks": dict(cell="rhn", depth=3, transform_bias=-1.0, **GAL),
    "rhn, variational": dict(
        cell="rhn", depth=2, dropout_kind="variational", drop_layer=0.2, drop_state=0.2, drop_out=0.2
    ),
}


@pytest.fixture
def elman(monkeypatch):
    """The configuration of a model with the Elman cell."""
    monkeypatch.setitem(CELLS, "elman", "elman:Elman")
    return dataclasses.replace(CONFIG, cell="elman")


def test_a_new_cell_is_trained_resumed_saved_and_scored(elman, tmp_path, no_signals):
    is_trained_resumed_saved_and_scored(elman, TRAINING, "elman1.W", tmp_path)


@pytest.mark.parametrize(
    "options, threads", [(dict(cell="gru"), 1), (dict(cell="rhn", depth=3, transform_bias=-1.0), 3)]
)
def test_cells_are_trained_resumed_saved_and_scored(options, threads, tmp_path, no_signals):
    rates = dict(dropout_kind="gal", drop_layer=0.05, drop_state=0.05, drop_out=0.0)
    config = dataclasses.replace(CONFIG, threads=threads, **options, **rates, init=0.6, init_lstm=0.6)
    training = dataclasses.replace(TRAINING, epochs=30, lr=2.0, schedule="decay", decay=1.05)
    is_trained_resumed_saved_and_scored(config, training, f"{config.cell}2.W_x", tmp_path)


def is_trained_resumed_saved_and_scored(config, training, parameter, tmp_path):
    whole = LstmLM(VOCAB, config)
    history = fit(whole, TRAIN, VALID, training, Progress())
    assert history[-1]["valid_ppl"] < 0.6 * len(VOCAB)

    path, model = str(tmp_path / "checkpoint"), LstmLM(VOCAB, config)
    with pytest.raises(KeyboardInterrupt):
        fit(model, TRAIN, VALID, training, Stopping(20), path)
    interrupts.received.clear()
    again = LstmLM(VOCAB, config)
    fit(again, TRAIN, VALID, training, Progress(), path, resume=True)
    assert again.params.values.tobytes() == whole.params.values.tobytes()

    with open(tmp_path / "model", "wb") as file:
        whole.save(file)
    loaded = load_language_model(str(tmp_path / "model"))
    assert loaded.config.cell == config.cell and parameter in loaded.params.names
    np.testing.assert_array_equal(evaluate(loaded, VALID), evaluate(whole, VALID))
    words = generate(loaded, lambda logprobs: int(logprobs.argmax()))
    assert all(0 <= next(words) < len(VOCAB) for _ in range(20))
    assert LstmLM.memory(VOCAB, config) > 3 * whole.params.values.nbytes  # plus gradients, the best model, and buffers


def test_gradients_of_the_elman_cell(elman):
    are_finite_differences({"elman1.W", "elman1.U", "elman2.W", "elman2.U", "emb_in", "proj.W"}, cell="elman")


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_of_cells(name):
    parts = ("W_x", "R", "b") if name.startswith("rhn") else ("W_x", "W_h", "b")
    names = {f"{name[:3]}{layer}.{part}" for layer in (1, 2) for part in parts}
    are_finite_differences(names | {"emb_in", "proj.W"}, **VARIANTS[name])


def are_finite_differences(names, **options):
    model = lstm(layers=2, hidden=17, tying="linear", **options)
    ids, targets, state = window(model)
    model.train_step(ids, targets, state, 7)
    ours, rng, e = grads(model), np.random.default_rng(1), 1e-5
    assert names <= values(model).keys()
    for name, array in model.params.owners():
        middle, direction, ends = array.copy(), rng.normal(size=array.shape), []
        for side in e, -e:
            array[:] = middle + side * direction
            ends.append(model.train_step(ids, targets, state, 7)[0] / targets.size)
        array[:] = middle
        assert (ours[name] * direction).sum() == pytest.approx((ends[0] - ends[1]) / (2 * e), rel=1e-5, abs=1e-9), name


@pytest.mark.parametrize("name", VARIANTS)
def test_threads_do_not_change_results(name):
    one, three = (train(lstm(hidden=40, tying="linear", threads=threads, **VARIANTS[name])) for threads in (1, 3))
    assert_close(one, three, 1e-11)


def test_parameter_count_of_zilly_et_al():
    """Table 1 has 23M: m n + n^2 D weights for each of k and g, their biases, and the tied embeddings and biases."""
    values = {**PRESETS["rhn-ptb"][1]}
    config = LstmConfig(**{name: values[name] for name in values if name in LstmConfig.__dataclass_fields__})
    with imagining():
        model = idle(LstmLM)(Vocab.made_up(10_000), config)
    n, D, V = 830, 10, 10_000
    assert model.n_params == 2 * (n * n * (D + 1) + n * D) + V * n + V
    assert round(model.n_params / 1e6, 1) == 23.5


def test_transform_gates_start_closed():
    model = lstm(cell="rhn", transform_bias=-3.0, init=0.0)
    assert (model.params["rhn1.b"] == [[0.0] * 11 + [-3.0] * 11] * 5).all()
    ids, targets, state = window(model)
    x, after = model.network.forward(state, Step(ids))
    share = 1 / (1 + np.exp(3.0))
    np.testing.assert_allclose(after[0], state[0] * (1 - share) ** (5 * len(ids)), rtol=1e-10)  # only the carry path


def test_dropped_states_are_carried():
    """With all of the recurrent input dropped, the state still decays, and does not jump."""
    model = lstm(cell="rhn", depth=3, layers=1, dropout_kind="gal", drop_state=0.999999)
    ids, targets, state = window(model)
    model.train_step(ids, targets, state, 0)
    states, masked, _ = model.network.layers[1].saved
    assert not masked.HM[:3, :11].any() and states.H[:3, :11].any()


@pytest.mark.parametrize("options", [dict(depth=2), dict(transform_bias=-2.0), dict(cell="gru", depth=1)])
def test_settings_of_rhn_only(options):
    with pytest.raises(Contradiction, match="describes recurrent highway networks: set `cell=rhn`"):
        LstmConfig(**options)
