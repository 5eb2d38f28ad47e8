"""Test float16 matrices: exact conversion, equal results, and no float32 copy of a mapped matrix."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from tiedtools.evaluation.similarity import SimilaritySet, judge
from tiedtools.vectors import norms
from tiedtools.vectors.neighbors import Candidates, neighbors
from tiedtools.vectors.vectors import Vectors


def make(V=500, E=30):
    matrix = np.random.default_rng(2).standard_normal((V, E)).astype(np.float16)
    return Vectors([f"w{k}" for k in range(V)], matrix)


def test_every_float16_is_widened_exactly():
    half = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    expected = half.astype(np.float32)
    (found,) = (rows for _, rows in norms.blocks(half, half.size))
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found.view(np.uint32)[finite], expected.view(np.uint32)[finite])
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    assert norms.finite_rows(half).tolist() == finite.all(1).tolist()


@pytest.mark.parametrize("name", ["v.npy", "v.safetensors"])
def test_results_are_those_of_float32(tmp_path, monkeypatch, name):
    monkeypatch.setattr(norms, "BLOCK", 1000)
    vectors = make()
    vectors.write(tmp_path / name, dtype="float16")
    half = Vectors.read(tmp_path / name)
    assert half.matrix.dtype == np.float16 and isinstance(half.matrix.base, np.memmap)
    np.testing.assert_array_equal(half.matrix, vectors.matrix)
    whole = Vectors(half.words, half.matrix.astype(np.float32))
    for asked in ["w3", "w7 - w9"], half.words[:20]:  # few, and more than few
        for one, two in zip(*(neighbors(Candidates(v), asked, 5) for v in (half, whole)), strict=True):
            assert [word for word, _ in one] == [word for word, _ in two]
            assert [cosine for _, cosine in one] == pytest.approx([cosine for _, cosine in two], abs=1e-6)
    pairs = SimilaritySet("", "", [("w1", "w2"), ("w4", "none")], np.arange(2.0))
    for oov in "skip", "mean":
        np.testing.assert_allclose(judge(half, pairs, oov).cosines, judge(whole, pairs, oov).cosines, rtol=1e-6)
    assert half["w1"].dtype == np.float32 and half.similarity("w1", "w2") == pytest.approx(whole.similarity("w1", "w2"))
    half.write(tmp_path / "v.txt")
    assert np.abs(Vectors.read(tmp_path / "v.txt").matrix - whole.matrix).max() < 1e-6


def test_a_mapped_matrix_is_never_copied_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(norms, "BLOCK", 1 << 14)
    make(5000, 200).write(tmp_path / "v.npy", dtype="float16")  # 2 MB
    tracemalloc.start()
    vectors = Vectors.read(tmp_path / "v.npy")
    neighbors(Candidates(vectors), ["w1"], 3)
    judge(vectors, SimilaritySet("", "", [("w1", "w2"), ("w3", "none")], np.arange(2.0)), "mean")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < vectors.matrix.nbytes


def test_the_library_reads_float16(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    make().write(tmp_path / "v.safetensors", dtype="float16")
    ((_, matrix),) = numpy.load_file(tmp_path / "v.safetensors").items()
    np.testing.assert_array_equal(matrix, make().matrix)
    make().write(tmp_path / "v.npy", dtype="float16")
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), make().matrix)


def test_what_float16_cannot_hold_is_refused(run, tmp_path):
    Vectors(["a", "b"], [[1, 65519], [1, -65520]]).write(tmp_path / "v.txt")
    for target, options, part in (
        ("h.npy", [], "word 2: 'b' has a value too large for float16"),
        ("h.npy", ["--top", 1], None),
        ("h.bin", [], "--dtype float16: format binary has only float32"),
    ):
        result = run("convert", tmp_path / "v.txt", tmp_path / target, "--dtype", "float16", *options)
        assert (result.exit_code != 0) == bool(part) and (part or "") in result.stderr
    assert Vectors.read(tmp_path / "h.npy").matrix.tolist() == [[1, 65504]]


@pytest.mark.parametrize("command", [["check", "v.npy"], ["nn", "v.npy", "w1"], ["nn", "m", "w1"]])
def test_mapped_matrices_need_no_compiled_code(tmp_path, command):
    make().write(tmp_path / "v.npy", dtype="float16")
    make().write(f"{tmp_path}/m/")
    code = "import sys; from tiedtools.cli import cli\ntry: cli(sys.argv[1:])\nfinally: print('numba' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code, *command], cwd=tmp_path, capture_output=True, text=True)
    assert result.stdout.splitlines()[-1] == "False", result.stderr
