"""Test measures of how similar two sets of vectors are, and principal components."""

import json
import math

import numpy as np
import pytest
from common import refused
from scipy import stats

from tiedtools.evaluation import comparison
from tiedtools.evaluation.comparison import (
    compare,
    retained_variance,
    shared_neighbors,
    spearman_of_cosines,
    subspace_distance,
)
from tiedtools.vectors import norms
from tiedtools.vectors.vectors import Vectors


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def named(matrix):
    return Vectors([f"w{k}" for k in range(len(matrix))], matrix)


@pytest.fixture
def files(tmp_path):
    """Return two files of related vectors, with 60 and 50 words, 40 of them in common."""
    matrix, noise = normal(60, 8), normal(60, 8, seed=2)
    paths = tmp_path / "a.txt", tmp_path / "b.txt"
    words = [f"w{k}" for k in range(70)]
    return write(paths[0], Vectors(words[:60], matrix)), write(paths[1], Vectors(words[20:], (matrix + noise)[10:]))


# Words


def test_words_in_common_in_the_order_of_the_first():
    one = Vectors(["a", "b", "c", "a"], [[1], [2], [3], [4]])
    two = Vectors(["c", "x", "a"], [[5], [6], [7]])
    first, second = comparison.in_common(one, two)
    assert first.words == second.words == ["a", "c"]
    assert (first.matrix.ravel().tolist(), second.matrix.ravel().tolist()) == ([1, 3], [7, 5])
    refused(lambda: comparison.in_common(one, Vectors(["b", "B"], [[5], [6]])), "1 word in common, too few")


# Cosines


def cosines(matrix):
    norms = np.linalg.norm(matrix.astype(float), axis=1, keepdims=True)
    unit = matrix / np.where(norms, norms, 1)
    return (unit @ unit.T)[np.triu_indices(len(unit), 1)]


@pytest.mark.parametrize("block", [1, 1000, 1 << 22])
def test_rho_of_all_pairs_agrees_with_scipy(monkeypatch, block):
    monkeypatch.setattr(comparison, "BLOCK", block)
    one = normal(90, 7) * np.arange(1, 91)[:, None]
    for two in (normal(90, 5, seed=2), one[:, :6] + 1, -one[:, :2], np.vstack([one[:80], 0 * one[80:]])):
        two = two.astype(np.float32)
        expected = stats.spearmanr(cosines(one), cosines(two)).statistic
        assert spearman_of_cosines(one.astype(np.float32), two)["rho"] == pytest.approx(expected, abs=1e-6)


def test_rho_is_1_for_equal_angles_and_nan_for_constant_cosines():
    one = normal(50, 6)
    assert spearman_of_cosines(one, one)["rho"] == pytest.approx(1, abs=1e-12)
    rotated = one @ np.linalg.qr(normal(6, 6, seed=3))[0].astype(np.float32) * 5
    assert spearman_of_cosines(one, rotated)["rho"] == pytest.approx(1, abs=1e-6)
    tiny = np.rint(1e4 * one) * np.float32(2.0**-149)
    assert spearman_of_cosines(one, tiny)["rho"] == pytest.approx(1, abs=1e-5)
    undefined = spearman_of_cosines(one, np.ones((50, 2), np.float32), 60)
    assert all(map(math.isnan, undefined.values()))


def related(V=400):
    """Return vectors with a fifth of the words in a cluster, so that pairs that share a word are correlated."""
    one = normal(V, 6) + 2 * (np.arange(V) % 5 == 0)[:, None]
    return one.astype(np.float32), one + normal(V, 6, seed=2) * np.arange(V)[:, None] / V * 3


@pytest.mark.parametrize("block", [1, 1000, 1 << 22])
def test_the_interval_of_rho_matches_the_infinitesimal_jackknife_over_words(monkeypatch, block):
    """A word's influence is the derivative of rho with respect to the weight of its pairs; ties get their mean rank."""
    monkeypatch.setattr(comparison, "BLOCK", block)
    one, two = (matrix[:30] * (np.arange(30) % k > 0)[:, None] for matrix, k in zip(related(), (3, 7)))
    x, y, eps, V = cosines(one), cosines(two), 1e-5, 90

    def rho(word):
        weights = np.ones((30, 30))
        weights[word] += eps
        weights[:, word] += eps
        weights = weights[np.triu_indices(30, 1)]
        ranks = [(weights * ((a[:, None] > a) + (a[:, None] == a) / 2)).sum(1) for a in (x, y)]
        a, b = (rank - (weights @ rank) / weights.sum() for rank in ranks)
        return weights @ (a * b) / np.sqrt((weights @ a**2) * (weights @ b**2))

    whole = stats.spearmanr(x, y).statistic
    slopes = np.array([(rho(word) - whole) / eps for word in range(30)])
    error = math.sqrt(30 * slopes.var(ddof=1) * (1 - 30 / V))
    found = spearman_of_cosines(one, two, V)
    assert found["rho"] == pytest.approx(whole, abs=1e-5)
    assert [found["low"], found["high"]] == pytest.approx([whole - 1.96 * error, whole + 1.96 * error], abs=3e-5)
    assert spearman_of_cosines(one, two, 30) == {"rho": found["rho"], "low": None, "high": None}


