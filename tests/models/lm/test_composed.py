"""Test LSTM language models whose word vectors are composed from subwords."""

import numpy as np
import pytest
from lmcase import assert_close, grads, update, values, window
from slopes import slope
from subwordcase import LAYERS, B, T, V, combinations, composed, model, vocab

from tiedtools.models.lm import wiring
from tiedtools.models.lm.config import LstmConfig
from tiedtools.models.lm.model import LstmLM
from tiedtools.models.lm.presets import PRESETS
from tiedtools.network.params import Params
from tiedtools.network.tables import Composed
from tiedtools.network.threads import Idle

every_kind = pytest.mark.parametrize("kind", LAYERS)
every_reuse = pytest.mark.parametrize("kind, reuse", [(kind, reuse) for kind in LAYERS for reuse in combinations(kind)])
MORE = [{}, dict(sampled=20), dict(augment=0.6, tau=3.0), dict(subword_dim=5, highways=1, size=8)]


def gradient(m):
    m.train_step(*window(m), 7)
    return grads(m)


def slopes_match(m):
    """Assert that the gradient of each parameter agrees with finite differences in a random direction."""
    step, rng = window(m), np.random.default_rng(1)
    m.train_step(*step, 7)
    ours = grads(m)
    for name, array in m.params.owners():
        direction, numeric = slope(array, rng, lambda: m.train_step(*step, 7)[0] / (T * B))
        assert (ours[name] * direction).sum() == pytest.approx(numeric, rel=1e-6, abs=1e-8), name
        assert ours[name].any(), name


@every_reuse
def test_gradients_match_finite_differences(kind, reuse):
    slopes_match(model(kind, reuse))


@pytest.mark.parametrize("reuse", ["plain", "none", "all", "emb,hw2"])
@every_kind
def test_gradients_of_sampled_softmax_match_finite_differences(kind, reuse):
    slopes_match(model(kind, reuse, sampled=20))


def test_gradients_of_a_projection_of_morphs_match_finite_differences():
    m = model("morphs", "proj", subword_dim=5)
    assert m.params.names["emb_out.proj.W"] == "emb_in.proj.W"
    slopes_match(m)


@every_reuse
def test_word_vectors_match_numpy_and_layers_are_tied(kind, reuse):
    m = model(kind, reuse)
    p, rows = values(m), m.vocab.subwords.rows
    for which in "in", "out":
        side = "emb_in" if reuse == "all" else f"emb_{which}"
        expected = p["emb_out"] if (which, reuse) == ("out", "plain") else composed(p, side, m.config, rows)
        np.testing.assert_allclose(m.vectors(which).matrix, expected, rtol=1e-6, atol=1e-6)
    assert m.config.one_table == (reuse == "all")
    reused = LAYERS[kind].split() if reuse == "all" else reuse.split(",")
    ours = {name for name in m.params.names if name.startswith("emb_out.") and name != "emb_out.b"}
    assert bool(ours) == (reuse not in ("plain", "all"))  # with all, there is only one table
    for name in ours:
        layer = name.split(".")[1]
        assert m.params.names[name] == (f"emb_in{name[7:]}" if layer in reused else name)
        m.params[f"emb_in{name[7:]}"][0] = 0.25
        assert (m.params[name][0] == 0.25).all() == (layer in reused)


@pytest.mark.parametrize("more", MORE, ids=repr)
@every_kind
def test_one_table_equals_two_tables_with_the_same_parameters(kind, more, monkeypatch):
    if kind == "chars" and "size" in more:
        more = {"highways": 1}
    one = model(kind, "all", **more)
    monkeypatch.setattr(LstmConfig, "one_table", False)
    two = model(kind, "all", values(one), **more)
    assert (len(one.network.tables), len(two.network.tables)) == (1, 2)
    step = window(one)
    assert one.train_step(*step, 7)[0] == pytest.approx(two.train_step(*step, 7)[0], rel=1e-13)
    assert_close(grads(one), grads(two), 1e-12)
    np.testing.assert_allclose(one.score(*step)[0], two.score(*step)[0], rtol=1e-13)


@pytest.mark.parametrize("more", MORE[:3], ids=repr)
@every_kind
def test_gradients_of_reused_layers_are_the_sum_of_both_roles(kind, more):
    tied = model(kind, "all", **more)
    start = values(tied)
    start |= {f"emb_out{name[6:]}": array for name, array in start.items() if name.startswith("emb_in")}
    both, roles = gradient(tied), gradient(model(kind, "none", start, **more))
    for name in [name for name in roles if name.startswith("emb_out.") and name != "emb_out.b"]:
        roles[f"emb_in{name[7:]}"] += roles.pop(name)
    assert_close(both, roles)


