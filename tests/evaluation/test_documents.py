"""Test vectors of documents and of sentences, and the commands `docvec` and `similar`."""

import gzip
import json

import numpy as np
import pytest
from common import refused, save
from fakelm import FakeLM
from rnnlmreference import softmax

import tiedtools as tt
from tiedtools.base.errors import Contradiction
from tiedtools.evaluation import documents as module
from tiedtools.evaluation.documents import DocumentVectors
from tiedtools.evaluation.lexicon import Lexicon
from tiedtools.models.rnnlm.config import RnnlmConfig
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.vectors import Vectors

WORDS = "</s> a b c d e <unk> f g".split()
VOCAB = Vocab(WORDS, np.arange(9, 0, -1))
LINES = ["a b c", "", "d", "a b c", "e f zebra g " + "b a " * 40, "c d e f d c", "g"]
TEXT = "".join(f"{line}\n" for line in LINES)
PAPER = dict(sentences=True, learn_start=True)
KINDS = {"paper": PAPER, "independent": dict(independent=True), "plain": {}, "n-grams": dict(direct=60, **PAPER)}


def rnnlm(**options):
    model = Rnnlm(VOCAB, RnnlmConfig(hidden=6, classes=3, doc_dim=4, doc_lr=0.7, threads=1, dtype="float64", **options))
    # As far from the initial values as training would move them, so that none are nearly 0 or equal.
    model.params.values[:] += np.random.default_rng(1).uniform(-0.5, 0.5, model.params.values.size)
    return model


def by_definition(model, lines, direct=False):
    """Return the document vector after the lines of one document by Rei's equations, without n-gram features."""
    p, c, M = model.params, model.config, model.config.hidden
    d = p["start_doc"].copy()
    for line in lines:
        h, last = p["start_hid"] if c.learn_start or not c.independent else np.ones(M), 0
        ids = [WORDS.index(word) if word in WORDS else WORDS.index("<unk>") for word in line.split()]
        for word in [*ids, 0]:
            h = 1 / (1 + np.exp(-(p["emb_in"][last] + h @ p["hid"])))
            k = model.class_of[word]
            low, high = model.starts[k : k + 2]
            weights = p["word_out"][low:high]
            classes = softmax(h @ p["class_hid"] + d @ p["class_doc"]) - (np.arange(3) == k)
            words = softmax(weights @ np.concatenate([h, d])) - (np.arange(low, high) == word)
            d = d - c.doc_lr * (p["class_doc"] @ classes + words @ weights[:, M:])
            last = word
    return d


def vectors(model, text, unit, tmp_path):
    (path := tmp_path / "text").write_text(text)
    return DocumentVectors(model).encode(str(path), unit)[0]


