"""Test RNN language model training: against a plain reference, repeated, resumed, and with several threads."""

import numpy as np
import pytest
from rnnlmcase import CONFIGS, DOC, assert_close, epochs, every_config, model, referred, score, text, values

SIZES = [dict(V=23, hidden=17, classes=4), dict(V=57, hidden=30, classes=7)]


def check(options, dtype="float64", tolerance=1e-9, ids=None):
    """Learn a text and compare with the reference; return the initial parameters and the reference's learned ones."""
    m = model(dtype=dtype, **options)
    ids = text(300, len(m.vocab)) if ids is None else ids
    start, p = values(m), values(m)
    expected, _ = referred(m, p)(ids, 0.1)
    np.testing.assert_allclose(m.learn(ids, 0.1), expected, rtol=tolerance, atol=tolerance)
    assert_close(values(m), p, tolerance)
    return start, p


@every_config
def test_learning_matches_reference(options):
    start, learned = check(options)
    for name in learned:
        moves = name != "start_hid" or options.get("learn_start", False)
        if name == "start_doc":
            moves = "sentences" in options or "independent" in options
        assert (np.abs(learned[name] - start[name]).max() > 1e-4) == moves, name


@every_config
def test_batches_and_float32_learn_alike(options):
    check(options, "float32", 1e-4)
    batched, learner = model(**options), model(**options)
    ids, start = text(300), learner.params.values.copy()
    (mean,) = epochs(batched, ids)
    logs = learner.learn(ids, 0.1)
    assert mean == pytest.approx(-logs.sum() / (ids >= 0).sum(), rel=1e-12)
    assert_close(values(batched), values(learner), 1e-12)
    learner.params.set(start)
    np.testing.assert_array_equal(learner.learn(ids, 0.1), logs)  # no state is left of the first time


@pytest.mark.parametrize("doc_dim", [0, 3, 17])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_learning_for_various_sizes(size, doc_dim):
    check({**size, **DOC, "doc_dim": doc_dim})
    check({**size, "bptt": 4, "bptt_block": 3})


@pytest.mark.parametrize("name", ["bptt 4, block 3", "bptt 4, block 3, apart", "document", "direct"])
def test_short_texts_without_a_final_line_end(name):
    for n in 1, 2, 3, 17:
        ids = text(n, seed=n)
        ids[-1] = 5
        check(CONFIGS[name], ids=ids)


@pytest.mark.parametrize("n", [511, 512, 513, 1100])
def test_long_sentences(n):
    check(DOC, ids=text(n, ends=0.0))


@pytest.mark.parametrize("name", ["one step", "bptt 4, block 3", "document", "direct"])
def test_l2(name):
    """At which words of a block L2 applies is up to the implementation; over a text the total is the same."""
    m, free = model(**CONFIGS[name], beta=0.03), model(**CONFIGS[name])
    ids = text(400, oov=0)
    p = values(m)
    referred(m, p)(ids, 0.1)
    m.learn(ids, 0.1)
    free.learn(ids, 0.1)
    for key in p:
        shrunk = p[key] - free.params[key]
        if key in ("hid", "class_hid", "word_out"):
            assert np.abs(shrunk).max() > 0.01
        assert np.linalg.norm(m.params[key] - p[key]) <= 0.15 * np.linalg.norm(shrunk) + 1e-12, key


# Epochs


@pytest.mark.parametrize("options", [*CONFIGS.values(), dict(DOC, shuffle=True)], ids=[*CONFIGS, "shuffled"])
def test_one_thread_is_bitwise_reproducible(options):
    again = dict(options, defer=True) if model(**options).config.block == 1 else options  # `defer` has no effect then
    runs = [model(dtype="float32", **given) for given in (options, again)]
    for run in runs:
        epochs(run, text(300), 2)
    assert runs[0].params.values.tobytes() == runs[1].params.values.tobytes()


def test_compiling_does_not_change_results():
    for options in CONFIGS.values():
        m = model(**options)
        before = m.params.values.tobytes()
        m.compile()
        assert m.params.values.tobytes() == before


