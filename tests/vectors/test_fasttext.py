"""Test models of fastText: read as fastText reads them, refused if damaged, written, and composed."""

import io
import json
import struct
import tracemalloc

import numpy as np
import pytest
from common import refused
from fasttextcase import WORDS, model, rows_of, vector

import tiedtools as tt
from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.evaluation.documents import FastTextSentences
from tiedtools.kernels.text import nearest as kernels
from tiedtools.vectors import fasttext as module
from tiedtools.vectors import norms
from tiedtools.vectors.check import Check
from tiedtools.vectors.fasttextwriter import write_model
from tiedtools.vectors.quantized import kmeans, quantize
from tiedtools.vectors.vectors import Vectors

TEXT = (
    """the covariance matrix of the variables was Füße né Straße and the vectors of words were equal
naïve readers saw 日本語 and the the matrix of the matrices variable by variable where they were
"""
    * 40
)
UNSEEN = ["wherever", "Füßen", "日本語テキスト", "matrixes", "zq", "q", "</s>", "vari" * 30]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "m.bin").write_bytes(model()[0])
    return str(tmp_path / "m.bin")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """Models that fastText trained: {name: path}."""
    fasttext = pytest.importorskip("fasttext")
    folder = tmp_path_factory.mktemp("models")
    (text := folder / "text").write_text(TEXT)
    # With fewer than ten threads, fastText leaves a part of the matrix uninitialized.
    small = dict(dim=10, minCount=1, epoch=2, thread=10, verbose=0, bucket=1000)
    fasttext.train_unsupervised(str(text), "skipgram", minn=2, maxn=4, **small).save_model(str(folder / "sg.bin"))
    fasttext.train_unsupervised(str(text), "cbow", maxn=0, **small).save_model(str(folder / "whole.bin"))
    text.write_text("".join(f"__label__{k % 2} {line}\n" for k, line in enumerate(TEXT.splitlines())))
    supervised = fasttext.train_supervised(str(text), wordNgrams=3, minn=2, maxn=3, **small)
    supervised.save_model(str(folder / "sup.bin"))
    for name, cutoff in ("all.ftz", 0), ("pruned.ftz", 300):
        supervised.quantize(str(text), cutoff=cutoff, qnorm=True, dsub=3, retrain=False)
        supervised.save_model(str(folder / name))
        supervised = fasttext.load_model(str(folder / "sup.bin"))
    return {path.name: str(path) for path in folder.iterdir() if path != text}


def test_vectors_are_those_of_the_definition(path, tmp_path):
    _, matrix, settings = model()
    vectors = Vectors.read(path)
    assert list(vectors.words) == WORDS and list(vectors.index.items()) == [(w, k) for k, w in enumerate(WORDS)]
    expected = np.array([vector(word, WORDS, matrix, settings) for word in WORDS])
    np.testing.assert_allclose(vectors.matrix, expected, rtol=1e-6)
    for key in 2, -1, slice(1, 5, 2), [[3, 0], [0, -2]], np.array([], int):
        np.testing.assert_allclose(vectors.matrix[key], expected[key], rtol=1e-6)
    composed = vectors.compose(["Straßen", "b", "zz", "where"])
    for word in composed.words:
        np.testing.assert_allclose(composed[word], vector(word, WORDS, matrix, settings), rtol=1e-6)
    assert composed.words == ["Straßen", "b", "zz", "where"] and "zz" not in vectors and "" not in vectors
    refused(lambda: vectors.matrix[len(WORDS)], kind=IndexError)
    data, *_ = model(matrix=matrix * (np.arange(len(matrix)) < len(WORDS))[:, None])  # no n-gram was trained
    (tmp_path / "m.bin").write_bytes(data)
    assert Vectors.read(tmp_path / "m.bin").compose(["b", "where"]).words == ["where"]
    data, matrix, _ = model([*WORDS, "new york"], header=dict(version=11, model=3), labels=["__label__a"])
    (tmp_path / "m.bin").write_bytes(data)
    vectors = Vectors.read(tmp_path / "m.bin")
    np.testing.assert_array_equal(vectors.matrix, matrix[: len(WORDS) + 1])
    assert not vectors.composes and "__label__a" not in vectors and "new york" in vectors


