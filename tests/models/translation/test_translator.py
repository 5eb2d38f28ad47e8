"""Test the translation model: against plain NumPy, gradients against finite differences, and padding and order."""

import nmtreference
import numpy as np
import pytest
from nmtcase import LENGTHS, batch, every_size, every_tying, gradient, model, pairs, values

from tiedtools.models.translation.model import prepare


def reference(m, lengths=LENGTHS):
    """Return the log probabilities [T, B] of a batch, 0 in the padding, and the weights of attention by sentence."""
    p, found = values(m), np.zeros(batch(m, lengths).targets.shape)
    attended = []
    for column, source, target in zip(found.T, *pairs(m, lengths)):
        column[: len(target)], weights = nmtreference.sentence(p, source, target)
        attended.append(weights)
    return found, attended


@pytest.mark.parametrize(
    "threads, dtype, tolerance", [(1, "float64", 1e-12), (3, "float64", 1e-12), (2, "float32", 2e-5)]
)
@every_size
@every_tying
def test_scores(tie, sizes, threads, dtype, tolerance):
    m = model(tie, threads=threads, dtype=dtype, **sizes)
    given = batch(m)
    expected, _ = reference(m)
    np.testing.assert_allclose(m.score(given.ids, given.targets), expected, rtol=tolerance, atol=tolerance)
    nats, n, _ = m.train_step(given.ids, given.targets, (), 0)
    assert nats == pytest.approx(-expected.sum(), rel=tolerance) and n == sum(target for _, target in LENGTHS)


@every_tying
def test_predictions(tie):
    """Step by step, with rows of the memory in another order and repeated, as a beam has them."""
    m = model(tie, threads=2)
    given, (expected, attended) = batch(m), reference(m)
    rows = np.array([4, 0, 0, 3, 1, 2, 4])
    memory = m.encode(given.ids)
    assert memory.select(rows).C is memory.C
    memory = memory.select(rows[::-1]).select(np.arange(len(rows))[::-1])
    state, previous = m.start(memory), np.full(len(rows), -1, np.int32)
    for t, words in enumerate(given.targets[:, rows]):
        found, ids, state_after, weights = m.best(previous, state, memory, len(m.vocab.words))
        logp = np.take_along_axis(found, np.argsort(ids, 1), 1)
        np.testing.assert_allclose(np.exp(logp).sum(1), 1, rtol=1e-12)
        given_next, state, _ = m.score_next(words, previous, state, memory)
        assert (state[0] == state_after[0]).all()
        picked = np.where(words >= 0, logp[np.arange(len(rows)), words], 0)
        np.testing.assert_allclose(given_next, picked, atol=1e-12)
        for k, (row, word) in enumerate(zip(rows, words)):
            if word >= 0:
                assert logp[k, word] == pytest.approx(expected[t, row], rel=1e-12)
                words_of_source = LENGTHS[row][0]
                np.testing.assert_allclose(weights[k, :words_of_source], attended[row][t], rtol=1e-11)
                assert not weights[k, words_of_source:].any()
        previous = np.maximum(words, 0)


@pytest.mark.parametrize("threads", [1, 3])
@every_size
@every_tying
def test_gradients(tie, sizes, threads):
    """Along random directions in each parameter; the objective is the mean over sentences."""
    m = model(tie, threads=threads, **sizes)
    grads, _ = gradient(m)
    rng, e, given = np.random.default_rng(7), 1e-5, batch(m)
    objective = lambda: -m.score(given.ids, given.targets).sum() / len(LENGTHS)
    assert grads.keys() == dict(m.params.owners()).keys()
    for name, array in m.params.owners():
        middle = array.copy()
        for _ in range(2):
            direction = rng.normal(size=array.shape)
            ends = []
            for side in e, -e:
                array[:] = middle + side * direction
                m.params.changed()
                ends.append(objective())
            array[:] = middle
            m.params.changed()
            slope = (ends[0] - ends[1]) / (2 * e)
            scale = np.linalg.norm(grads[name])
            assert scale > 1e-4, name
            assert (grads[name] * direction).sum() == pytest.approx(slope, rel=1e-6, abs=1e-8 + 1e-7 * scale), name


def close(ours, theirs, limit):
    for name, expected in theirs.items():
        assert np.linalg.norm(ours[name] - expected) <= limit * np.linalg.norm(expected), name


@pytest.mark.parametrize("threads", [1, 2])
@every_size
def test_gradients_in_less_precision(sizes, threads):
    wide = model("decoder", **sizes)
    expected, nats = gradient(wide)
    for precision, limit in ("float32", 1e-5), ("bfloat16", 2**-5):
        narrow = model("decoder", values(wide), dtype="float32", precision=precision, threads=threads, **sizes)
        found, loss = gradient(narrow)
        assert loss == pytest.approx(nats, rel=limit)
        close(found, expected, limit)
    assert any((found[name] != expected[name].astype(np.float32)).any() for name in found)


@every_tying
def test_number_of_threads_does_not_matter(tie):
    expected, nats = gradient(model(tie, threads=1))
    for threads in 2, 3, 7:
        found, loss = gradient(model(tie, threads=threads))
        assert loss == pytest.approx(nats, rel=1e-13)
        close(found, expected, 1e-13)


def test_padding_does_not_matter():
    """More padding, and what was in the arrays before, change no bit."""
    m = model(threads=2, hidden=17)
    expected, nats = gradient(m)
    other = gradient(m, lengths=((9, 8),) * 4, seed=9)[0]
    assert any((other[name] != expected[name]).any() for name in other)
    found, loss = gradient(m, more=3)
    assert loss == nats
    close(found, expected, 1e-14)
    given, more = batch(m), batch(m, more=2)
    np.testing.assert_array_equal(m.score(given.ids, given.targets), m.score(more.ids, more.targets)[:-2])
    again, loss = gradient(m)
    assert loss == nats
    for name, array in again.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def test_order_of_sentences_does_not_matter():
    m, order = model(threads=2, hidden=17), np.array([3, 0, 4, 2, 1])
    expected, nats = gradient(m)
    found, loss = gradient(m, order=order)
    assert loss == pytest.approx(nats, rel=1e-14)
    close(found, expected, 1e-13)
    given, other = batch(m), batch(m, order=order)
    np.testing.assert_allclose(
        m.score(given.ids, given.targets)[:, order], m.score(other.ids, other.targets), rtol=1e-13
    )


def test_sentences_do_not_depend_on_their_batch():
    m = model(threads=2, hidden=17)
    given = batch(m)
    together = m.score(given.ids, given.targets)
    for k, (_, T) in enumerate(LENGTHS):
        alone = m.score(given.ids[:, k : k + 1], given.targets[:T, k : k + 1])
        np.testing.assert_allclose(alone[:, 0], together[:T, k], rtol=1e-13)


def test_gradients_accumulate_only_within_a_step():
    m = model("decoder", threads=2)
    once, _ = gradient(m)
    given = batch(m)
    source, step = prepare(given.ids, given.targets, training=True)
    m.network.train(source, step)
    for name in m.params.layout:
        np.testing.assert_allclose(
            m.params.cut(m.params.grads, name), 2 * once[name], rtol=1e-12, atol=1e-15, err_msg=name
        )