LONG = text(30_000, seed=8)


@pytest.mark.parametrize(
    "options",
    [*(CONFIGS[name] for name in ("one step", "bptt 4, block 3", "bptt 4, block 3, apart", "document", "direct"))]
    + [dict(CONFIGS[name], shuffle=True) for name in ("bptt 4, block 3, apart", "document")],
    ids=str,
)
def test_resuming_within_an_epoch_is_bitwise_identical(options):
    """A new model with new batches needs only the parameters and state of the old one."""
    options = dict(options, dtype="float32")
    whole = model(**options)
    epochs(whole, LONG, 2)
    m = model(**options)
    batches, learner = m.batches(LONG), m.learner(0.0)
    assert batches.steps > 2
    for epoch in range(2):
        batches.begin(epoch)
        state = learner.begin()
        for k in range(batches.steps):
            _, _, _, state = learner.step(batches[k], state, k, 0.1)
            if k == epoch + 1:
                state = tuple(np.copy(part) for part in state)
                m, before = model(**options), m
                m.params.values[:] = before.params.values
                batches, learner = m.batches(LONG), m.learner(0.0)
                batches.begin(epoch)
    assert m.params.values.tobytes() == whole.params.values.tobytes()


def test_shuffled_epochs_cover_all_sentences_in_different_orders():
    m, plain = model(**DOC, shuffle=True), model(**DOC)
    ids = text(2000, seed=9)
    shuffled, in_order = epochs(m, ids, 2, 0.0), epochs(plain, ids, 1, 0.0)
    assert shuffled == pytest.approx([in_order[0]] * 2, rel=1e-12)  # at learning rate 0, only the order differs
    first, second, other = model(**DOC, shuffle=True), model(**DOC, shuffle=True), model(**DOC, shuffle=True, seed=2)
    for run, epoch in zip((first, second, other), (0, 1, 0)):
        batches, learner = run.batches(ids), run.learner(0.0)
        batches.begin(epoch)
        state = learner.begin()
        for k in range(batches.steps):
            _, _, _, state = learner.step(batches[k], state, k, 0.1)
    plain.learn(ids, 0.1)
    results = [run.params.values for run in (first, second, other, plain)]
    for a in range(4):
        for b in range(a):
            assert np.abs(results[a] - results[b]).max() > 1e-4


def grammar(n, V=57, seed=0):
    """Return a text in which each word depends strongly on the previous one."""
    rng, ids = np.random.default_rng(seed), [0]
    for _ in range(n - 1):
        ids.append(int(ids[-1] * 3 + rng.choice([1, 2, 5], p=[0.7, 0.2, 0.1])) % V)
    return np.array(ids + [0], np.int32)


@pytest.mark.parametrize("name", ["bptt 4, block 10", "document", "direct"])
def test_two_threads_train_about_as_well(name):
    ids, unseen = grammar(20_000), grammar(3_000, seed=1)
    losses = {}
    for threads in 1, 2:
        m = model(**dict(CONFIGS[name], hidden=17, dtype="float32", threads=threads))
        means = epochs(m, ids, 4)
        losses[threads] = -score(m, unseen).mean()
        assert means[-1] < means[0]
    assert losses[1] < 1.0  # log 57 = 4.04 for a uniform model; the text's entropy is 0.8
    assert losses[2] == pytest.approx(losses[1], abs=0.05)  # at most 0.020 apart in eight runs of each


@pytest.mark.parametrize("name", ["bptt 4, block 10", "document, deferred", "document"])
def test_idle_threads_do_not_change_learning(name):
    """The copies of weights are merged over all threads repeatedly."""
    alone, among_idle = (model(**CONFIGS[name], threads=threads) for threads in (1, 3))
    ids = text(1500)
    np.testing.assert_allclose(among_idle.learn(ids, 0.1), alone.learn(ids, 0.1), rtol=1e-9)
    np.testing.assert_allclose(among_idle.params.values, alone.params.values, rtol=1e-9, atol=1e-12)
