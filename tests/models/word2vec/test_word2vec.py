"""Test the word2vec model: parameters, complete training runs, and stopping."""

import io
import json

import numpy as np
import pytest
from common import refused, save
from w2vcase import TOPICS, TYINGS, VARIANTS, WORDS, encoded, topic_text

from tiedtools.files import modelfile
from tiedtools.kernels.word2vec import w2vtiles
from tiedtools.models.word2vec import run as word2vecrun
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.run import chunk_bounds
from tiedtools.runs.progress import EpochLog, Progress
from tiedtools.text.vocab import Vocab
from tiedtools.vectors.norms import unit
from tiedtools.vectors.vectors import Vectors


def trained(report=None, epochs=3, **options):
    vocab, text = topic_text()
    config = Config(size=20, sample=0, epochs=epochs, **options)
    model = Word2Vec(vocab, config)
    model.train(text, report or Progress())
    return model


def topic_contrast(model):
    """Return the mean cosine within topics minus the mean between topics."""
    rows = unit(np.asarray(model.vectors("in"))[1:])
    same = np.kron(np.eye(TOPICS), np.ones((WORDS, WORDS))) > 0
    cosines = rows @ rows.T
    return cosines[same].mean() - cosines[~same].mean()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_training_learns_topics_and_reduces_the_loss(options, threads):
    log = io.StringIO()
    model = trained(EpochLog(log, Progress()), threads=threads, **options)
    losses = [json.loads(line)["loss"] for line in log.getvalue().splitlines()]
    assert len(losses) == 3 and losses[0] > losses[2] and topic_contrast(model) > 0.5


@pytest.mark.parametrize("shift, target, negative", [(0, np.log(2), np.log(2)), (-np.log(3), np.log(4), np.log(4 / 3))])
def test_initial_loss_is_that_of_random_guessing(shift, target, negative):
    """Untied output rows start at zero: all scores are `shift`, and some negatives are skipped."""
    log = io.StringIO()
    vocab, text = topic_text(lines=100)
    model = Word2Vec(vocab, Config(size=5, lr=1e-12, epochs=1, negative=5, shift=shift))
    model.train(text, EpochLog(log, Progress()))
    loss = json.loads(log.getvalue().splitlines()[0])["loss"]
    assert loss == pytest.approx(target + 5 * (1 - 1 / (TOPICS * WORDS)) * negative, rel=0.01)
    assert model.uniform_loss == pytest.approx(target + 5 * negative)


@pytest.mark.parametrize("tying, size", [("untied", 30.0e6), ("tied", 15.0e6), ("signs", 15.0e6), ("linear", 15.09e6)])
def test_parameter_counts_of_the_paper(tying, size):
    vocab = Vocab(["w"] * 50_000, np.ones(50_000, np.int64))
    assert Word2Vec(vocab, Config(size=300, **TYINGS[tying])).n_params == size


def test_initial_parameters():
    vocab, _ = topic_text()
    untied = Word2Vec(vocab, Config(size=50))
    assert 0.04 < np.abs(untied.emb_in).max() <= 0.05 and not untied.emb_out.any() and untied.proj.size == 0
    linear, signs = (Word2Vec(vocab, Config(size=50, tying=name, init_range=0.1)) for name in ("linear", "signs"))
    for tied in linear, signs:
        assert np.shares_memory(tied.emb_out, tied.emb_in) and 0.09 < np.abs(tied.emb_in).max() <= 0.1
    assert (linear.proj == np.eye(50)).all() and (linear.linear == linear.proj).all() and signs.proj.size == 0
    orthogonal = Word2Vec(vocab, Config(size=50, tying="linear", init_linear="orthogonal")).proj
    np.testing.assert_allclose(orthogonal @ orthogonal.T, np.eye(50), atol=1e-5)
    uniform = Word2Vec(vocab, Config(size=50, tying="linear", init_linear="uniform")).proj
    assert 0.13 < np.abs(uniform).max() <= 50**-0.5
    composed = Word2Vec(vocab, Config(size=50, subwords="ngrams"))
    largest = np.abs(composed.emb_in).max(1) * np.sqrt(composed.ngrams.sizes) / composed.config.init_range
    assert composed.ngrams.sizes.max() > 1 and largest.max() <= 1 + 1e-6 and largest.min() > 0.7
    V = len(vocab)
    assert Word2Vec(vocab, Config(size=10, hs=True, negative=0)).n_params == 10 * (V + V - 1)
    assert Word2Vec(vocab, Config(size=10, hs=True, negative=5)).n_params == 10 * (V + V + V - 1)
    for name in set(TYINGS) - {"signs"}:
        assert Config(**TYINGS[name], negated=0.5).negations == 0, name


@pytest.mark.parametrize("size, negated, expected", [(10, 0.3, 3), (10, 0, 0), (10, 1, 10), (7, 0.4, 3), (1, 0.4, 0)])
def test_the_matrix_of_signs(size, negated, expected):
    vocab, _ = topic_text()
    model = Word2Vec(vocab, Config(size=size, tying="signs", negated=float(negated)))
    assert model.config.negations == expected and model.proj.size == 0
    L = np.eye(size) if model.linear is None else model.linear
    np.testing.assert_array_equal(L, np.diag([-1] * expected + [1] * (size - expected)))


def test_written_vectors():
    model = trained(epochs=1)
    emb_in, emb_out = model.emb_in, model.emb_out[: len(model.vocab)]
    for which, expected in (
        ("in", emb_in), ("out", emb_out), ("sum", emb_in + emb_out), ("concat", np.hstack([emb_in, emb_out])),
    ):  # fmt: skip
        vectors = model.vectors(which)
        assert vectors.words == model.vocab.words
        np.testing.assert_array_equal(vectors.matrix, expected)