# Subspaces


@pytest.mark.parametrize("block", [1, 100, 1 << 22])
def test_subspace_distance_matches_the_definition(monkeypatch, block):
    monkeypatch.setattr(norms, "BLOCK", block)
    one, two = normal(40, 6), np.hstack([normal(40, 5)[:, :2], normal(40, 3, seed=2)])
    U, Q = np.linalg.qr(one)[0], np.linalg.qr(two)[0]
    R = Q - U @ U.T @ Q
    found = subspace_distance(one, two)
    assert (found["rank"], found["rank_other"]) == (6, 5)
    assert found["distance"] == pytest.approx(np.linalg.norm(R) / math.sqrt(5), rel=1e-5)
    assert subspace_distance(two, one)["distance"] == pytest.approx(found["distance"], rel=1e-9)


def test_special_subspaces():
    one = normal(40, 6)
    mixed = one.astype(float) @ (normal(6, 6, seed=2) * 10.0 ** np.arange(-3, 3))  # badly scaled
    assert subspace_distance(one.astype(float), mixed)["distance"] < 1e-6
    assert subspace_distance(one, one[:, :2])["distance"] < 1e-6
    whole = np.linalg.qr(normal(40, 10))[0]
    assert subspace_distance(whole[:, :5], whole[:, 5:])["distance"] == pytest.approx(1, abs=1e-9)
    doubled = np.hstack([one, one[:, :3] + one[:, 3:], np.zeros((40, 2), np.float32)])
    found = subspace_distance(doubled, one)
    assert (found["rank"], found["rank_other"]) == (6, 6) and found["distance"] < 1e-6
    nothing = subspace_distance(np.zeros((40, 3)), one)
    assert nothing["rank"] == 0 and math.isnan(nothing["distance"])
    found = [subspace_distance(normal(50, 12, seed=k), normal(50, 9, seed=k + 100)) for k in range(50)]
    assert {f["random"] for f in found} == {math.sqrt(1 - 12 / 50)}
    assert np.sqrt(np.mean([f["distance"] ** 2 for f in found])) == pytest.approx(found[0]["random"], abs=0.02)


# Neighbors


def test_shared_neighbors_and_their_interval():
    angles = lambda *degrees: np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], 1)
    one, two = named(angles(0, 10, 30, 90)), named(angles(0, 10, 90, 30))
    # Neighbors of w0: {w1, w2} and {w1, w3}; of w1: {w0, w2} and {w0, w3}.
    values = lambda *arguments: [measure["value"] for measure in shared_neighbors(*arguments).values()]
    assert values(one, two, ["w0", "w1"], 2) == [0.5, pytest.approx(1 / 3)]
    assert values(one, one, one.words, 2) == [1, 1] and values(one, two, ["w0"], 99) == [1, 1]
    one, two = named(normal(60, 5)), named(normal(60, 5) + normal(60, 5, seed=2))
    parts = [shared_neighbors(one, two, [word])["share"]["value"] for word in one.words[:20]]
    error = np.std(parts, ddof=1) / math.sqrt(20) * math.sqrt(2 / 3)  # a sample of 20 of 60 words
    share = shared_neighbors(one, two, one.words[:20])["share"]
    expected = {"value": np.mean(parts), "low": np.mean(parts) - 1.96 * error, "high": np.mean(parts) + 1.96 * error}
    assert share == pytest.approx(expected, abs=1e-4)
    assert shared_neighbors(one, two, one.words)["share"] | {"value": 0} == {"value": 0, "low": None, "high": None}


# The whole comparison


def test_a_sample_has_the_requested_size_and_depends_on_the_seed(monkeypatch):
    one, two = named(normal(200, 5)), named(normal(200, 5) + normal(200, 5, seed=2))
    whole = compare(one, two)
    assert whole["cosines"] == {"words": 200, "pairs": 19900, **spearman_of_cosines(one.matrix, two.matrix)}
    assert whole["neighbors"] == {"words": 200, "top": 10, **shared_neighbors(one, two, one.words)}
    assert whole == compare(one, two, limit=200, seed=5)
    monkeypatch.setattr(comparison, "QUERIES", 30)
    few, again, other = (compare(one, two, 100, seed=seed) for seed in (1, 1, 2))
    assert few == again and few["cosines"]["rho"] != other["cosines"]["rho"] != whole["cosines"]["rho"]
    assert (few["cosines"]["words"], few["cosines"]["pairs"]) == (100, 4950)
    queries = [f"w{row}" for row in np.sort(np.random.default_rng(1).permutation(200)[:30])]  # not the most frequent
    assert few["neighbors"] == {"words": 30, "top": 10, **shared_neighbors(one, two, queries)}
    assert few["subspaces"] == whole["subspaces"]


