"""Means and intervals over runs, against SciPy and plain loops."""

import itertools
import math

import numpy as np
import pytest
from analogycase import grid, questions
from common import refused
from scipy import stats
from similaritycase import write_set

from tiedtools.evaluation import analogysets, comparison, runsets, shift, similarity, uncertainty
from tiedtools.vectors.edit import aligned_cosines
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
    assert np.isnan(uncertainty.estimate([0.5])[1:3]).all() and uncertainty.estimate([1, 1], [0.2, 1])[1] == 0.6
    shares = uncertainty.estimate([0.9, 0.95, 1.0], fisher=False)
    assert shares == pytest.approx((0.95, 0.95 - 0.05 * stats.t.ppf(0.975, 2), 1, 3))
    # The interval is for the difference of two single runs: variances are not divided by the numbers of runs.
    one, two = RNG.normal(0, 0.1, 7), RNG.normal(0.1, 0.3, 12)
    a, b = one.var(ddof=1), two.var(ddof=1)
    freedom = (a + b) ** 2 / (a**2 / 6 + b**2 / 11)
    reach = stats.t.ppf(0.975, freedom) * np.sqrt(a + b)
    gap = two.mean() - one.mean()
    np.testing.assert_allclose(uncertainty.difference(one, two), [gap, gap - reach, gap + reach, 7])
    np.testing.assert_allclose(uncertainty.difference(one, two, [0.2], [1.9]), [1.7, 1.7 - reach, 2, 7])


def test_neighbors_have_the_cosines_and_ranks_of_each_run():
    runs = some_runs(missing=[(2, 7), (4, 9), (0, 11), (1, 11)])
    named = [answer["neighbor"] for answer in uncertainty.neighbors(runs, [[(7, 1), (5, -1)]], top=V)[0]]
    assert {*WORDS} - {*named} == {"w5", "w7", "w11"}  # the last is in fewer than half of the runs
    (answers,) = uncertainty.neighbors(runs, [[(7, 1), (5, -1)]], top=4)
    plain = np.full((R, V), np.nan)
    for k, row in itertools.product(range(R), range(V)):
        if runs.present[k, [row, 7, 5]].all() and row not in (5, 7):
            units = runs.matrix[k] / np.linalg.norm(runs.matrix[k], axis=1, keepdims=True)
            plain[k, row] = plain_cosine(units[7] - units[5], units[row])
    means = [np.nanmean(column) for column in plain.T if np.isfinite(column).sum() > 2]
    assert [answer["cosine"] for answer in answers] == pytest.approx(sorted(means, reverse=True)[:4], abs=1e-6)
    for answer in answers:
        row = WORDS.index(answer["neighbor"])
        held = [k for k in range(R) if not np.isnan(plain[k, row])]
        ranks = [1 + np.sum(plain[k] > plain[k, row]) for k in held]
        assert answer["runs"] == len(held) == (3 if row == 9 else 4)
        expected = np.percentile(ranks, [2.5, 50, 97.5])
        assert [answer[name] for name in ("rank_low", "rank", "rank_high")] == pytest.approx(expected)
        assert answer["in_top"] == sum(rank <= 4 for rank in ranks)
    runs.matrix[:, 2] = runs.matrix[:, 1]  # of equal cosines, the first has the better rank
    rank = {answer["neighbor"]: answer["rank"] for answer in uncertainty.neighbors(runs, [[(3, 1)]], top=V)[0]}
    assert rank["w2"] == rank["w1"] + 1


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


def test_stability_is_the_mean_share_of_neighbors_of_two_runs(monkeypatch):
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
    monkeypatch.setattr(uncertainty, "BANDS", (1, 11))
    lines, measured = uncertainty.bands(some_runs(missing=[(0, 3)]), sample=1000, seed=1, top=3)
    assert sorted(measured) == list(range(1, V))
    assert len({tuple(uncertainty.bands(few, 3, seed)[1]) for seed in range(3)}) > 1
    for line, rows, ranks in zip(lines, (range(1, 11), range(11, V)), ("1 to 10", "11 to 39"), strict=True):
        shares = [measured[row] for row in rows]
        mean, reach, n = np.mean(shares), 1.96 * np.std(shares, ddof=1) / math.sqrt(len(rows)), len(rows)
        assert (line["ranks"], line["words"], line["least_count"]) == (ranks, n, V - rows[-1])
        assert line["runs_with_word"] == R - (3 in rows) / n
        assert [*line.values()][-3:] == pytest.approx([mean, mean - reach, mean + reach], abs=1e-4)
    assert uncertainty.by_rank(Runs(WORDS[:4], few.matrix, few.present, np.array([9, 1, 0, 5]), {})).tolist() == [3, 1]