def lengths(table):
    return [] if table.words is None else table.words.tolist()


@every_kind
def test_a_step_composes_only_the_words_it_needs(kind):
    for reuse, sampled in ("plain", 0), ("none", 0), ("none", 20), ("all", 0), ("all", 20):
        m = model(kind, reuse, sampled=sampled)
        ids, targets, state = window(m)
        m.train_step(ids, targets, state, 7)
        read = set(ids.ravel())
        predicted = set(np.maximum(targets, 0).ravel()) if sampled else set()
        found = [set(lengths(table)) for table in m.network.tables]
        if reuse == "plain":
            assert found == [read]
        elif reuse == "none":
            assert found[0] == read and found[1] >= predicted
        else:
            assert found[0] >= predicted | (read if sampled else set())
        full = [m.network.tables[-1].words is None, sampled == 0 and reuse != "plain"]
        assert full[0] == full[1] and all(len(words) < V for words in found)


def test_scoring_composes_once_for_each_version_of_the_parameters(monkeypatch):
    m, made = model("morphs", "none"), []
    first = m.network.tables[0].layers[0]
    forward = type(first).forward
    monkeypatch.setattr(type(first), "forward", lambda self, *args: (made.append(self), forward(self, *args))[1])
    for _ in range(3):
        m.score(*window(m))
        m.predict(window(m)[0], window(m)[2])
        m.vectors("in")
    assert len(made) == 2
    m.train_step(*window(m), 1)
    assert len(made) == 4
    before = m.score(*window(m))[0]
    update(m, 0.5, 0.0)
    after = m.score(*window(m))[0]
    assert len(made) == 8 and np.abs(after - before).max() > 1e-3
    np.testing.assert_array_equal(after, model("morphs", "none", values(m)).score(*window(m))[0])


@every_kind
def test_padding_has_no_parameters_and_no_gradient(kind):
    m = model(kind, "none")
    units = len(m.vocab.subwords.units) - 1
    assert len(m.params["emb_in.emb.E"]) == units
    start = m.params.values.copy()
    for step in range(3):
        m.train_step(*window(m, step), step)
        update(m, 0.5, 0.3)
    true = np.zeros(start.size, bool)
    for name in m.params.layout:
        m.params.cut(true, name)[:] = True
    assert not m.params.values[~true].any() and not m.params.grads[~true].any() and (m.params.values != start).any()


INPUTS = {  # name of a weight matrix -> its number of inputs
    "morphs": {"proj.W": 40, "hw1.W": 90, "hw2.W": 90},
    "syllables": {"proj.W": 6 * 40, "hw1.W": 90, "hw2.W": 90},
    "chars": {"cnn.W1": 40, "cnn.W2": 80, "hw1.W": 90, "hw2.W": 90},
}


@pytest.mark.parametrize("reuse", ["none", "all"])
@every_kind
def test_initial_weights_by_width(kind, reuse):
    """With `init_by_width`, they are in +-1 / sqrt(inputs); embeddings and biases start as without it."""
    options = dict(subword_dim=40, highway_dim=90, filters="30,60", hidden=90, init=0.3, dtype="float64")
    for init_bias in "uniform", "lstm":
        plain, wide = (model(kind, reuse, **options, init_bias=init_bias, init_by_width=by) for by in (False, True))
        for side in ("emb_in", "emb_out") if reuse == "none" else ("emb_in",):
            made = {name.removeprefix(f"{side}."): name for name in wide.params.layout if name.startswith(f"{side}.")}
            made.pop("b", None)  # of the softmax
            for part, name in made.items():
                array, before = wide.params[name], plain.params[name]
                if part in INPUTS[kind]:
                    reach = INPUTS[kind][part] ** -0.5
                    assert len(array) == INPUTS[kind][part] and 0.98 * reach < np.abs(array).max() <= reach, name
                    np.testing.assert_allclose(array, before * (reach / 0.3), rtol=1e-12, atol=1e-15)
                else:
                    np.testing.assert_array_equal(array, before)
            assert INPUTS[kind].keys() | {"emb.E", "hw1.b"} <= made.keys()
            assert abs(wide.params[f"{side}.hw1.b"][:90] + 2).max() <= 0.01


