"""Test the update by one sentence against finite differences of its loss, for every parameter."""

import numpy as np
import pytest
from rnnlmcase import DOC, model, referred, score, text, values

PLAIN = dict(sentences=True, learn_start=True, defer=True, cutoff=0.0)
DOCUMENT = dict(PLAIN, doc_dim=3, start_doc="sum")
OPTIONS = {
    "no document vector": PLAIN,
    "wide": dict(PLAIN, hidden=17, V=23, classes=4),
    "fixed document vector": dict(DOCUMENT, doc_lr=0.0),
    "fixed document vector, n-grams": dict(DOCUMENT, doc_lr=0.0, direct=300),
    "updated document vector": dict(DOCUMENT, doc_lr=0.3),
    "updated document vector, n-grams": dict(DOCUMENT, doc_lr=0.3, direct=300, hidden=17),
}
LR = 1e-3


def sentence(m):
    ids = text(12, len(m.vocab), ends=0.0)
    ids[[3, 8]] = -1, ids[6]  # an out-of-vocabulary word and a repeated word
    return ids


def gradient(m, ids):
    """Return the gradient of the sum of log probabilities, by name; parameters are restored."""
    before = values(m)
    m.learn(ids, LR)
    found = {name: (array - before[name]) / LR for name, array in values(m).items()}
    for name, array in m.params.owners():
        array[:] = before[name]
    return found


def difference(m, ids, name, way, docs=None, e=1e-5):
    """Return the slope along a direction. `docs` fixes the document vectors except for changes of start_doc."""
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
def test_gradients_match_finite_differences(options):
    """Document-vector updates are not differentiated: each word keeps the vector it was scored with."""
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


def test_single_elements_match_finite_differences():
    """Checks all elements of start vectors and one column of each matrix."""
    m = model(**dict(DOCUMENT, doc_lr=0.0))
    ids = sentence(m)
    ours = gradient(m, ids)
    for name, array in m.params.owners():
        flat = np.arange(array.size).reshape(array.shape)
        for k in flat.ravel() if array.ndim == 1 else flat[:, 2]:
            way = np.zeros(array.shape)
            way.flat[k] = 1
            assert ours[name].flat[k] == pytest.approx(difference(m, ids, name, way), rel=1e-6, abs=1e-7), (name, k)


def test_start_doc_gradient_is_the_sum_mean_or_first_term():
    ids = sentence(model(**DOC))
    found = {kind: gradient(model(**{**DOCUMENT, "start_doc": kind}), ids) for kind in ("sum", "mean", "first")}
    predicted = np.count_nonzero(ids >= 0)
    np.testing.assert_allclose(found["mean"]["start_doc"], found["sum"]["start_doc"] / predicted, rtol=1e-8)
    m = model(**DOCUMENT)
    one_word = [difference(m, ids[:1], "start_doc", way) for way in np.eye(3)]
    np.testing.assert_allclose(found["first"]["start_doc"], one_word, rtol=1e-6)
    for kind in "mean", "first":
        np.testing.assert_array_equal(found[kind]["word_out"], found["sum"]["word_out"])
