"""Test cells, and encoders of subwords."""

import dataclasses
import functools
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from common import refused, save
from fitcase import TRAIN, VALID, VOCAB, Stopping, fit, interrupted
from lmcase import assert_close, grads, train, values, window
from lmcase import model as lstm
from slopes import slope
from subwordcase import FILTERS, Made, V, convolved

from tiedtools.base.errors import Contradiction
from tiedtools.evaluation.continuation import generate
from tiedtools.files.modelfile import load_language_model
from tiedtools.kernels.base.arrays import aligned, imagining
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.lm.presets import PRESETS
from tiedtools.network import cells
from tiedtools.network.config import CELLS
from tiedtools.network.division import divide, duration
from tiedtools.network.encoders import CharCNN, MorphSum, SylConcat
from tiedtools.network.network import Step
from tiedtools.network.params import Params, Start
from tiedtools.network.threads import Team, idle
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


def test_a_new_cell_is_trained_and_its_gradients_checked(elman, tmp_path, no_signals):
    is_trained_resumed_saved_and_scored(elman, TRAINING, "elman1.W", tmp_path)
    are_finite_differences({"elman1.W", "elman1.U", "elman2.W", "elman2.U", "emb_in", "proj.W"}, cell="elman")


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
    interrupted(model, TRAIN, VALID, training, Stopping(20), path)
    again = LstmLM(VOCAB, config)
    fit(again, TRAIN, VALID, training, Progress(), path, resume=True)
    assert again.params.values.tobytes() == whole.params.values.tobytes()

    save(whole, tmp_path / "model")
    loaded = load_language_model(str(tmp_path / "model"))
    assert loaded.config.cell == config.cell and parameter in loaded.params.names
    np.testing.assert_array_equal(evaluate(loaded, VALID), evaluate(whole, VALID))
    words = generate(loaded, lambda logprobs: int(logprobs.argmax()))
    assert all(0 <= next(words) < len(VOCAB) for _ in range(20))
    assert LstmLM.memory(VOCAB, config) > 3 * whole.params.values.nbytes  # plus gradients, the best model, and buffers


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_of_cells(name):
    parts = ("W_x", "R", "b") if name.startswith("rhn") else ("W_x", "W_h", "b")
    names = {f"{name[:3]}{layer}.{part}" for layer in (1, 2) for part in parts}
    are_finite_differences(names | {"emb_in", "proj.W"}, **VARIANTS[name])


def are_finite_differences(names, **options):
    model = lstm(layers=2, hidden=17, tying="linear", **options)
    ids, targets, state = window(model)
    model.train_step(ids, targets, state, 7)
    ours, rng = grads(model), np.random.default_rng(1)
    assert names <= values(model).keys()
    for name, array in model.params.owners():
        direction, numeric = slope(array, rng, lambda: model.train_step(ids, targets, state, 7)[0] / targets.size)
        assert (ours[name] * direction).sum() == pytest.approx(numeric, rel=1e-5, abs=1e-9), name


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("threads, division", [(3, (1, 3)), (3, (3, 1)), (5, (2, 2)), (16, (3, 5))])
def test_threads_do_not_change_results(name, threads, division, monkeypatch):
    """Also with threads that are in no group, and in the division that `divide` chooses; bytes are reproducible."""
    options = dict(hidden=40, tying="linear", **VARIANTS[name])
    one = train(lstm(threads=1, **options))
    assert_close(one, train(lstm(threads=threads, **options)), 1e-11)
    monkeypatch.setattr(cells, "divide", lambda *sizes: division)
    several, again = (train(lstm(threads=threads, **options)) for _ in range(2))
    assert_close(one, several, 1e-11)
    assert_close(several, again, 0)


def test_more_threads_never_take_longer_by_the_rule_and_two_form_one_group():
    for B, n, gates in itertools.product((1, 3, 20, 80), (16, 200, 650, 1150), (2, 4)):
        assert [divide(threads, B, n, gates, 16) for threads in (1, 2)] == [(1, 1), (1, 2)]
        times = [duration(*divide(threads, B, n, gates, 16), B, n, gates, 16) for threads in range(3, 40)]
        assert times == sorted(times, reverse=True)
    assert divide(16, 20, 200, 4, 16)[0] > 1, "small layers divide the sequences"
    assert divide(16, 20, 1150, 4, 16)[0] == 1, "large layers divide the units"