@pytest.mark.parametrize("kind", ["paper", "independent", "plain"])
def test_the_vector_of_a_line_is_the_one_after_its_end(kind, tmp_path):
    model = rnnlm(**KINDS[kind])
    expected = [by_definition(model, [line]) for line in LINES]
    np.testing.assert_allclose(vectors(model, TEXT, "line", tmp_path), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_lines_are_independent(kind, tmp_path, monkeypatch):
    """A line's vector does not depend on the other lines of its batch."""
    monkeypatch.setattr("tiedtools.training.scoring.TIME", 2)  # windows of only padding
    model = rnnlm(**KINDS[kind])
    found = vectors(model, TEXT, "line", tmp_path)
    for line, vector in zip(LINES, found):
        ids = Lexicon(VOCAB).ids(Lexicon(VOCAB).codes([*line.split(), "\n"]))
        read = np.concatenate([[0], ids[:-1]]).astype(np.int32)
        _, state = model.score(read[:, None], ids[:, None], model.start(1))
        np.testing.assert_allclose(vector, state[1][0, 0], rtol=1e-9)
    np.testing.assert_array_equal(found[0], found[3])


@pytest.mark.parametrize("kind", ["paper", "independent", "plain"])
@pytest.mark.parametrize("chunk", [1, 2, 10**6])
def test_lines_of_a_document_share_the_vector_but_not_the_state(kind, chunk, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    model = rnnlm(**KINDS[kind])
    documents = [LINES[:1], LINES[2:5], LINES[5:]]
    text = "\n\n" + "\n\n\n".join("\n".join(document) for document in documents) + "\n"
    found = vectors(model, text, "doc", tmp_path)
    np.testing.assert_allclose(found, [by_definition(model, document) for document in documents], rtol=1e-9)


def test_lines_are_scored_in_batches(tmp_path, monkeypatch):
    calls, score = [], Rnnlm.score
    monkeypatch.setattr(Rnnlm, "score", lambda self, ids, *rest: calls.append(ids.shape) or score(self, ids, *rest))
    vectors(rnnlm(**PAPER), "a b c d\n" * 640, "line", tmp_path)
    assert calls == [(5, 64)] * 10


# Commands


@pytest.fixture
def saved(tmp_path):
    def saved(model):
        save(model, tmp_path / "model.npz")
        return tmp_path / "model.npz"

    return saved


def test_docvec(run, saved, tmp_path):
    model = rnnlm(**PAPER)
    path, text, output = saved(model), tmp_path / "text.gz", tmp_path / "out"
    text.write_bytes(gzip.compress(TEXT.encode()))
    expected = vectors(model, TEXT, "line", tmp_path)
    result = run("docvec", path, text, "-output", output)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "1 word outside the vocabulary was read as `<unk>`" in result.stderr
    found = Vectors.read(output)
    assert found.words == [str(number) for number in range(1, 8)]
    np.testing.assert_allclose(found.matrix, expected, atol=1e-6)
    assert run("docvec", path, input=TEXT.encode()).stdout_bytes == output.read_bytes()
    run("docvec", path, text, "--output", output, "-binary", 1)
    np.testing.assert_array_equal(Vectors.read(output, "binary").matrix, expected.astype(np.float32))
    documents = run("docvec", path, "--unit", "doc", input=TEXT.encode()).stdout
    assert documents.split("\n")[0] == "2 4" and documents.split("\n")[2].startswith("2 ")


def test_docvec_errors(run, saved, tmp_path):
    path = saved(rnnlm(**PAPER))
    assert "is empty; give a text" in run("docvec", path, input=b"").stderr
    assert "no lines; give a text" in run("docvec", path, "--unit", "doc", input=b"\n\n").stderr
    assert "is used as both input and output" in run("docvec", path, "x", "-output", path).stderr
    assert "x.tsv: would be read as .tsv" in run("docvec", path, "-output", "x.tsv", input=b"a\n").stderr
    for model in FakeLM(), Rnnlm(VOCAB, RnnlmConfig(hidden=3)):
        for command in ["docvec"], ["similar", "--line", 1]:
            result = run(command[0], saved(model), *command[1:], input=b"a\n")
            assert result.exit_code == 1 and result.stdout == ""
            assert result.stderr.endswith(
                f"{path}: has no document vector; give its word vectors, {path}:in, or train a model with"
                " `tiedtools rnnlm --doc-dim 20`\n"
            )
    refused(lambda: tt.SentenceVectors(VECTORS, A).transform(SENTENCES), "fit")
    refused(lambda: tt.SentenceVectors(VECTORS, 0), kind=Contradiction)


def closest(matrix, row, candidates, k):
    """Return (cosine, index) of the most similar candidates, without the row itself."""
    matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return sorted(((matrix[row] @ matrix[i], i) for i in range(candidates) if i != row), reverse=True)[:k]


SIMILAR = ["a b c", "d e f", "a b", "g g g", "a c b", "zebra", "f g a b"]
CORPUS = "".join(f"{line}\n" for line in SIMILAR)


@pytest.mark.parametrize("center", [False, True])
def test_similar(run, saved, tmp_path, center):
    model = rnnlm(**PAPER)
    path = saved(model)
    matrix = vectors(model, CORPUS + "b b  c\n", "line", tmp_path) - center * model.params["start_doc"]
    options = ["--center"] * center
    result = run("similar", path, "-k", 2, "--query", "b b  c", "--line", 3, *options, input=CORPUS.encode())
    assert result.exit_code == 0 and result.stdout.splitlines() == [
        f"{query}\t{i + 1}\t{x:.4f}\t{SIMILAR[i]}"
        for row, query in ((7, "b b c"), (2, "a b"))
        for x, i in closest(matrix, row, 7, 2)
    ]
    found = json.loads(run("similar", path, "--line", 3, "--json", *options, input=CORPUS.encode()).stdout)
    assert found["center"] == center and found["unit"] == "line" and len(found["queries"]) == 1
    (query,) = found["queries"]
    assert (query["line"], query["text"]) == (3, "a b") and len(query["similar"]) == 3
    for line, (cosine, i) in zip(query["similar"], closest(matrix, 2, 7, 3)):
        assert (line["line"], line["text"]) == (i + 1, SIMILAR[i]) and line["cosine"] == pytest.approx(cosine, abs=1e-5)


def test_queries_are_sampled_documents_or_lines(run, saved):
    path, text = saved(rnnlm(**PAPER)), CORPUS.encode()
    sample = lambda *options: json.loads(run("similar", path, "--json", *options, input=text).stdout)["queries"]
    lines = [query["line"] for query in sample("--sample", 4)]
    numbers = [part for k in lines for part in ("--line", k)]
    assert len(set(lines)) == 4 and sample("--sample", 4) == sample(*numbers)
    assert any([query["line"] for query in sample("--sample", 4, "--seed", seed)] != lines for seed in (2, 3))
    assert sorted(query["line"] for query in sample("--sample", 7)) == list(range(1, 8))
    text = b"a b\nc d\n\ne f\n\n\ng\na\n"
    found = json.loads(run("similar", path, "--unit", "doc", "--line", 2, "--json", input=text).stdout)["queries"][0]
    assert found["text"] == "e f" and {line["text"] for line in found["similar"]} == {"a b", "g"}
    found = run("similar", path, "--unit", "doc", "--query", "a b", "--json", input=text).stdout
    assert json.loads(found)["queries"][0]["line"] is None  # the first line of a document is not the document
    by_query = run("similar", path, "--query", "a b", input=CORPUS.encode())
    assert by_query.stdout == run("similar", path, "--line", 3, input=CORPUS.encode()).stdout


@pytest.mark.parametrize("options, message", [
    ([], "give a sentence"),
    (["--line", 8, "--sample", 7], "standard input: has 7 lines; give a longer text, or lower --line\n"),
    (["--line", 7, "--sample", 8], "standard input: has 7 lines; give a longer text, or lower --sample\n"),
    (["--line", 8, "--sample", 8], "give a longer text, or lower --line and --sample\n"),
    (["--line", 3, "--unit", "doc"], "standard input: has 1 document; give a longer"),
])  # fmt: skip
def test_similar_errors(run, saved, options, message):
    result = run("similar", saved(rnnlm(**PAPER)), *options, input=CORPUS.encode())
    assert result.exit_code in (1, 2) and message in result.stderr and result.stdout == ""


@pytest.mark.parametrize("text, none", [(b"", "is empty"), (b"\n\n", "no documents")])
def test_similar_in_an_empty_text(run, saved, text, none):
    result = run("similar", saved(rnnlm(**PAPER)), "--query", "a", "--unit", "doc", input=text)
    assert (result.exit_code, result.stderr) == (1, f"tiedtools: standard input: {none}; give a text\n")


def test_queries_of_unknown_words(run, saved):
    """A query without known words is reported; the others are answered."""
    path, text = saved(rnnlm(**PAPER)), CORPUS.encode()
    asked = "--query", "zebra quux", "--query", "a zebra b", "--query", "a b"
    refused = "tiedtools: query 'zebra quux': no known word; give words of the model's vocabulary\n"
    result = run("similar", path, *asked, input=text)
    assert result.exit_code == 1 and refused + "query 'a zebra b': not in the vocabulary: 'zebra'\n" in result.stderr
    known = run("similar", path, *asked[2:], "--seed", 2, input=text)
    assert "--seed has no effect without --sample" in known.stderr
    assert known.exit_code == 0 and known.stdout == result.stdout and result.stdout.startswith("a zebra b\t")
    found = run("similar", path, *asked, "--json", input=text)
    told = json.loads(found.stdout)
    assert found.exit_code == 1 and told["unknown"] == ["zebra", "quux", "zebra"]
    assert [query["text"] for query in told["queries"]] == ["a zebra b", "a b"]
    result = run("similar", path, *asked[:2], input=text)
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", refused)
    assert json.loads(run("similar", path, *asked[:2], "--json", input=text).stdout)["queries"] == []
    assert run("similar", path, "--query", " ", input=text).stderr.startswith("tiedtools: query ' ': no known word")


RNG = np.random.default_rng(3)
KNOWN = ["</s>", "a", "b", "c", "d", "é"]
VECTORS = tt.Vectors(KNOWN, RNG.standard_normal((6, 5)) + 1)
SENTENCES = [["a", "b", "zebra", "a"], [], ["c"], ["d", "a", "é"], ["zebra"], ["b", "é", "é"]]
A = 0.05


def known(sentence, words=VECTORS):
    return [word for word in sentence if word in words and word != "</s>"]


def plain(text, first=SENTENCES, a=A):
    """Return SIF vectors by algorithm 1 of Arora et al., with p(w) and the component of the `first` text."""
    flat = [word for sentence in first for word in known(sentence)]
    weigh = lambda word: 1 if a is None else a / (a + flat.count(word) / len(flat))

    def means(text):
        rows = [[weigh(word) * VECTORS[word] for word in known(sentence)] for sentence in text]
        return np.array([np.mean(row, 0) if row else np.zeros(5) for row in rows])

    if a is None:
        return means(text)
    u = np.linalg.svd(means(first))[2][0]
    return means(text) @ (np.eye(5) - np.outer(u, u))


@pytest.fixture
def word_vectors(tmp_path):
    VECTORS.write(tmp_path / "vectors.txt")
    return tmp_path / "vectors.txt"


@pytest.fixture
def text(tmp_path):
    (path := tmp_path / "text").write_text("".join(" ".join(sentence) + "\n" for sentence in SENTENCES))
    return path


@pytest.mark.parametrize("a", [None, A])
def test_against_the_equations(a):
    sentences = tt.SentenceVectors(VECTORS, a)
    other = [["é", "a"], ["zebra"], ["d"]]
    np.testing.assert_allclose(sentences.fit(SENTENCES).transform(SENTENCES), plain(SENTENCES, a=a), atol=1e-5)
    np.testing.assert_allclose(sentences.transform(other), plain(other, a=a), atol=1e-5)
    with_unk = tt.SentenceVectors(tt.Vectors(["a", "<unk>"], [[1, 0], [0, 2]])).transform([["a", "zebra"], ["zebra"]])
    assert with_unk.tolist() == [[0.5, 1], [0, 2]]
    again = tt.SentenceVectors(sentences.word_vectors).transform(other)
    np.testing.assert_allclose(again, sentences.transform(other), atol=1e-5)


def test_docvec_with_word_vectors(run, tmp_path, word_vectors, text):
    output, saved = tmp_path / "x.npy", tmp_path / "sif.txt"
    assert "2 words outside" in run("docvec", word_vectors, text, "--output", output).stderr
    np.testing.assert_allclose(np.load(output), plain(SENTENCES, a=None), atol=1e-5)
    assert run("docvec", word_vectors, text, "--sif", A, "--save", saved, "--output", output).exit_code == 0
    np.testing.assert_allclose(np.load(output), plain(SENTENCES), atol=1e-5)
    found = [json.loads(line) for line in run("docvec", saved, "--json", input="é a\n\n".encode()).stdout.splitlines()]
    assert [line["text"] for line in found] == ["é a", ""]
    np.testing.assert_allclose([line["vector"] for line in found], plain([["é", "a"], []]), atol=1e-5)
    documents = run("docvec", word_vectors, text, "--unit", "doc", "--json").stdout.splitlines()
    assert [json.loads(line)["text"] for line in documents] == ["a b zebra a", "c"]
    merged = [SENTENCES[0], [word for line in SENTENCES[2:] for word in line]]
    np.testing.assert_allclose([json.loads(x)["vector"] for x in documents], plain(merged, a=None), atol=1e-5)
    assert run("docvec", word_vectors, text, "--save", saved).exit_code == 2
    (tmp_path / "spaces.txt").write_text(". 9\n. . . 8\na 1\nnew york 7\nb 2\n")
    records = b'{"t": "a\\nb"}\n{"t": "!"}\n{"t": "b b"}\n'
    args = "docvec", tmp_path / "spaces.txt", "-", "--field", "t", "--unit", "doc", "--json"
    found = [
        json.loads(line) for line in run(*args, "--tokenize", "punctuation=drop", input=records).stdout.splitlines()
    ]
    assert [(line["text"], line["vector"]) for line in found] == [("a", [1.5]), ("", [0]), ("b b", [2])]


@pytest.mark.parametrize("a", [None, A])
def test_similar_sentences(run, word_vectors, text, a):
    options = [] if a is None else ["--sif", a]
    result = run("similar", word_vectors, text, "--query", "é zebra b", "--line", 3, "--json", "--top", 2, *options)
    assert "query 'é zebra b': not in the vocabulary: 'zebra'" in result.stderr
    matrix = plain([*SENTENCES, ["é", "b"]], a=a)
    cosines = matrix @ matrix.T / np.maximum(np.outer(*[np.linalg.norm(matrix, axis=1)] * 2), 1e-30)
    for query, row in zip(json.loads(result.stdout)["queries"], (6, 2)):
        order = [k for k in np.argsort(-cosines[row][:6], kind="stable") if k != row and matrix[k].any()][:2]
        assert [line["line"] - 1 for line in query["similar"]] == order
        np.testing.assert_allclose([line["cosine"] for line in query["similar"]], cosines[row][order], atol=1e-5)
    run.fails(1, "line 2 has no known word", "similar", word_vectors, "--line", 2, *options, input=b"a b\nzebra\n")
    result = run("similar", word_vectors, "--sample", 2, *options, input=b"a b\nzebra\nb\n")
    assert result.exit_code == 0 and "zebra" not in result.stdout