def test_change_is_the_cosine_after_alignment(monkeypatch):
    """Runs that are rotations of each other have not changed, except for a word that moved."""
    one = some_runs(runs=3)
    turns = [np.linalg.qr(RNG.standard_normal((E, E)))[0] for _ in range(3)]
    matrix = np.stack([m @ turn for m, turn in zip(one.matrix, turns)]).astype(np.float32)
    matrix[:, 5] *= -1
    lines, only_one, only_two = shift.changes(one, Runs(["a", *WORDS[1:-1], "b"], matrix, one.present, one.counts, {}))
    change = {line["word"]: line["change"] for line in lines}
    same = [aligned_cosines(side[k][1:-1], side[k - 1][1:-1], np.ones(V - 2, bool)) for side in (one.matrix, matrix)
            for k in range(3)]  # fmt: skip
    np.testing.assert_allclose([line["expected"] for line in lines], 1 - np.mean(same, 0), atol=1e-5)
    assert all(line["low"] <= line["change"] <= line["high"] for line in lines)
    assert (only_one, only_two) == ([WORDS[-1]], ["a", "b"]) and max(change, key=change.get) == "w5"
    refused(lambda: shift.changes(one, Runs(WORDS, matrix[..., :-1], one.present, one.counts, {})), "of 6 and of 5")
    mixed = V * np.random.default_rng(4).permutation(V)
    sides = (one.matrix, one.counts), (matrix, mixed)
    single = [Runs(WORDS, side[:1], one.present[:1], counts, {}) for side, counts in sides]
    both = Runs(WORDS, one.matrix, one.present, one.counts, {}, one.matrix[1:] + 1)  # with runs on the whole text
    (line,) = (x for x in shift.changes(both, single[1], align=False)[0] if x["word"] == "w4")
    expected = 1 - np.mean([plain_cosine(whole, matrix[0, 4]) for whole in both.whole[:, 4]])
    assert line["change"] == pytest.approx(expected, abs=1e-5) and np.isnan(line["low"])
    later = Runs(WORDS, matrix, one.present * (np.arange(V) != 6), one.counts, {}, matrix[:2])  # no resample has w6
    sides = (both.matrix, matrix), (both.whole, later.whole)
    sides = [[plain_cosine(a, b) for a, b in zip(first[:, 4], second[:, 4])] for first, second in sides]
    place, _ = (shift.paths({"a": both, "b": later}, [word])[1] for word in ("w4", "w6"))
    assert [place[x] for x in ("cosine", "low", "high")] == pytest.approx(uncertainty.estimate(*sides)[:3], abs=1e-5)
    assert shift.paths({"a": both, "b": single[0], "c": later}, ["w4"])[2] == {**place, "slice": "c"}
    assert np.isnan(shift.paths({"a": both, "b": single[1]}, ["w4"])[1]["low"])  # as in the table of changes
    table = shift.changes(*single, align=False)[0]
    assert len(table) < shift.SIMILAR and len({line["expected"] for line in table}) == 1
    monkeypatch.setattr(shift, "SIMILAR", 5)
    order = np.argsort(-(one.counts + mixed)[1:])
    near = np.array([line["expected"] for line in shift.changes(*single, align=False)[0]])[order].tolist()
    found = np.array([line["change"] for line in table])[order]
    assert near == [np.median(found[k - 2 : k + 3]) for k in np.clip(range(V - 1), 2, V - 4)]
    unknown = Runs(WORDS, one.matrix, one.present, 0 * one.counts, {})
    assert all(math.isnan(line["count_other"]) and line["count"] for line in shift.changes(one, unknown)[0])
    assert change["w5"] > 1.5 and np.median([*change.values()]) < 0.01
    observed, permuted = np.array([0.5, 0.1, np.nan]), RNG.uniform(0, 1, (99, 3))
    permuted[0] = 0.5
    p = shift.permutation_p(observed, permuted)
    assert p[0] == (1 + np.sum(permuted[:, 0] >= 0.5)) / 100 and np.isnan(p[2])
    runs = some_runs(runs=6, missing=[(1, 3)])
    runs.present[0] += np.arange(V)
    lines, only_one, only_two = shift.permutation_changes(runs)
    there = np.arange(1, V) != 3
    sides = [(runs.matrix[k, 1:], runs.matrix[k + 1, 1:]) for k in (0, 2, 4)]
    observed, *permuted = (1 - aligned_cosines(*side, there | (k > 0)) for k, side in enumerate(sides))
    expected = [(f"w{k}", k + 1, 1, observed[k - 1]) for k in range(1, V) if k != 3]
    assert [tuple(line.values())[:4] for line in lines] == expected and (only_one, only_two) == (["w3"], [])
    p = (1 + (np.array(permuted) >= observed).sum(0)) / 3
    assert [line["p"] for line in lines] == p[there].tolist()
    assert [x["q"] for x in shift.adjusted([{"p": p} for p in (0.01, 0.04, 0.03)])] == pytest.approx([0.03, 0.04, 0.04])