@pytest.mark.parametrize("tying", ["signs", "linear"])
def test_model_file(tmp_path, tying):
    """The file has L, and the matrix of signs."""
    model = trained(epochs=1, **TYINGS[tying])
    path = tmp_path / "m.npz"
    save(model, path)
    header, words, arrays = modelfile.load(str(path))
    assert words == model.vocab.words and header["kind"] == "word2vec"
    assert Config(**header["config"]) == model.config and set(arrays) == {"emb_in", "proj", "counts"}
    np.testing.assert_array_equal(arrays["proj"], model.linear)
    assert arrays["proj"].shape == (20, 20) and (arrays["proj"] != np.eye(20)).any()
    if tying == "signs":
        refused(lambda: Vectors.read(f"{path}:sum"), f"{path}: ", f" their sum cancels dimensions; read {path}:in")
    else:
        expected = model.emb_in @ model.proj + model.emb_in
        np.testing.assert_allclose(Vectors.read(f"{path}:sum").matrix, expected, atol=1e-6)
    loaded = Word2Vec.load(str(path), threads=1)
    assert loaded.config == model.config
    for name, array in model.arrays.items():
        assert loaded.arrays[name].tobytes() == array.tobytes(), name
    path.write_bytes(path.read_bytes()[:-200])
    refused(lambda: modelfile.load(str(path)), "m.npz")


@pytest.mark.parametrize("options, rates", [
    (dict(tying="linear", lr_linear=1), "`lr` or `lr_linear`"), (TYINGS["signs"], "`lr`"), (TYINGS["tied"], "`lr`"),
])  # fmt: skip
def test_divergence_is_reported_and_leaves_finite_parameters(options, rates):
    vocab, text = topic_text()
    model = Word2Vec(vocab, Config(size=20, lr=500, threads=2, **options))
    refused(lambda: model.train(text, Progress()), "diverged after ", " epochs: ", f"; lower {rates}")
    assert np.isfinite(model.emb_in).all()


def test_learning_rate_decays_to_a_floor(monkeypatch):
    rates, train = [], w2vtiles.train
    monkeypatch.setattr(w2vtiles, "train", lambda *a: (rates.append(a[-3]), train(*a)))
    monkeypatch.setattr(word2vecrun, "CHUNK", 1000)
    vocab, text = topic_text()
    Word2Vec(vocab, Config(size=5, epochs=2, lr=0.1)).train(text, Progress())
    rates = rates[1:]  # the first call only compiles
    assert rates[0] == 0.1 and rates == sorted(rates, reverse=True)
    assert rates[len(rates) // 2] == pytest.approx(0.05, rel=0.01)
    assert 0 < rates[-1] < 0.1 * 0.02


def test_every_piece_has_its_own_seed(monkeypatch):
    seeds, train = [], w2vtiles.train
    monkeypatch.setattr(w2vtiles, "train", lambda *a: (seeds.append(a[-1]), train(*a)))
    trained(epochs=2)
    trained(epochs=1, seed=2)
    assert len(seeds) == len(set(seeds)) + 1 > 9, "all differ, except that both compilations use the same one"


def test_rates_of_l_and_precision_of_negatives():
    moved = {
        rate: np.abs(trained(epochs=1, tying="linear", lr_linear=rate).proj - np.eye(20)).max()
        for rate in (0, 0.001, 0.01)
    }
    assert moved[0] == 0 < moved[0.001] < moved[0.01]
    for options in dict(tying="linear", exact=True), dict(hs=True):
        assert {Config(precision=name, **options).precision for name in (None, "bfloat16")} == {"float32"}


def test_chunks_end_at_line_ends_where_possible(monkeypatch):
    monkeypatch.setattr(word2vecrun, "CHUNK", 100)
    ids = np.ones(1000, np.int32)
    bounds = lambda ids: chunk_bounds(encoded(ids)).tolist()
    assert bounds(ids) == list(range(0, 1001, 100))
    ids[[105, 209, 333]] = 0
    assert bounds(ids) == [0, 106, 210, 300, 400, 500, 600, 700, 800, 900, 1000]
    assert bounds(ids[:50]) == [0, 50] and bounds(ids[:206]) == [0, 106, 200, 206]

    class Long:
        size = 2**31 + 10

        def read(self, start, out):
            return np.zeros(1, np.int32)

    monkeypatch.setattr(word2vecrun, "CHUNK", 2**20)
    bounds = chunk_bounds(Long())
    assert bounds[-2:].tolist() == [2**31 + 1, 2**31 + 10] and (np.diff(bounds) > 0).all()


@pytest.mark.parametrize("feature, tying", [("FAST_BFLOAT16", "linear"), ("FAST_DOTS", "untied")])
def test_precision(monkeypatch, feature, tying):
    losses = {}
    for able, precision in (True, "bfloat16"), (False, "float32"):
        monkeypatch.setattr(f"tiedtools.models.word2vec.model.{feature}", able)
        model = trained(EpochLog(log := io.StringIO(), Progress()), tying=tying, lr_linear=0.003)
        assert model.config.precision == precision
        losses[precision] = [json.loads(line)["loss"] for line in log.getvalue().splitlines()]
    assert losses["bfloat16"] != losses["float32"] == pytest.approx(losses["bfloat16"], rel=1e-2)
