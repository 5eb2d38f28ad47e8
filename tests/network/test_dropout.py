"""Test the masks of dropout."""

import numpy as np
import pytest

from tiedtools.network.layers.regularization import Dropout
from tiedtools.network.network import Step
from tiedtools.network.params import Params, stride
from tiedtools.network.threads import Team

T, B, n = 10, 20, 45


def mask(drop=0.3, same=(), seed=1, threads=1, shape=(T, B, n)):
    drawn = Dropout(Params(Team(threads), "float32"), "site", drop, same).draw(
        Step(None, seed=lambda site: seed), *shape
    )
    return drawn[..., : shape[2]].copy()


@pytest.mark.parametrize("drop", [0.1, 0.5, 0.8])
def test_dropout_rate_and_scale(drop):
    drawn = mask(drop, shape=(40, 50, 50))
    assert set(np.unique(drawn)) == {0, np.float32(1 / (1 - drop))}
    N = drawn.size
    assert abs((drawn == 0).mean() - drop) < 4 * np.sqrt(drop * (1 - drop) / N)
    for axis in range(3):  # the rate is uniform along each axis
        rate = (drawn == 0).mean(tuple({0, 1, 2} - {axis}))
        assert abs(rate - drop).max() < 5 * np.sqrt(drop * (1 - drop) / (N / drawn.shape[axis]))


@pytest.mark.parametrize(
    "same, shape",
    [((), (T, B, n)), (("steps",), (1, B, n)), (("steps", "sequences"), (1, 1, n)), (("sequences",), (T, 1, n))],
)
def test_masks_are_shared_only_along_the_given_axes(same, shape):
    drawn = mask(same=same)
    assert drawn.shape == shape
    rows = drawn.reshape(-1, n)
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_masks_depend_only_on_the_seed():
    first = mask()
    for threads in 1, 2, 3:
        assert (mask(threads=threads) == first).all()
    others = [mask(seed=seed) for seed in (2, 3, 2**63)]
    for other in others:
        # Independent masks agree in .3^2 + .7^2 = 58% of all elements.
        assert abs((other == first).mean() - 0.58) < 0.03
    assert stride(n, np.float32) != n, "n must need padding"


def test_no_dropout_without_a_seed():
    x = np.ones((T, B, n), np.float32)
    layer = Dropout(Params(Team(1)), "site", 0.5)
    assert layer.forward(x, Step(None)) is x and layer.backward(x) is x
    layer.forward(x, Step(None, seed=lambda site: 1))
    layer.forward(x, Step(None))
    assert layer.backward(x) is x and (x == 1).all(), "the previous mask was applied"
