"""What a sentence changes is the gradient of its loss: finite differences for every parameter."""

import numpy as np
import pytest
from rnnlmcase import DOC, model, referred, score, text, values

PLAIN = dict(sentences=True, learn_start=True, defer=True, cutoff=0.0)
DOCUMENT = dict(PLAIN, doc_dim=3, start_doc="sum")
OPTIONS = {
    "without document": PLAIN,
    "wide": dict(PLAIN, hidden=17, V=23, classes=4),
    "document that stays": dict(DOCUMENT, doc_lr=0.0),
    "document that stays, features": dict(DOCUMENT, doc_lr=0.0, direct=300),
    "document that moves": dict(DOCUMENT, doc_lr=0.3),
    "document that moves, features": dict(DOCUMENT, doc_lr=0.3, direct=300, hidden=17),
}
LR = 1e-3


def sentence(m):
    ids = text(12, len(m.vocab), ends=0.0)
    ids[[3, 8]] = -1, ids[6]  # a word outside the vocabulary, and one twice
    return ids


def gradient(m, ids):
    """Of the sum of log probabilities, by name; the parameters stay."""
    before = values(m)
    m.learn(ids, LR)
    found = {name: (array - before[name]) / LR for name, array in values(m).items()}
    for name, array in m.params.owners():
        array[:] = before[name]
    return found


def difference(m, ids, name, way, docs=None, e=1e-5):
    """Along a direction. docs: the document vectors are these, and move with start_doc alone."""
    array, ends = m.params[name], []
    middle = array.copy()
    for side in e, -e:
        array[:] = middle + side * way
        if docs is None:
            ends.append(score(m, ids).sum())
        else:
            ends.append(referred(m)(ids, docs=docs + (side * way if name == "start_doc" else 0))[0].sum())
    array[:] = middle
    return (ends[0] - ends[1]) / (2 * e)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_gradients_by_finite_differences(options):
    """What moves the document vector is no part of the gradient: there each word has the vector it was scored with."""
    m = model(**options)
    ids, rng = sentence(m), np.random.default_rng(1)
    ours = gradient(m, ids)
    docs = referred(m)(ids)[1] if options.get("doc_lr") else None
    for name, array in m.params.owners():
        for _ in range(5):
            way = rng.normal(size=array.shape)
            expected = difference(m, ids, name, way, docs)
            assert (ours[name] * way).sum() == pytest.approx(expected, rel=1e-6, abs=1e-7), name
        assert np.abs(ours[name]).max() > 1e-3, name


def test_gradients_by_finite_differences_one_by_one():
    """Each start vector, and a column of each matrix."""
    m = model(**dict(DOCUMENT, doc_lr=0.0))
    ids = sentence(m)
    ours = gradient(m, ids)
    for name, array in m.params.owners():
        flat = np.arange(array.size).reshape(array.shape)
        for k in flat.ravel() if array.ndim == 1 else flat[:, 2]:
            way = np.zeros(array.shape)
            way.flat[k] = 1
            assert ours[name].flat[k] == pytest.approx(difference(m, ids, name, way), rel=1e-6, abs=1e-7), (name, k)


def test_start_document_gradients_are_of_one_sum():
    ids = sentence(model(**DOC))
    found = {kind: gradient(model(**{**DOCUMENT, "start_doc": kind}), ids) for kind in ("sum", "mean", "first")}
    predicted = np.count_nonzero(ids >= 0)
    np.testing.assert_allclose(found["mean"]["start_doc"], found["sum"]["start_doc"] / predicted, rtol=1e-8)
    m = model(**DOCUMENT)
    one_word = [difference(m, ids[:1], "start_doc", way) for way in np.eye(3)]
    np.testing.assert_allclose(found["first"]["start_doc"], one_word, rtol=1e-6)
    for kind in "mean", "first":
        np.testing.assert_array_equal(found[kind]["word_out"], found["sum"]["word_out"])