@pytest.mark.parametrize("kept", [{3: 1, 17: 0, 5: 2}, {}])
def test_n_grams_that_were_pruned_have_no_row(tmp_path, kept):
    data, matrix, settings = model(kept=kept, minn=1)
    (tmp_path / "m.bin").write_bytes(data)
    vectors = Vectors.read(tmp_path / "m.bin")
    expected = [vector(word, WORDS, matrix, settings) for word in WORDS]
    np.testing.assert_allclose(vectors.matrix, np.array(expected), rtol=1e-6)
    assert vectors.composes == bool(kept)
    if kept:
        known = [word for word in UNSEEN if rows_of(word, WORDS, *settings)]
        assert vectors.compose(UNSEEN).words == known != UNSEEN


@pytest.mark.parametrize("name", ["sg.bin", "whole.bin", "sup.bin", "all.ftz", "pruned.ftz"])
def test_vectors_equal_those_of_fasttext(theirs, name):
    import fasttext

    ours, oracle = Vectors.read(theirs[name]), fasttext.load_model(theirs[name])
    assert list(ours.words) == oracle.get_words()
    expected = [oracle.get_word_vector(word) for word in ours.words]
    np.testing.assert_allclose(ours.matrix, np.array(expected), rtol=0, atol=1e-6)
    if ours.composes:
        composed = ours.compose(UNSEEN)
        for word in UNSEEN:
            vector = composed[word] if word in composed else np.zeros(10)
            np.testing.assert_allclose(vector, oracle.get_word_vector(word), atol=1e-6)
        assert (len(composed) < len(UNSEEN)) == (name == "pruned.ftz")
    np.testing.assert_array_equal(ours.matrix.counts(), oracle.get_words(include_freq=True)[1])
    lines = [*TEXT.splitlines()[:2], "", "unseen words", "the </s> matrix", "__label__1 the __label__zz matrix"]
    expected = [oracle.get_sentence_vector(line) for line in lines]
    np.testing.assert_allclose(ours.matrix.sentences([line.encode().split() for line in lines]), expected, atol=1e-6)


def test_docvec_is_the_sentence_vector(run, theirs, tmp_path):
    import fasttext

    lines = [*TEXT.splitlines()[:2], "", "the matrix"]
    for name in "sg.bin", "sup.bin":
        result = run("docvec", theirs[name], "--json", input="\n".join(lines).encode())
        oracle = fasttext.load_model(theirs[name])
        for line, row in zip(lines, map(json.loads, result.stdout.splitlines()), strict=True):
            np.testing.assert_allclose(row["vector"], oracle.get_sentence_vector(line), atol=1e-6)
        documents = run("docvec", theirs[name], "--unit", "doc", "--json", input="\n".join(lines).encode())
        first = json.loads(documents.stdout.splitlines()[0])["vector"]
        np.testing.assert_allclose(first, oracle.get_sentence_vector(" ".join(lines[:2])), atol=1e-6)


