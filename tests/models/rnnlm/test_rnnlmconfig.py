"""Test RNN language model configurations, the costs in Rei's Table 1, and word classes."""

import numpy as np
import pytest
import rnnlmreference as reference
from benchmarks.rnnlmlimits import expected_class_size
from modelsizes import rnnlm_operations, rnnlm_params
from refusals import refused

from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import word_classes


@pytest.mark.parametrize(
    "hidden, doc_dim, params, operations",
    [(100, 0, 0, 0), (120, 0, 666_960, 7_400), (100, 20, 332_300, 6_000), (135, 0, 1_167_705, 13_475)]
    + [(100, 35, 581_525, 10_500)],
)
def test_costs_above_the_baseline_match_table_1_of_rei(hidden, doc_dim, params, operations):
    baseline, more = RnnlmConfig(hidden=100), RnnlmConfig(hidden=hidden, doc_dim=doc_dim)
    assert rnnlm_params(more, 16_514) - rnnlm_params(baseline, 16_514) == params
    assert rnnlm_operations(more, 50) - rnnlm_operations(baseline, 50) == operations


def test_costs_of_a_small_model():
    assert rnnlm_params(RnnlmConfig(hidden=3, classes=5), 11) == 3 * 5 + 2 * 3 * 11 + 9
    assert rnnlm_operations(RnnlmConfig(hidden=3, classes=5), 2.5) == 9 + 15 + 7.5


def zipf(V, total):
    return np.maximum(total / np.arange(1, V + 1) / np.log(V), 1).astype(np.int64)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 30, 100, 1000])
def test_word_classes_match_reference(n, old):
    rng = np.random.default_rng(n)
    drawn = np.sort(rng.integers(1, 10**6, 200))[::-1]
    steep = np.array([900, 50, 20, 7, 5, 3, 2, 1, 1, 1])
    ends_first = np.concatenate([[40], zipf(300, 10**5)])  # </s> is first whatever its count
    for counts in drawn, zipf(300, 10**5), steep, ends_first:
        bounds, swept = word_classes(counts, n, old), reference.word_classes(counts, n, old)
        assert bounds.dtype == np.int64 and len(bounds) <= n + 1
        assert np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)).tolist() == swept
        assert (np.diff(bounds) > 0).all()


def test_the_word_that_crosses_a_bound_belongs_to_the_class():
    assert word_classes(np.array([5, 2, 2, 1]), 2, old=True).tolist() == [0, 2, 4]
    assert word_classes(np.array([6, 2, 1, 1]), 2, old=True).tolist() == [0, 1, 4]
    assert word_classes(np.array([16, 4, 4, 4]), 3).tolist() == [0, 1, 3, 4]
    assert word_classes(np.array([16, 4, 4, 4]), 3, old=True).tolist() == [0, 1, 2, 4]
    assert word_classes(np.array([5]), 100).tolist() == [0, 1]


def test_expected_class_size_matches_rei():
    """About 50 words for classes by square roots of counts; classes of equal counts would give V / C = 165."""
    counts = zipf(16_514, 10**7)
    assert 40 < expected_class_size(counts, word_classes(counts, 100)) < 65
    assert 150 < expected_class_size(counts, word_classes(counts, 100, old=True)) < 180
    counts = np.array([10, 6, 3, 1])
    assert expected_class_size(counts, np.array([0, 1, 4])) == pytest.approx(0.5 * 1 + 0.5 * 3)


def test_sentences_implies_independent():
    assert RnnlmConfig(sentences=True).independent and not RnnlmConfig().independent
    RnnlmConfig(sentences=True, learn_start=True, shuffle=True), RnnlmConfig(independent=True, shuffle=True)


@pytest.mark.parametrize("options, message", [
    (dict(direct=1), "`direct` must be 0 or at least 2"), (dict(learn_start=True), "add `independent`"),
    (dict(shuffle=True), "add `independent`"),
])  # fmt: skip
def test_invalid_combinations_are_rejected(options, message):
    refused(lambda: RnnlmConfig(**options), message)