def file_of_runs(seed, lost):
    """Return three runs and two on the whole text; the second run lacks a word."""
    words, matrices = grid(0.9, seed).words, np.stack([grid(0.9, k).matrix for k in range(seed, seed + 5)])
    present = np.array([[1] * len(words), [word != lost for word in words], [1] * len(words)])
    return lost, Runs(words, matrices[:3], present, present[0], {}, matrices[3:])


def test_runs_are_evaluated_on_what_all_of_them_cover(tmp_path):
    """Two files are compared on what both cover; words in capitals are unknown "as-is"."""
    files = file_of_runs(3, "x1"), file_of_runs(9, "y2")
    words = [f"{'X' if k == 5 else 'x'}{k}" for k in range(8)]
    triples = [(a, f"y{k}", 7 * k % 5) for a in words for k in range(8)]
    pairs = similarity.read_set(write_set(tmp_path / "set", triples))
    asked = analogysets.AnalogySet(questions(0, 6), {"total": np.ones(30, bool)}, np.full(30, "total"))
    judged = [[similarity.judge(v, pairs, case="as-is") for v in runsets.each(r)] for _, r in files]
    answered = [[analogysets.answer(v, asked, case="as-is") for v in runsets.each(r)] for _, r in files]
    rho, share = lambda j, u: similarity.spearman(pairs.scores[u], j.cosines[u]), lambda a, u: a.right[u].mean()
    tables = runsets.similarities(files, [pairs], "as-is", 200, 1), runsets.analogies(files, asked, None, None, "as-is")
    for line, of_file in zip(tables[0][0], judged):
        used = np.logical_and.reduce([j.known for j in of_file])
        columns = [j.cosines[used] for j in of_file[3:]]
        samples = similarity.bootstrap(pairs.scores[used], columns, 200, pairs.own_seed(1))
        assert (line["pairs_low"], line["pairs_high"]) == similarity.interval(samples.mean(0))
    cases = zip(tables, (judged, answered), (rho, share), ("rho", "accuracy"), (True, False))
    for (rows, gaps), of_files, figure, name, fisher in cases:
        split = lambda of_file, used: np.split([figure(one, used) for one in of_file], [3])
        covers = [np.logical_and.reduce([one.known for one in of_file]) for of_file in of_files]
        for row, of_file, used in zip(rows, of_files, covers, strict=True):
            expected = used.sum(), *uncertainty.estimate(*split(of_file, used), fisher)[:3]
            assert [row[x] for x in ("covered", name, "low", "high")] == pytest.approx(expected)
        (a, a_whole), (b, b_whole) = (split(of_file, covers[0] & covers[1]) for of_file in of_files)
        gap = uncertainty.difference(a, b, a_whole, b_whole, 2 if fisher else 1)[:3]
        assert [*gaps[0].values()][1:5] == pytest.approx([(covers[0] & covers[1]).sum(), *gap])
    runs = Runs([*"Aabc"], np.zeros((2, 4, 1)), np.eye(2, 4, 1), np.eye(4)[0], {})  # no run has A, only the text
    assert runsets.spelled(["ABc"], runs, "fallback") == [("A", "b", None)]
    every = [comparison.compare(a, b, 50, 3, 1) for a, b in zip(*(runsets.each(r, False) for _, r in files))]
    values = [[r["cosines"]["rho"] for r in every], [r["subspaces"]["distance"] for r in every]]
    values += [[r["neighbors"][x]["value"] for r in every] for x in ("share", "jaccard")]
    for k, (line, column) in enumerate(zip(runsets.comparisons(*dict(files).values(), 50, 3, 1), values, strict=True)):
        expected = uncertainty.estimate(column, fisher=k == 0)
        assert [line[x] for x in ("value", "low", "high", "pairs")] == pytest.approx(expected)
