"""Test principal components, word maps, and `tiedtools pca`."""

import json
import math

import numpy as np
import pytest

from tiedtools.base.errors import TiedtoolsError
from tiedtools.evaluation.comparison import components_for, plane, retained_variance, word_map
from tiedtools.vectors import norms
from tiedtools.vectors.vectors import Vectors


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def spectrum(*deviations, V=400):
    """Return vectors with these relative standard deviations along orthogonal directions and a nonzero mean."""
    rows = np.linalg.qr(normal(V, len(deviations)) - normal(V, len(deviations)).mean(0))[0] * deviations
    rotation = np.linalg.qr(normal(len(deviations), len(deviations), seed=2))[0]
    return Vectors([f"w{k}" for k in range(V)], (rows @ rotation + 7).astype(np.float32))


def write(path, vectors):
    with open(path, "wb") as file:
        vectors.write_stream(file, "text")
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
    assert components_for(retained) == [1, 2, 4, 5, 5]
    assert components_for(np.array([0.5, 0.75, 1.0]), [0.5, 0.75, 1.0]) == [1, 2, 3]
    assert components_for(retained_variance(np.ones((5, 3), np.float32))) == [None] * 5


def test_a_map_is_the_plane_of_maximum_variance():
    matrix = normal(60, 5) * [1, 9, 1, 1, 4]
    points, shares = plane(matrix)
    squares = np.linalg.svd(matrix - matrix.mean(0), compute_uv=False) ** 2
    np.testing.assert_allclose((points**2).sum(0), squares[:2], rtol=1e-6)
    np.testing.assert_allclose(shares, squares[:2] / squares.sum(), rtol=1e-6)
    np.testing.assert_allclose(np.corrcoef(points.T, (matrix[:, [1, 4]]).T)[:2, 2:], np.eye(2), atol=0.2)
    np.testing.assert_allclose(plane(matrix[:, :1])[0][:, 1], 0, atol=1e-9)


def test_maps_ignore_vector_norms():
    vectors = Vectors(list("abcd"), normal(4, 3))
    longer = Vectors(list("abcd"), vectors.matrix * np.array([[1], [2], [3], [4]]))
    (one, names), (two, _) = (word_map(each.matrix[[0, 1, 3]]) for each in (vectors, longer))
    np.testing.assert_allclose(one, two, atol=1e-6)
    assert names[0].startswith("1st principal component, ") and one.shape == (3, 2)
    whole = np.rint(1000 * vectors.matrix)
    one, tiny = (word_map(whole * np.float32(size))[0] for size in (1, 2.0**-149))
    np.testing.assert_allclose(one, tiny, atol=1e-6)
    with pytest.raises(TiedtoolsError, match="2 words are too few for a map"):
        word_map(vectors.matrix[:2])


@pytest.mark.parametrize("method, package", [("tsne", "sklearn"), ("umap", "umap")])
def test_projections_keep_clusters_together(method, package):
    pytest.importorskip(package)
    matrix = np.repeat(np.eye(3, 8), 10, 0) + 0.05 * normal(30, 8)
    points, _ = word_map(matrix, method)
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (distances.argmin(1) // 10 == np.arange(30) // 10).all()
    np.testing.assert_array_equal(points, word_map(matrix, method)[0])


@pytest.mark.parametrize("method, module, package", [("tsne", "sklearn.manifold", "scikit-learn"), ("umap",) * 3])
def test_projections_without_their_package(monkeypatch, method, module, package):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(TiedtoolsError, match=f"pip install {package}"):
        word_map(normal(3, 4), method)


# Command line


def test_table_curves_and_json_agree(run, tmp_path):
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


def test_equal_vectors_have_no_components(run, tmp_path):
    path = write(tmp_path / "v", Vectors(list("abc"), np.ones((3, 2))))
    assert run("pca", path).stdout.splitlines()[1].split() == ["3", "2", *"-----", str(path)]
    assert json.loads(run("pca", path, "--json").stdout)["results"][0]["retained"] == [None, None]
    assert math.isnan(retained_variance(Vectors.read(path).matrix)[0])


def test_errors_are_one_line(run, tmp_path):
    path = write(tmp_path / "v", spectrum(2, 1))
    for args, message, status in (
        (["-", "-"], "standard input can be read only once", 2),
        ([path, "--json", "--components"], "--json includes the curves", 2),
        ([path, "--plot", tmp_path / "x.pdf"], "x.pdf: plots are written as PNG or SVG", 2),
        ([tmp_path / "none"], "none", 1),
        ([], "VECTORS", 2),
    ):
        result = run("pca", *args, input=b"")
        assert result.exit_code == status and result.stdout == ""
        assert message in result.stderr and result.stderr.count("\n") == 1
