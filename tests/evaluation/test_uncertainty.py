"""Means and intervals over runs, against SciPy and plain loops."""

import itertools
import math

import numpy as np
import pytest
from common import refused
from scipy import stats

from tiedtools.evaluation import shift, uncertainty
from tiedtools.vectors.runs import Runs

R, V, E = 5, 40, 6
RNG = np.random.default_rng(3)
WORDS = ["</s>", *(f"w{k}" for k in range(1, V))]


def some_runs(rng=RNG, runs=R, missing=()):
    base = rng.standard_normal((V, E))
    matrix = (base + 0.5 * rng.standard_normal((runs, V, E))).astype(np.float32)
    present = np.ones((runs, V), np.int64)
    for run, row in missing:
        present[run, row] = 0
    return Runs(WORDS, matrix, present, np.arange(V, 0, -1), {})


def plain_cosine(a, b):
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_intervals_of_means_and_differences():
    values = RNG.uniform(-0.9, 0.9, 12)
    z = np.arctanh(values)
    ends = np.tanh(z.mean() + np.array(stats.t.interval(0.95, 11)) * z.std(ddof=1))
    found = uncertainty.estimate([*values, np.nan])
    np.testing.assert_allclose(found, [values.mean(), *ends, 12], rtol=1e-8)
    whole = uncertainty.estimate([*values, np.nan], [0.2, 0.4])
    ends = np.tanh(np.arctanh([0.2, 0.4]).mean() + np.array(stats.t.interval(0.95, 11)) * z.std(ddof=1))
    np.testing.assert_allclose(whole, [0.3, *ends, 12], rtol=1e-8)
    many = RNG.uniform(0, 1, 40)
    np.testing.assert_allclose(uncertainty.estimate(many)[1:3], np.tanh(np.percentile(np.arctanh(many), [2.5, 97.5])))
    middle = np.arctanh(many).mean()
    shifted = np.tanh(np.percentile(np.arctanh(many), [2.5, 97.5]) - middle)
    np.testing.assert_allclose(uncertainty.estimate(many, [0.0])[1:3], shifted)
    assert np.isnan(uncertainty.estimate([0.5])[1:3]).all()
    # The interval is for the difference of two single runs: variances are not divided by the numbers of runs.
    one, two = RNG.normal(0, 1, 7), RNG.normal(1, 3, 12)
    a, b = one.var(ddof=1), two.var(ddof=1)
    freedom = (a + b) ** 2 / (a**2 / 6 + b**2 / 11)
    reach = stats.t.ppf(0.975, freedom) * np.sqrt(a + b)
    gap = two.mean() - one.mean()
    np.testing.assert_allclose(uncertainty.difference(one, two), [gap, gap - reach, gap + reach, 7])
    np.testing.assert_allclose(uncertainty.difference(one, two, [2.0], [5.0]), [3, 3 - reach, 3 + reach, 7])


def test_neighbors_have_the_cosines_and_ranks_of_each_run():
    runs = some_runs(missing=[(2, 7), (4, 9)])
    (answers,) = uncertainty.neighbors(runs, [[(7, 1), (5, -1)]], top=4)
    plain = np.full((R, V), np.nan)
    for k, row in itertools.product(range(R), range(V)):
        if runs.present[k, [row, 7, 5]].all() and row not in (5, 7):
            units = runs.matrix[k] / np.linalg.norm(runs.matrix[k], axis=1, keepdims=True)
            plain[k, row] = plain_cosine(units[7] - units[5], units[row])
    means = np.array([np.mean(column[~np.isnan(column)]) for column in plain.T if not np.isnan(column).all()])
    assert [answer["cosine"] for answer in answers] == pytest.approx(sorted(means, reverse=True)[:4], abs=1e-6)
    for answer in answers:
        row = WORDS.index(answer["neighbor"])
        held = [k for k in range(R) if not np.isnan(plain[k, row])]
        ranks = [1 + np.sum(plain[k] > plain[k, row]) for k in held]
        assert answer["runs"] == len(held) == (3 if row == 9 else 4)
        assert answer["rank"] == np.median(ranks)
        assert answer["in_top"] == sum(rank <= 4 for rank in ranks)