def test_commands_compose_unseen_words(run, path, tmp_path):
    words, pairs = tmp_path / "words", tmp_path / "pairs"
    words.write_text("wherever\nthe\nzz\n")
    pairs.write_text("where the 1\nwherever Füße 2\nzz né 3\na the 4\n")
    result = run("convert", path, "-", "--words", words)
    assert [line.split()[0] for line in result.stdout.splitlines()[1:]] == ["wherever", "the", "zz"]
    result = run("eval-sim", path, "--set", pairs, "--oov", "compose", "--json", "--bootstrap", 0)
    assert json.loads(result.stdout)["results"][0]["sets"][0]["covered"] == 4
    assert tt.evaluate_similarity(tt.load(path), pairs, oov="compose", bootstrap=0)["sets"][0]["covered"] == 4
    for asked in [path, "wherever", "the"], [path, "wherever - the"]:
        result = run("nn", *asked, "-k", 2)
        assert (result.exit_code, result.stderr) == (0, "")
        assert not {line.split("\t")[1] for line in result.stdout.splitlines()} & {"wherever"}
    result = run("nn", path, "the", "--counts", "--min-count", 8)
    assert [line.split("\t")[1::2] for line in result.stdout.splitlines()] == [["</s>", "9"], ["where", "8"]]
    assert run("analogy", path, "where", "the", "wherever", "-k", 1).exit_code == 0
    assert run("cosine", path, "the", "where").exit_code == run("shift", path, path).exit_code == 0
    for command in ["pca", path], ["compare", path, path], ["check", path], ["convert", path, tmp_path / "v.npy"]:
        assert run(*command).exit_code == 0, command
    assert run("convert", path, tmp_path / "v.safetensors").exit_code == 0  # with the same list of words
    for step in (path, tmp_path / "q.ftz", "--quantize"), (tmp_path / "q.ftz", tmp_path / "q.bin", "--to", "fasttext"):
        assert run("convert", *step).exit_code == 0
    assert Vectors.read(tmp_path / "q.bin").counts.tolist() == Vectors.read(path).counts.tolist()
    np.testing.assert_array_equal(Vectors.read(path).to_frame(), Vectors.read(path).matrix)
    np.testing.assert_array_equal(Vectors.read(tmp_path / "v.npy").matrix, Vectors.read(path).matrix)
    assert run("convert", path, tmp_path / "half.npy", "--dtype", "float16").exit_code == 0
    assert np.array_equal(Vectors.read(tmp_path / "half.npy").matrix, np.float16(np.asarray(Vectors.read(path).matrix)))
    for options in [], ["--sif", 0.1]:
        assert run("similar", path, words, "--query", "wherever the \udcff", *options).exit_code == 0, options
    text, source = io.BytesIO(b"the matrix of words\n" * 40_000), FastTextSentences(Vectors.read(path))
    tracemalloc.start()
    source.encode(text)
    assert tracemalloc.get_traced_memory()[1] < 16e6  # the words of the text, in lists, take 30 MB
    tracemalloc.stop()


def test_blocks_and_neighbors_of_a_lazy_matrix(monkeypatch, path):
    monkeypatch.setattr(norms, "BLOCK", 6)
    lazy = Vectors.read(path)
    whole = Vectors(list(lazy.words), np.asarray(lazy.matrix))
    mask = np.arange(len(WORDS)) % 2 == 1
    np.testing.assert_array_equal(lazy.matrix[mask], whole.matrix[mask])
    refused(lambda: lazy.matrix[0, 1], "rows", kind=IndexError)
    for word in WORDS:
        for (one, a), (two, b) in zip(lazy.most_similar(word, topn=4), whole.most_similar(word, topn=4), strict=True):
            assert one == two and a == pytest.approx(b, abs=1e-6)
    whole = np.asarray(Vectors.read(path).matrix)
    for owner, name, value in (module, "FEW", 0), (norms, "BLOCK", 6), (module, "ROOM", 8):
        monkeypatch.setattr(owner, name, value)
        vectors = Vectors.read(path)
        for matrix in np.asarray(vectors.matrix), vectors.matrix[np.arange(len(WORDS))]:
            assert matrix.tobytes() == whole.tobytes()


def damaged():
    """Yield (name, bytes of a damaged model)."""
    data, matrix, _ = model()
    wrong = dict(version=13, dim=0, bucket=-1, maxn=1 << 30, size=1 << 30, nwords=-1, nlabels=2**31 - 1, pruned=-2)
    for name, value in wrong.items():
        yield name, model(header={name: value})[0]
    yield "rows", data.replace(struct.pack("<qq", *matrix.shape), struct.pack("<qq", 2**62, 3))
    yield "cut", data[:-1]
    yield "long", data + b"\0"
    yield "word without an end", data[: 92 + 3]
    word, label = (b"where\0" + struct.pack("<qB", 8, kind) for kind in (0, 1))
    yield "label among words", data.replace(word, label)
    yield "repeated", model(["a", "b", "a"])[0]
    yield "empty word", model(["a", ""])[0]
    yield "tab", model(["a", "b\tc"])[0]
    yield "pruned twice", model(kept={3: 0, 4: 0})[0].replace(struct.pack("<2i", 4, 0), struct.pack("<2i", 3, 1))
    yield "pruned row", model(kept={3: 2**30})[0]


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in damaged()])
def test_damaged_models_are_refused_in_one_line(run, tmp_path, data):
    (path := tmp_path / "m.bin").write_bytes(data)
    with pytest.raises(TiedtoolsError, match="m.bin: is not a whole fastText model: .*; get the whole file") as error:
        Vectors.read(path)
    assert "\n" not in str(error.value) and Check(str(path)).problems.keys() == {"unreadable"}


