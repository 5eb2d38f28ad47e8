"""Test the encoders of composed word tables against plain NumPy: outputs of all and of some words, and gradients."""

import functools

import numpy as np
import pytest
from subwordcase import FILTERS, Made, V, convolved

from tiedtools.network.encoders import CharCNN, MorphSum, SylConcat
from tiedtools.network.network import Step
from tiedtools.network.params import Params, Start
from tiedtools.network.threads import Team

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


@pytest.mark.parametrize(
    "threads, dtype, tolerance", [(1, "float64", 1e-12), (3, "float64", 1e-12), (2, "float32", 1e-5)]
)
@every_encoder
def test_output(name, threads, dtype, tolerance):
    params, layer, every_row = encoder(name, threads, dtype)
    for words in CHOICES:
        layer.forward(every_row - 1, STEP)  # a larger set of words leaves nothing behind
        rows = every_row if words is None else every_row[words]
        y = layer.forward(rows - 1, STEP)
        theirs = expected(name, params, rows)
        width = theirs.shape[1]
        assert y.shape[:2] == (1, len(theirs)) and not y[..., width:].any()
        np.testing.assert_allclose(y[0, :, :width], theirs, rtol=tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("words, threads", list(zip(CHOICES, (3, 1, 2, 2))), ids=str)
@every_encoder
def test_gradients_match_finite_differences_and_accumulate(name, words, threads):
    params, layer, rows = encoder(name, threads)
    chosen = rows if words is None else rows[words]
    y = layer.forward(chosen - 1, STEP)
    dy, rng, e = np.zeros_like(y), np.random.default_rng(5), 1e-5
    n = expected(name, params, rows[:1]).shape[1]
    dy[..., :n] = rng.normal(size=(1, y.shape[1], n))
    params.grads[:] = np.nan  # the first gradient of a step overwrites
    params.begin_step()
    layer.backward(dy.copy())
    first = params.grads.copy()
    for key, array in params.owners():
        ours, middle = params.cut(params.grads, key).copy(), array.copy()
        direction, ends = rng.normal(size=array.shape), []
        for side in e, -e:
            array[:] = middle + side * direction
            ends.append((expected(name, params, chosen) * dy[0, :, :n]).sum())
        array[:] = middle
        assert (ours * direction).sum() == pytest.approx((ends[0] - ends[1]) / (2 * e), rel=1e-6, abs=1e-7), key
    layer.forward(chosen - 1, STEP)
    layer.backward(dy.copy())
    np.testing.assert_allclose(params.grads, 2 * first, rtol=1e-12)


def test_words_shorter_than_the_widest_filter_are_padded():
    params, layer, rows = encoder("charcnn", longest=2)
    padded = np.concatenate([rows, np.zeros((V, len(FILTERS) - 2), int)], 1)
    np.testing.assert_allclose(layer.forward(rows - 1, STEP)[0, :, : sum(FILTERS)], expected("charcnn", params, padded))