def test_neighbors_and_cosines_of_sums():
    runs = some_runs()
    whole = RNG.standard_normal((2, V, E)).astype(np.float32)
    both = Runs(runs.words, runs.matrix, runs.present, runs.counts, {}, whole)
    (answers,) = uncertainty.neighbors(both, [[(7, 1)]], top=V)
    means = {row: np.mean([plain_cosine(m[7], m[row]) for m in whole]) for row in range(V) if row != 7}
    assert [answer["neighbor"] for answer in answers] == [WORDS[row] for row in sorted(means, key=lambda k: -means[k])]
    assert answers[0]["cosine"] == pytest.approx(max(means.values()), abs=1e-6)
    alone = uncertainty.neighbors(runs, [[(7, 1)]], top=V)[0]
    frequent = uncertainty.neighbors(runs, [[(7, 1)]], top=V, counts=runs.counts[::-1], least=8)
    some = Runs(WORDS[7:], runs.matrix[:, 7:], runs.present[:, 7:], runs.counts[7:], {})
    ranks = ([(a["neighbor"], a["rank"]) for a in x[0]] for x in (frequent, uncertainty.neighbors(some, [[(0, 1)]], V)))
    assert next(ranks) == next(ranks)  # rare words have no rank
    assert {a["neighbor"]: a["rank"] for a in answers} == {a["neighbor"]: a["rank"] for a in alone}
    runs = some_runs(missing=[(1, 3)])
    values = uncertainty.cosine_of(runs, [(2, 1)], [(3, 1), (4, -1)])
    units = [matrix / np.linalg.norm(matrix, axis=1, keepdims=True) for matrix in runs.matrix]
    expected = [plain_cosine(u[2], u[3] - u[4]) for u in units]
    assert np.isnan(values[1])
    np.testing.assert_allclose(np.delete(values, 1), np.delete(expected, 1), atol=1e-6)


def test_stability_is_the_mean_share_of_neighbors_of_two_runs():
    few = some_runs(runs=2, missing=[(run, row) for run in (0, 1) for row in range(4, V) if row % 2 == run])
    assert uncertainty.stability(few, [2], V - 1) == pytest.approx(3 / (V - 1))  # words 0, 1, and 3 are in both runs
    runs, top = some_runs(missing=[(0, 2), (3, 8)]), 3
    shares = uncertainty.stability(runs, [2, 6], top)
    for row, share in zip((2, 6), shares):
        sets = []
        for k in range(R):
            if runs.present[k, row]:
                others = [n for n in range(V) if n != row and runs.present[k, n]]
                nearest = sorted(others, key=lambda n: -plain_cosine(runs.matrix[k, row], runs.matrix[k, n]))[:top]
                sets.append(set(nearest))
        assert share == pytest.approx(np.mean([len(a & b) / top for a, b in itertools.combinations(sets, 2)]))
    lines, measured = uncertainty.bands(some_runs(), sample=1000, seed=1, top=3)
    assert [line["words"] for line in lines] == [V - 1]
    assert sorted(measured) == list(range(1, V))
    assert lines[0]["shared"] == pytest.approx(np.mean([*measured.values()]))


def test_change_is_the_cosine_after_alignment():
    """Runs that are rotations of each other have not changed, except for a word that moved."""
    one = some_runs(runs=3)
    turns = [np.linalg.qr(RNG.standard_normal((E, E)))[0] for _ in range(3)]
    matrix = np.stack([m @ turn for m, turn in zip(one.matrix, turns)]).astype(np.float32)
    matrix[:, 5] *= -1
    lines, only_one, only_two = shift.changes(one, Runs([*WORDS[:-1], "new"], matrix, one.present, one.counts, {}))
    change = {line["word"]: line["change"] for line in lines}
    assert (only_one, only_two) == ([WORDS[-1]], ["new"]) and max(change, key=change.get) == "w5"
    refused(lambda: shift.changes(one, Runs(WORDS, matrix[..., :-1], one.present, one.counts, {})), "of 6 and of 5")
    single = [Runs(WORDS, side[:1], one.present[:1], one.counts, {}) for side in (one.matrix, matrix)]
    both = Runs(WORDS, one.matrix, one.present, one.counts, {}, one.matrix[1:] + 1)  # with runs on the whole text
    (line,) = (x for x in shift.changes(both, single[1], align=False)[0] if x["word"] == "w4")
    expected = 1 - np.mean([plain_cosine(whole, matrix[0, 4]) for whole in both.whole[:, 4]])
    assert line["change"] == pytest.approx(expected, abs=1e-5) and np.isnan(line["low"])
    table = shift.changes(*single, align=False)[0]
    assert len(table) < shift.SIMILAR and len({line["expected"] for line in table}) == 1
    unknown = Runs(WORDS, one.matrix, one.present, 0 * one.counts, {})
    assert all(math.isnan(line["count_other"]) and line["count"] for line in shift.changes(one, unknown)[0])
    assert change["w5"] > 1.5 and np.median([*change.values()]) < 0.01
    observed, permuted = np.array([0.5, 0.1, np.nan]), RNG.uniform(0, 1, (99, 3))
    p = shift.permutation_p(observed, permuted)
    assert p[0] == (1 + np.sum(permuted[:, 0] >= 0.5)) / 100 and np.isnan(p[2])