def test_table_and_json_agree(run, files, tmp_path, monkeypatch):
    (a, b), words = files, tmp_path / "toy.set"
    words.write_text("".join(f"w{k} w{k * 7 % 40 + 21} {k % 5}\n" for k in range(25, 50)))
    table = run("compare", a, b, "--set", words, "-k", 3)
    answer = json.loads(run("compare", a, b, "--set", words, "-k", 3, "--json").stdout)
    assert table.exit_code == 0 and table.stderr == ""
    one, two = comparison.in_common(Vectors.read(a), Vectors.read(b))
    assert (answer["a"], answer["words"], answer["words_other"], answer["common"]) == (str(a), 60, 50, 40)
    assert answer["cosines"] == {"words": 40, "pairs": 780, **spearman_of_cosines(one.matrix, two.matrix)}
    assert answer["subspaces"] == subspace_distance(one.matrix, two.matrix)
    assert answer["neighbors"] == {"words": 40, "top": 3, **shared_neighbors(one, two, one.words, 3)}
    measures, differences = (block.splitlines() for block in table.stdout.split("\n\n"))
    policy = {"seed": 1, "interval": 0.95, "oov": "skip", "case": "fallback", "bootstrap": 1000}
    settings = dict(words=60, words_other=50, common=40, rank=8, rank_other=8, top=3, **policy)
    assert measures[0] == f"# {' '.join(f'{name}={value}' for name, value in settings.items())}"
    assert {key: answer[key] for key in policy} == policy and answer["set_paths"] == {str(words): str(words)}
    spaces, near = answer["subspaces"], answer["neighbors"]
    values = {"cosines_rho": answer["cosines"]["rho"], "subspace_distance": spaces["distance"]}
    values |= {"subspace_random": spaces["random"], "neighbors_shared": near["share"]["value"]}
    values |= {"neighbors_jaccard": near["jaccard"]["value"]}
    header, *cells = (line.split() for line in measures[1:])
    assert header == ["measure", "value", "low", "high", "words"]
    assert cells == [[name, f"{value:.4f}", "-", "-", "40"] for name, value in values.items()]
    expected = json.loads(run("eval-sim", a, b, "--set", words, "--json").stdout)["differences"]
    assert answer["differences"] == expected
    assert differences == run("eval-sim", a, b, "--set", words).stdout.split("\n\n")[1].splitlines()
    monkeypatch.setattr(comparison, "QUERIES", 20)
    answer = json.loads(run("compare", *files, "--words", 30, "--json").stdout)
    lines = [line.split() for line in run("compare", *files, "--words", 30).stdout.splitlines()[2:]]
    measures = {name: cells for name, *cells in lines}
    near = answer["neighbors"]
    assert answer["set_paths"] == {} and "oov" not in answer
    for name, value, found, words in (
        ("cosines_rho", answer["cosines"]["rho"], answer["cosines"], "30"),
        ("neighbors_shared", near["share"]["value"], near["share"], "20"),
        ("neighbors_jaccard", near["jaccard"]["value"], near["jaccard"], "20"),
    ):
        assert found["low"] < value < found["high"]
        assert measures[name] == [*(f"{number:.4f}" for number in (value, found["low"], found["high"])), words]


def spectrum(*deviations, V=400):
    """Return vectors with these relative standard deviations along orthogonal directions and a nonzero mean."""
    rows = np.linalg.qr(normal(V, len(deviations)) - normal(V, len(deviations)).mean(0))[0] * deviations
    rotation = np.linalg.qr(normal(len(deviations), len(deviations), seed=2))[0]
    return Vectors([f"w{k}" for k in range(V)], (rows @ rotation + 7).astype(np.float32))


def write(path, vectors):
    vectors.write(path, "text")
    return path


@pytest.mark.parametrize("block", [1, 100, 1 << 22])
def test_retained_variance_matches_the_singular_values(monkeypatch, block):
    monkeypatch.setattr(norms, "BLOCK", block)
    matrix = normal(90, 12) * np.arange(1, 13) + 5
    squares = np.linalg.svd(matrix - matrix.mean(0), compute_uv=False) ** 2
    np.testing.assert_allclose(retained_variance(matrix), np.cumsum(squares) / squares.sum(), rtol=1e-6)


