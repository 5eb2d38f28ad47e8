"""Files of the word vectors of several runs."""

import numpy as np
import pytest
from refusals import refused

import tiedtools as tt
from tiedtools.vectors.runs import Runs, is_runs

WORDS = ["</s>", "a", "b", "c"]


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(1)
    present = np.array([[9, 3, 2, 1], [9, 3, 0, 4], [9, 1, 1, 1]])
    matrix = rng.standard_normal((3, 4, 5)).astype(np.float16)
    with open(tmp_path / "x.runs", "wb") as file:
        Runs(WORDS, matrix, present, np.array([9, 3, 2, 2]), dict(seeds=[1, 2, 3])).save(file)
    return str(tmp_path / "x.runs"), matrix


def test_runs_are_mapped_and_equal(path):
    path, matrix = path
    runs = Runs.read(path)
    assert isinstance(runs.matrix, np.memmap)
    assert is_runs(path)
    assert runs.words == WORDS and runs.training == dict(seeds=[1, 2, 3]) and len(runs) == 3
    np.testing.assert_array_equal(runs.matrix, matrix)
    assert runs.whole.shape == (0, 4, 5)
    loaded = tt.load(path)
    assert isinstance(loaded, Runs)


def test_one_run_is_read_wherever_vectors_are(path, run, tmp_path):
    """A word that its text lacks has no vector."""
    path, matrix = path
    vectors = tt.Vectors.read(f"{path}:2")
    assert vectors.words == ["</s>", "a", "c"]
    np.testing.assert_array_equal(vectors.matrix, matrix[1][[0, 1, 3]].astype(np.float32))
    assert run("convert", f"{path}:1", tmp_path / "one.txt").exit_code == 0
    np.testing.assert_allclose(tt.Vectors.read(tmp_path / "one.txt").matrix, matrix[0], atol=1e-6)


@pytest.mark.parametrize("suffix", ["", ":0", ":4", ":in"])
def test_a_run_must_be_named(path, suffix):
    with pytest.raises(tt.TiedtoolsError) as error:
        tt.Vectors.read(path[0] + suffix)
    assert f"{path[0]}:1" in str(error.value) and f"{path[0]}:3" in str(error.value)


def test_other_files_have_no_runs(tmp_path):
    tt.Word2Vec(size=4, min_count=1, epochs=1, threads=1, sample=0).fit([["a", "b"]] * 20).save(tmp_path / "model.npz")
    assert not is_runs(str(tmp_path / "model.npz"))
    for path in f"{tmp_path}/model.npz:3", f"{tmp_path}/model.npz":
        refused(lambda: tt.Vectors.read(path) if path.endswith("3") else Runs.read(path))


@pytest.mark.parametrize("cut", [10, 200, 700])
def test_truncated_files_are_refused(path, cut):
    data = open(path[0], "rb").read()
    open(path[0], "wb").write(data[:-cut])
    refused(lambda: Runs.read(path[0]))