def test_rhn_of_zilly_et_al():
    """Table 1 has 23M: m n + n^2 D weights for each of k and g, their biases, and the tied embeddings and biases."""
    values = {**PRESETS["rhn-ptb"][1]}
    config = LstmConfig(**{name: values[name] for name in values if name in LstmConfig.__dataclass_fields__})
    with imagining(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(aligned, 9, 9).result().strides[0]  # another thread's arrays have memory
        model = idle(LstmLM)(Vocab.made_up(10_000), config)
    n, D, V = 830, 10, 10_000
    assert model.n_params == 2 * (n * n * (D + 1) + n * D) + V * n + V
    assert round(model.n_params / 1e6, 1) == 23.5
    model = lstm(cell="rhn", transform_bias=-3.0, init=0.0)
    assert (model.params["rhn1.b"] == [[0.0] * 11 + [-3.0] * 11] * 5).all()
    ids, targets, state = window(model)
    x, after = model.network.forward(state, Step(ids))
    share = 1 / (1 + np.exp(3.0))
    np.testing.assert_allclose(after[0], state[0] * (1 - share) ** (5 * len(ids)), rtol=1e-10)  # only the carry path
    # With all of the recurrent input dropped, the state still decays, and does not jump.
    model = lstm(cell="rhn", depth=3, layers=1, dropout_kind="gal", drop_state=0.999999)
    ids, targets, state = window(model)
    model.train_step(ids, targets, state, 0)
    states, masked, _ = model.network.layers[1].saved
    assert not masked.HM[:3, :11].any() and states.H[:3, :11].any()


@pytest.mark.parametrize("options", [dict(depth=2), dict(transform_bias=-2.0), dict(cell="gru", depth=1)])
def test_settings_of_rhn_only(options):
    refused(lambda: LstmConfig(**options), "describes recurrent highway networks: set `cell=rhn`", kind=Contradiction)


team = functools.cache(Team)
S, D, N = 13, 5, 37
STEP = Step(None, training=True)
SHORT = np.array([0, 1, 5])  # words of few subwords, so that some positions have none
start = Start(None, None)


def char_cnn(p, E):
    return np.concatenate([convolved(E, p, "l", width) for width in range(1, len(FILTERS) + 1)], 1)


ENCODERS = {  # name: (params, L) -> encoder; (parameters, embeddings [V', L, d], 0 for padding) -> outputs
    "morphsum": (lambda params, L: MorphSum(params, "l", S, D, start), lambda p, E: E.sum(1)),
    "sylconcat": (
        lambda params, L: SylConcat(params, "l", L, S, D, N, start),
        lambda p, E: E.reshape(len(E), -1) @ p["l.proj.W"],
    ),
    "charcnn": (lambda params, L: CharCNN(params, "l", L, S, D, FILTERS, start), char_cnn),
}
every_encoder = pytest.mark.parametrize("name", ENCODERS)
CHOICES = None, np.arange(0, V, 3), SHORT, np.array([V - 1])


def encoder(name, threads=1, dtype="float64", longest=6):
    params, rows = Params(team(threads), dtype), Made(longest=longest).rows
    rows[SHORT, 1:] = 0
    layer = ENCODERS[name][0](params, longest)
    params.build()
    for seed, (_, array) in enumerate(params.owners()):
        array[:] = np.random.default_rng(seed).normal(size=array.shape)
    return params, layer, rows


def expected(name, params, rows):
    p = {key: array.astype(float) for key, array in params.owners()}
    E = np.concatenate([np.zeros((1, D)), p["l.emb.E"]])[rows]
    return ENCODERS[name][1](p, E)


@pytest.mark.parametrize("threads, dtype, limit", [(1, "float64", 1e-12), (3, "float64", 1e-12), (2, "float32", 1e-5)])
@every_encoder
def test_output(name, threads, dtype, limit):
    params, layer, every_row = encoder(name, threads, dtype)
    for words in CHOICES:
        layer.forward(every_row - 1, STEP)  # a larger set of words leaves nothing behind
        rows = every_row if words is None else every_row[words]
        y = layer.forward(rows - 1, STEP)
        theirs = expected(name, params, rows)
        width = theirs.shape[1]
        assert y.shape[:2] == (1, len(theirs)) and not y[..., width:].any()
        np.testing.assert_allclose(y[0, :, :width], theirs, rtol=limit, atol=10 * limit)


@pytest.mark.parametrize("words, threads", list(zip(CHOICES, (3, 1, 2, 2))), ids=str)
@every_encoder
def test_gradients_match_finite_differences_and_accumulate(name, words, threads):
    params, layer, rows = encoder(name, threads)
    chosen = rows if words is None else rows[words]
    y = layer.forward(chosen - 1, STEP)
    dy, rng = np.zeros_like(y), np.random.default_rng(5)
    n = expected(name, params, rows[:1]).shape[1]
    dy[..., :n] = rng.normal(size=(1, y.shape[1], n))
    params.grads[:] = np.nan  # the first gradient of a step overwrites
    params.begin_step()
    layer.backward(dy.copy())
    first = params.grads.copy()
    for key, array in params.owners():
        ours = params.cut(params.grads, key).copy()
        direction, numeric = slope(array, rng, lambda: (expected(name, params, chosen) * dy[0, :, :n]).sum())
        assert (ours * direction).sum() == pytest.approx(numeric, rel=1e-6, abs=1e-7), key
    layer.forward(chosen - 1, STEP)
    layer.backward(dy.copy())
    np.testing.assert_allclose(params.grads, 2 * first, rtol=1e-12)


def test_words_shorter_than_the_widest_filter_are_padded():
    params, layer, rows = encoder("charcnn", longest=2)
    padded = np.concatenate([rows, np.zeros((V, len(FILTERS) - 2), int)], 1)
    np.testing.assert_allclose(layer.forward(rows - 1, STEP)[0, :, : sum(FILTERS)], expected("charcnn", params, padded))
    sums, places = CharCNN(Params(team(1), "float64"), "l", 2, S, D, [12], start).scratch()
    assert places.shape[1] >= sums.shape[2], "a thread writes into the positions of the next one"
