"""Test the words that sampled softmax draws."""

import numpy as np
import pytest

from tiedtools.network.layers.output import SampledSoftmax
from tiedtools.network.params import Params
from tiedtools.network.tables import Lookup
from tiedtools.network.threads import Team

V = 40
COUNTS = np.random.default_rng(1).permutation(V) + 1  # distinct, in random order


def layer(samples):
    params = Params(Team(1))
    return SampledSoftmax(params, Lookup(params, "W", V, 3), samples, COUNTS)


def test_log_uniform_by_rank():
    p = layer(5).probability(np.argsort(-COUNTS))
    assert p.sum() == pytest.approx(1) and (np.diff(p) < 0).all()
    np.testing.assert_allclose(np.cumsum(p), np.log(np.arange(2, V + 2)) / np.log(V + 1))


@pytest.mark.parametrize("samples", [1, 10, 30, V - 1])
def test_samples_are_distinct_with_the_expected_frequencies(samples):
    sampled, N = layer(samples), 3000
    seen, expected = np.zeros(V), np.zeros(V)
    for seed in range(N):
        words, often = sampled.draw(seed)
        assert len(words) == samples == len(set(words.tolist()))
        seen[words] += 1 / N
        expected += often(np.arange(V)) / N
    # The expected counts treat the number of draws as fixed, which is inaccurate if most words are drawn.
    assert abs(seen - expected).max() < (0.03 if samples <= 10 else 0.08)
    by_rank = np.argsort(-COUNTS)
    assert seen[by_rank[0]] > seen[by_rank[-1]]


def test_draws_depend_on_the_seed():
    first, again, other = (layer(10).draw(seed)[0].tolist() for seed in (5, 5, 6))
    assert first == again != other


def test_sample_size_is_limited_to_the_vocabulary():
    assert layer(1000).samples == V - 1