def test_words_and_values_that_are_wrong_are_reported_when_they_are_needed(run, tmp_path):
    data, matrix, _ = model()
    matrix = matrix.copy()
    matrix[3] = np.nan
    (path := tmp_path / "m.bin").write_bytes(model(matrix=matrix)[0].replace(b"where\0", b"wh\xffre\0"))
    vectors = Vectors.read(path)
    refused(lambda: vectors.words[1], "m.bin: row 2: the word ", " is not UTF-8; ", "errors='replace'")
    refused(lambda: np.asarray(vectors.matrix), "m.bin: row 4: 'né' has a value that is nan or infinite")
    refused(lambda: vectors.compose(["né"]), "m.bin: 'né' has a value that is nan or infinite")
    refused(lambda: vectors.matrix.sentences([["né".encode()]]), "m.bin: 'n", "has a value that is nan or infinite")
    assert Check(str(path)).problems.keys() == {"encoding", "not finite"}
    assert Vectors.read(path, skip_bad=True).words == [word for word in WORDS if word not in ("where", "né")]
    replaced = Vectors.read(path, errors="replace")
    Vectors.read(path, errors="ignore")  # changes nothing in others
    assert replaced.words[1] == "wh\ufffdre" and [*replaced.index.values()] == [*range(len(WORDS))]
    refused(lambda: Vectors.read(path, errors="repalce"), "repalce")
    path.write_bytes(data.replace("né\0".encode(), b"n\xff\xff\0"))
    rank, others = Vectors.read(path, errors="replace").rank, [word for word in WORDS if word != "né"]
    assert max(rank(one, other) for one in others for other in others) >= len(others) - 1
    assert "\t-\n" in run("nn", path, "the", "--counts", "--errors", "replace").stdout
    assert run("plot", "words", path, "--errors", "replace", "--output", tmp_path / "w.svg").exit_code == 0


NEW_WORDS = ["wherever", "Füßen", "Straßenbahn"]