@every_kind
def test_threads_and_precisions_train_alike(kind):
    for reuse, sampled in ("none", 0), ("all", 20):
        first = gradient(model(kind, reuse, sampled=sampled))
        for threads in 2, 3:
            assert_close(gradient(model(kind, reuse, sampled=sampled, threads=threads)), first, 1e-10)
    options = dict(dtype="float32", init=0.3)
    wide, half = model(kind, **options), model(kind, precision="bfloat16", **options)
    exact = model(kind, values=values(wide), init=0.3)
    for step in range(15):
        losses = []
        for m in exact, wide, half:
            ids, targets, state = window(exact, step % 3)
            state = tuple(part.astype(m.config.dtype) for part in state)
            losses.append(m.train_step(ids, targets, state, step)[0])
            update(m, 0.05, 1.0)
        assert losses[1] == pytest.approx(losses[0], rel=1e-5) and losses[2] == pytest.approx(losses[0], rel=0.01)
    assert losses[2] != losses[1]


@pytest.mark.parametrize("reuse", ["plain", "all"])
@every_kind
def test_one_thread_is_bitwise_reproducible_and_compiling_changes_nothing(kind, reuse):
    runs = [model(kind, reuse, sampled=20, dtype="float32") for _ in range(2)]
    runs[1].compile()
    for run in runs:
        for step in range(3):
            run.train_step(*window(run, step), step)
            update(run, 0.5, 0.3)
    assert runs[0].params.values.tobytes() == runs[1].params.values.tobytes()


# Numbers of parameters in millions, Assylbekov & Takhanov 2018, table 2, with one more digit where the paper's sizes
# give one: 10,000 words, 3,400 morphs, 5,900 syllables, at most 8 in a word, and 51 characters.
SIZES = {"morphs": dict(S=3400, longest=8), "syllables": dict(S=5900, longest=8), "chars": dict(S=51, longest=21)}
OPTIONS = {"RE": "emb", "RW": {"morphs": "hw1,hw2", "syllables": "hw1,hw2", "chars": "cnn,hw1,hw2"}}
COUNTS = {
    ("morphs", "small"): "3.49 2.33 1.65 2.17 1.49", ("morphs", "medium"): "17.2 14.6 12.4 12.9 10.7",
    ("syllables", "small"): "3.2 1.7 1.4 1.6 1.19", ("syllables", "medium"): "18.7 17.7 16.6 15.2 12.7",
    ("chars", "small"): "4.05 3.30 3.30 2.16 2.16", ("chars", "medium"): "19.4 18.5 18.5 13.6 13.6",
}  # fmt: skip


def count(kind, **options):
    """Return the number of parameters of a model of 10,000 words."""
    config, params = LstmConfig(**options), Params(Idle(1))
    wiring.network(params, config, vocab(10_000, **SIZES[kind]))
    return params.count


@pytest.mark.parametrize("kind, size", COUNTS)
def test_parameter_counts_of_assylbekov_and_takhanov(kind, size):
    fields = LstmConfig.__dataclass_fields__
    settings = {k: v for k, v in PRESETS[f"assylbekov-{kind}-{size}"][1].items() if k in fields}
    for reuse, millions in zip(("plain", "none", "RE", "RW", "all"), COUNTS[kind, size].split()):
        chosen = OPTIONS.get(reuse, reuse)
        n = count(kind, **settings | dict(reuse=chosen[kind] if isinstance(chosen, dict) else chosen))
        assert f"{n / 1e6:.{len(millions.split('.')[1])}f}" == millions, reuse


def test_numbers_of_parameters_and_memory():
    """Their table 3 has 5M."""
    fields = LstmConfig.__dataclass_fields__
    n = count("chars", **{k: v for k, v in PRESETS["kim-small"][1].items() if k in fields})
    assert round(n / 1e6) == 5
    m = model("chars", "none", dtype="float32")
    words = LstmLM.memory(m.vocab, LstmConfig(size=7, hidden=8))
    whole = LstmLM.memory(m.vocab, m.config)
    m.train_step(*window(m), 0)
    m.score(*window(m))
    layers = [layer for table in m.network.tables for layer in (table, *table.layers)]
    assert whole > words + sum(flat.nbytes for layer in layers for *_, flat in layer.buffers.arrays.values()) / 2
    assert all(isinstance(table, Composed) for table in m.network.tables)