def test_components_by_hand():
    retained = retained_variance(spectrum(3, 2, 1, 1, 1).matrix)  # variances 9 4 1 1 1
    np.testing.assert_allclose(retained, np.array([9, 13, 14, 15, 16]) / 16, atol=1e-4)
    assert comparison.components_for(retained) == [1, 2, 4, 5, 5]
    assert comparison.components_for(np.array([0.5, 0.75, 1.0]), [0.5, 0.75, 1.0]) == [1, 2, 3]
    assert comparison.components_for(retained_variance(np.ones((5, 3), np.float32))) == [None] * 5


def test_maps_are_the_plane_of_maximum_variance_and_ignore_norms():
    matrix = normal(60, 5) * [1, 9, 1, 1, 4]
    points, shares = comparison.plane(matrix)
    squares = np.linalg.svd(matrix - matrix.mean(0), compute_uv=False) ** 2
    np.testing.assert_allclose((points**2).sum(0), squares[:2], rtol=1e-6)
    np.testing.assert_allclose(shares, squares[:2] / squares.sum(), rtol=1e-6)
    np.testing.assert_allclose(np.corrcoef(points.T, (matrix[:, [1, 4]]).T)[:2, 2:], np.eye(2), atol=0.2)
    np.testing.assert_allclose(comparison.plane(matrix[:, :1])[0][:, 1], 0, atol=1e-9)
    vectors = Vectors(list("abcd"), normal(4, 3))
    longer = Vectors(list("abcd"), vectors.matrix * np.array([[1], [2], [3], [4]]))
    (one, names), (two, _) = (comparison.word_map(each.matrix[[0, 1, 3]]) for each in (vectors, longer))
    np.testing.assert_allclose(one, two, atol=1e-6)
    assert names[0].startswith("1st principal component, ") and one.shape == (3, 2)
    whole = np.rint(1000 * vectors.matrix)
    one, tiny = (comparison.word_map(whole * np.float32(size))[0] for size in (1, 2.0**-149))
    np.testing.assert_allclose(one, tiny, atol=1e-6)
    refused(lambda: comparison.word_map(vectors.matrix[:2]), "three words or more, not 2")


@pytest.mark.parametrize("method, package", [("tsne", "sklearn"), ("umap", "umap")])
def test_projections_keep_clusters_together(method, package):
    pytest.importorskip(package)
    matrix = np.repeat(np.eye(3, 8), 10, 0) + 0.05 * normal(30, 8)
    points, _ = comparison.word_map(matrix, method)
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (distances.argmin(1) // 10 == np.arange(30) // 10).all()
    np.testing.assert_array_equal(points, comparison.word_map(matrix, method)[0])


@pytest.mark.parametrize("method, module, package", [("tsne", "sklearn.manifold", "scikit-learn"), ("umap",) * 3])
def test_projections_without_their_package(monkeypatch, method, module, package):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    refused(lambda: comparison.word_map(normal(3, 4), method), f"pip install {package}", "or choose pca")


# Command line


def test_components_of_tables(run, tmp_path):
    one, two = write(tmp_path / "one", spectrum(3, 2, 1, 1, 1)), write(tmp_path / "two", spectrum(1, 0, 0))
    table = run("pca", one, two)
    assert table.exit_code == 0 and table.stderr == ""
    assert [line.split() for line in table.stdout.splitlines()] == [
        ["words", "dim", "50%", "75%", "90%", "95%", "99%", "file"],
        ["400", "5", "1", "2", "4", "5", "5", str(one)],
        ["400", "3", "1", "1", "1", "1", "1", str(two)],
    ]
    results = json.loads(run("pca", one, two, "--json").stdout)["results"]
    assert [result["file"] for result in results] == [str(one), str(two)]
    assert results[0]["components"] == {"50%": 1, "75%": 2, "90%": 4, "95%": 5, "99%": 5}
    assert results[0]["retained"] == retained_variance(Vectors.read(one).matrix).tolist()
    lines = run("pca", one, two, "--components").stdout.splitlines()
    assert lines[:2] == [f"{one}\t{k}\t{results[0]['retained'][k - 1]:.6f}" for k in (1, 2)] and len(lines) == 8
    assert run("pca", "-", input=one.read_bytes()).stdout.split()[-2:] == ["5", "-"]
    path = write(tmp_path / "v", Vectors(list("abc"), np.ones((3, 2))))
    assert run("pca", path).stdout.splitlines()[1].split() == ["3", "2", *"-----", str(path)]
    assert json.loads(run("pca", path, "--json").stdout)["results"][0]["retained"] == [None, None]
    assert math.isnan(retained_variance(Vectors.read(path).matrix)[0])