def random(rows, E=10, seed=0):
    """Return rows around 50 points, of different lengths."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((50, E))[rng.integers(50, size=rows)] + rng.standard_normal((rows, E)) / 9
    return (points * rng.uniform(0.5, 2, (rows, 1))).astype(np.float32)


@pytest.fixture
def saved(tmp_path):
    """A model with n-grams, and counts."""
    V, bucket = len(WORDS), 30
    with open(tmp_path / "m.bin", "wb") as file:
        counts, outputs = 10 - np.arange(V), random(V, seed=1)
        write_model(file, WORDS, random(V + bucket), counts, outputs, minn=3, maxn=5, bucket=bucket, t=1e-3)
    return str(tmp_path / "m.bin")


def test_fasttext_reads_what_is_written(saved, tmp_path):
    fasttext = pytest.importorskip("fasttext")
    ours, theirs = Vectors.read(saved), fasttext.load_model(saved)
    assert theirs.get_words() == WORDS == list(ours.words)
    assert theirs.get_words(include_freq=True)[1].tolist() == ours.matrix.counts().tolist()
    for word in WORDS + NEW_WORDS:
        np.testing.assert_allclose(theirs.get_word_vector(word), ours.compose([word])[word], atol=1e-6)
    np.testing.assert_array_equal(theirs.get_output_matrix(), random(len(WORDS), seed=1))
    Vectors(WORDS, random(len(WORDS))).write(tmp_path / "whole.bin", "fasttext")
    Vectors(["a", "b", "a"], random(3)).write(tmp_path / "repeated.bin", "fasttext")
    assert [*Vectors.read(tmp_path / "repeated.bin").words] == ["a", "b"]
    theirs = fasttext.load_model(str(tmp_path / "whole.bin"))
    np.testing.assert_allclose([theirs.get_word_vector(word) for word in WORDS], random(len(WORDS)), atol=1e-6)


def test_gensim_reads_what_is_written(saved, tmp_path):
    models = pytest.importorskip("gensim.models.fasttext")
    ours, theirs = Vectors.read(saved), models.load_facebook_model(saved)
    assert theirs.wv.index_to_key == WORDS
    for word in [*WORDS[1:], *NEW_WORDS]:  # gensim gives </s> n-grams
        np.testing.assert_allclose(theirs.wv[word], ours.compose([word])[word], atol=1e-6)
    np.testing.assert_array_equal(theirs.syn1neg, random(len(WORDS), seed=1))
    theirs.build_vocab([NEW_WORDS] * 9, update=True)  # it can be trained further
    theirs.train([[*NEW_WORDS, *WORDS]] * 9, total_examples=9, epochs=1)


def test_a_model_keeps_its_n_grams(run, tmp_path):
    saved, copy = tmp_path / "m.bin", tmp_path / "copy.bin"
    saved.write_bytes(model()[0])
    run("convert", saved, copy, "--to", "fasttext")
    assert copy.read_bytes() == saved.read_bytes()
    run("convert", saved, tmp_path / "part.bin", "--to", "fasttext", "--top", 3, "--normalize")
    part = Vectors.read(tmp_path / "part.bin")
    assert not part.composes and part.counts.tolist() == [9, 8, 7]
    np.testing.assert_array_equal(part.matrix, norms.unit(Vectors.read(saved).matrix[:3]))
    saved.write_bytes(model(kept={3: 0})[0])  # fastText itself reads pruned models only if they are quantized
    run("convert", saved, copy, "--to", "fasttext")
    np.testing.assert_array_equal(Vectors.read(copy).matrix, Vectors.read(saved).matrix)


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


def test_quantized_models_compose_and_only_fasttext_has_them(tmp_path, saved):
    vectors = Vectors(["a"], [[1, 2]])
    for name, options in ("v.txt", {"quantize": True}), ("v.ftz", {}), ("v.ftz", {"format": "text"}):
        refused(lambda: vectors.write(tmp_path / name, **options), name, kind=Contradiction)
    vectors.write(tmp_path / "two.ftz", quantize=True)  # fewer dimensions than a code stands for
    np.testing.assert_allclose(Vectors.read(tmp_path / "two.ftz").matrix, vectors.matrix, atol=0.01)
    with pytest.raises(ValueError, match="7 rows for 7 words and 5 buckets"):
        write_model(io.BytesIO(), WORDS, random(len(WORDS)), bucket=5)
    Vectors.read(saved).write(tmp_path / "m.ftz", quantize=True)
    ours, exact = Vectors.read(tmp_path / "m.ftz"), Vectors.read(saved)
    for word in WORDS + NEW_WORDS:
        np.testing.assert_allclose(ours.compose([word])[word], exact.compose([word])[word], atol=0.05)
    assert ours.matrix.inputs.read(np.empty(0, np.int64)).shape == (0, 4 * ours.dim)
    fasttext = pytest.importorskip("fasttext")
    theirs = fasttext.load_model(str(tmp_path / "m.ftz"))
    for word in WORDS + NEW_WORDS:
        np.testing.assert_allclose(ours.compose([word])[word], theirs.get_word_vector(word), atol=1e-6)


def test_k_means_and_quantized_norms():
    rows, centroids = random(999, 3), random(256, 3, 1)
    codes, distances = np.empty(999, np.uint8), np.empty(256, np.float32)
    kernels.nearest(codes, distances, distances.view(np.int32), rows, np.ascontiguousarray(centroids.T))
    exact = np.square(rows[:, None] - centroids).sum(2)
    assert (exact[np.arange(999), codes] <= exact.min(1) * (1 + 2**-14) + 1e-12).all()
    rows = random(2000, 3)
    errors = []
    for iterations in 0, 1, 15:
        centroids = kmeans(rows, rows[:256], iterations)
        errors.append(np.square(rows[:, None] - centroids).sum(2).min(1).mean())
    assert errors[0] > errors[1] > errors[2]
    matrix = random(300)
    matrix[0] = 0
    quantized = quantize(matrix)
    read = quantized.read(np.arange(300)).view(np.float32)
    np.testing.assert_allclose(np.linalg.norm(read, axis=1)[1:], np.linalg.norm(matrix, axis=1)[1:], rtol=0.1)
    file = io.BytesIO()
    quantized.write(file)
    again = type(quantized).parse(np.frombuffer(file.getvalue(), np.uint8), 0, 10)
    assert again.end == len(file.getvalue()) and again.read(np.arange(300)).tobytes() == read.tobytes()
