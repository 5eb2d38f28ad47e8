"""Models of fastText that tiedtools writes, float32 and quantized, read by fastText, gensim, and tiedtools."""

import io

import numpy as np
import pytest
from fasttextcase import WORDS, model
from refusals import refused

from tiedtools.base.errors import Contradiction
from tiedtools.kernels.text import nearest as kernels
from tiedtools.vectors.fasttextwriter import write_model
from tiedtools.vectors.quantized import kmeans, quantize
from tiedtools.vectors.vectors import Vectors

UNSEEN = ["wherever", "Füßen", "Straßenbahn"]


def random(rows, E=10, seed=0):
    """Return rows around 50 points, of different lengths."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((50, E))[rng.integers(50, size=rows)] + rng.standard_normal((rows, E)) / 9
    return (points * rng.uniform(0.5, 2, (rows, 1))).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    """A model with n-grams, and counts."""
    V, bucket = len(WORDS), 30
    with open(tmp_path / "m.bin", "wb") as file:
        counts, outputs = 10 - np.arange(V), random(V, seed=1)
        write_model(file, WORDS, random(V + bucket), counts, outputs, minn=3, maxn=5, bucket=bucket, t=1e-3)
    return str(tmp_path / "m.bin")


def test_fasttext_reads_what_is_written(path, tmp_path):
    fasttext = pytest.importorskip("fasttext")
    ours, theirs = Vectors.read(path), fasttext.load_model(path)
    assert theirs.get_words() == WORDS == list(ours.words)
    assert theirs.get_words(include_freq=True)[1].tolist() == ours.matrix.counts().tolist()
    for word in WORDS + UNSEEN:
        np.testing.assert_allclose(theirs.get_word_vector(word), ours.compose([word])[word], atol=1e-6)
    np.testing.assert_array_equal(theirs.get_output_matrix(), random(len(WORDS), seed=1))
    Vectors(WORDS, random(len(WORDS))).write(tmp_path / "whole.bin", "fasttext")
    theirs = fasttext.load_model(str(tmp_path / "whole.bin"))
    np.testing.assert_allclose([theirs.get_word_vector(word) for word in WORDS], random(len(WORDS)), atol=1e-6)


def test_gensim_reads_what_is_written(path, tmp_path):
    models = pytest.importorskip("gensim.models.fasttext")
    ours, theirs = Vectors.read(path), models.load_facebook_model(path)
    assert theirs.wv.index_to_key == WORDS
    for word in [*WORDS[1:], *UNSEEN]:  # gensim gives </s> n-grams
        np.testing.assert_allclose(theirs.wv[word], ours.compose([word])[word], atol=1e-6)
    np.testing.assert_array_equal(theirs.syn1neg, random(len(WORDS), seed=1))
    theirs.build_vocab([UNSEEN] * 9, update=True)  # it can be trained further
    theirs.train([[*UNSEEN, *WORDS]] * 9, total_examples=9, epochs=1)


def test_a_model_keeps_its_n_grams(run, tmp_path):
    path, copy = tmp_path / "m.bin", tmp_path / "copy.bin"
    path.write_bytes(model()[0])
    run("convert", path, copy, "--to", "fasttext")
    assert copy.read_bytes() == path.read_bytes()
    run("convert", path, tmp_path / "part.bin", "--to", "fasttext", "--top", 3)
    assert not Vectors.read(tmp_path / "part.bin").composes
    np.testing.assert_array_equal(Vectors.read(tmp_path / "part.bin").matrix, Vectors.read(path).matrix[:3])
    path.write_bytes(model(kept={3: 0})[0])  # fastText itself reads pruned models only if they are quantized
    run("convert", path, copy, "--to", "fasttext")
    np.testing.assert_array_equal(Vectors.read(copy).matrix, Vectors.read(path).matrix)


@pytest.mark.parametrize("n", [300, 100])  # more and fewer rows than centroids
def test_fasttext_reads_quantized_vectors(run, tmp_path, n):
    vectors = Vectors([f"w{k}" for k in range(n)], random(n))
    vectors.write(tmp_path / "v.txt")
    result = run("convert", tmp_path / "v.txt", tmp_path / "v.ftz", "--quantize")
    assert result.exit_code == 0 and (tmp_path / "v.ftz").read_bytes()[4] == 12
    ours = Vectors.read(tmp_path / "v.ftz")
    cosines = (ours.matrix[:] * vectors.matrix).sum(1) / np.linalg.norm(ours.matrix, axis=1)
    assert (cosines / np.linalg.norm(vectors.matrix, axis=1)).mean() > 0.98
    fasttext = pytest.importorskip("fasttext")
    theirs = fasttext.load_model(str(tmp_path / "v.ftz"))
    assert theirs.is_quantized() and theirs.get_words() == list(vectors.words)
    np.testing.assert_allclose(ours.matrix, [theirs.get_word_vector(word) for word in vectors.words], atol=1e-6)
    neighbors = [word for _, word in theirs.get_nearest_neighbors("w0", 5)]
    assert neighbors == [word for word, _ in ours.most_similar("w0", topn=5)]


def test_quantized_models_compose(path, tmp_path):
    Vectors.read(path).write(tmp_path / "m.ftz", quantize=True)
    ours, exact = Vectors.read(tmp_path / "m.ftz"), Vectors.read(path)
    for word in WORDS + UNSEEN:
        np.testing.assert_allclose(ours.compose([word])[word], exact.compose([word])[word], atol=0.05)
    fasttext = pytest.importorskip("fasttext")
    theirs = fasttext.load_model(str(tmp_path / "m.ftz"))
    for word in WORDS + UNSEEN:
        np.testing.assert_allclose(ours.compose([word])[word], theirs.get_word_vector(word), atol=1e-6)


def test_only_fasttext_is_quantized(tmp_path):
    vectors = Vectors(["a"], [[1, 2]])
    for name, options in ("v.txt", {"quantize": True}), ("v.ftz", {}), ("v.ftz", {"format": "text"}):
        refused(lambda: vectors.write(tmp_path / name, **options), name, kind=Contradiction)


def test_the_number_of_rows_must_fit():
    with pytest.raises(ValueError, match="7 rows for 7 words and 5 buckets"):
        write_model(io.BytesIO(), WORDS, random(len(WORDS)), bucket=5)


def test_nearest_is_the_nearest_of_the_definition():
    rows, centroids = random(999, 3), random(256, 3, 1)
    codes, distances = np.empty(999, np.uint8), np.empty(256, np.float32)
    kernels.nearest(codes, distances, distances.view(np.int32), rows, np.ascontiguousarray(centroids.T))
    exact = np.square(rows[:, None] - centroids).sum(2)
    assert (exact[np.arange(999), codes] <= exact.min(1) * (1 + 2**-14) + 1e-12).all()


def test_k_means_lowers_the_error():
    rows = random(2000, 3)
    errors = []
    for iterations in 0, 1, 15:
        centroids = kmeans(rows, rows[:256], iterations)
        errors.append(np.square(rows[:, None] - centroids).sum(2).min(1).mean())
    assert errors[0] > errors[1] > errors[2]


def test_norms_are_quantized_apart():
    matrix = random(300)
    matrix[0] = 0
    quantized = quantize(matrix)
    read = quantized.read(np.arange(300)).view(np.float32)
    np.testing.assert_allclose(np.linalg.norm(read, axis=1)[1:], np.linalg.norm(matrix, axis=1)[1:], rtol=0.1)
    file = io.BytesIO()
    quantized.write(file)
    again = type(quantized).parse(np.frombuffer(file.getvalue(), np.uint8), 0, 10)
    assert again.end == len(file.getvalue()) and again.read(np.arange(300)).tobytes() == read.tobytes()
