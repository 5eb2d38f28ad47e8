"""Test Word2Vec and Vectors."""

import concurrent.futures
import copy
import dataclasses
import gc
import json
import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import pytest
from common import refused
from w2vcase import TYINGS

import tiedtools as tt
from tiedtools.base import interrupts

WORDS = [f"w{k}" for k in range(60)]
SENTENCES = [[WORDS[k] for k in np.random.default_rng(seed).zipf(1.3, 12) % 60] for seed in range(400)]
SMALL = dict(size=8, epochs=2, threads=1, min_count=1)
NEW = dict(fit_pmi=True, cbow_sum=True, ns_exponent=-1.0, min_alpha=0.001, fixed_window=True)


@pytest.fixture(scope="module")
def model():
    return tt.Word2Vec(**SMALL).fit(SENTENCES)


@pytest.mark.parametrize("settings, options", [
    ({}, []), (dict(architecture="skipgram", tying="signs"), ["-cbow", 0, "--tie-signs"]),
    (dict(tying="linear"), ["--tie-linear"]),
    (dict(tying="signs", negated=0.4, shift=-1.0), ["--tie-signs", "--negated", 0.4, "--shift", -1]),
    (dict(tying="signs", fit_pmi=False), ["--tie-signs", "--no-fit-pmi"]),
    (NEW, "--fit-pmi --cbow-sum --ns-exponent -1 --min-alpha .001 --fixed-window".split()),
    (dict(tying="tied", lr=0.01, negative=3, sample=0.0), ["--tie", "--lr", 0.01, "-negative", 3, "-sample", 0]),
    (dict(hs=True, negative=0, seed=4), ["-hs", 1, "-negative", 0, "--seed", 4]),
], ids=str)  # fmt: skip
def test_the_command_line_writes_the_same_bytes(tmp_path, run, settings, options):
    """Also the model file."""
    text, ours, theirs = tmp_path / "text", tmp_path / "ours", tmp_path / "theirs"
    text.write_text("".join(" ".join(sentence) + "\n" for sentence in SENTENCES))
    tt.Word2Vec(**SMALL, **settings).fit(SENTENCES, output=ours, save_model=tmp_path / "ours.npz")
    given = ["-size", 8, "-epochs", 2, "-threads", 1, "-min-count", 1, "-save-model", tmp_path / "theirs.npz"]
    assert run("w2v", *given, *options, "-output", theirs, text).exit_code == 0
    assert ours.read_bytes() == theirs.read_bytes()
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "theirs.npz").read_bytes()


@pytest.mark.parametrize("architecture", ["cbow", "skipgram"])
@pytest.mark.parametrize("tying", TYINGS.values(), ids=TYINGS)
def test_default_vectors_are_those_of_the_command(tmp_path, architecture, tying):
    model = tt.Word2Vec(**SMALL, architecture=architecture, **tying).fit(SENTENCES, output=tmp_path / "vectors")
    written = tt.Vectors.read(tmp_path / "vectors")
    assert written.words == model.vectors.words
    np.testing.assert_allclose(written.matrix, model.vectors.matrix, atol=1e-6)


@pytest.mark.parametrize(
    "settings", [{}, TYINGS["signs"], TYINGS["linear"], dict(hs=True), dict(shared_negatives=(1, 8, 8)), NEW], ids=str
)
def test_models_pickle(tmp_path, settings):
    model = tt.Word2Vec(**SMALL, **settings).fit(SENTENCES)
    model.save(tmp_path / "model.npz")
    for other in pickle.loads(pickle.dumps(model)), copy.deepcopy(model), tt.load(tmp_path / "model.npz"):
        assert dataclasses.replace(other.model.config, threads=1) == model.model.config
        for which in ("in", "out") if settings in (dict(hs=True), TYINGS["signs"]) else ("in", "out", "sum"):
            np.testing.assert_array_equal(other.word_vectors(which).matrix, model.word_vectors(which).matrix)
        for name, array in model.model.arrays.items():
            np.testing.assert_array_equal(other.model.arrays[name], array)
            assert not np.shares_memory(other.model.arrays[name], array)
    assert pickle.loads(pickle.dumps(model)).settings == model.settings


def fit_in_child(seed):
    return tt.Word2Vec(**SMALL, seed=seed).fit(SENTENCES).vectors.matrix


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_training_in_other_processes(model, method):
    """After threads of this process have trained, as joblib does it."""
    with multiprocessing.get_context(method).Pool(2) as pool:
        one, other = pool.map(fit_in_child, [1, 2])
    np.testing.assert_array_equal(one, model.vectors.matrix)
    assert not np.array_equal(one, other)


@pytest.mark.filterwarnings("error")
def test_callbacks_see_and_stop_training(tmp_path):
    epochs, moments = [], []
    callbacks = dict(on_epoch=epochs.append, on_timer=moments.append, timer_seconds=0.0)
    model = tt.Word2Vec(**SMALL | dict(epochs=4)).fit(SENTENCES, **callbacks)
    assert [figures["epoch"] for figures in epochs] == [1, 2, 3, 4] and epochs == model.history
    assert set(epochs[0]) == {"epoch", "loss", "seconds", "lr", "words_per_s"}
    assert set(moments[0]) == {"words", "loss", "lr", "words_per_s"} and moments[-1]["words"] == 4 * 400 * 13
    stop = dict(on_timer=lambda figures: False, timer_seconds=0.0)
    model = tt.Word2Vec(**SMALL | dict(epochs=10**4, size=100)).fit(SENTENCES, **stop)
    assert np.isfinite(model.vectors.matrix).all() and len(model.history) < 10**4  # what has been trained so far
    gc.collect()  # warns of files that are left open
    interrupts.check()  # nothing is left of the request to stop
    assert model.fit(SENTENCES, **stop).trained


CTRL_C = """
import os, signal
import tiedtools as tt
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
sentences = [["a", "b", "c"] * 20] * 100
model = tt.Word2Vec(size=50, epochs=10**4, min_count=1, threads=2)
try:
    model.fit(sentences, on_timer=lambda figures: os.kill(os.getpid(), signal.SIGINT), timer_seconds=0.1)
except KeyboardInterrupt as stop:
    assert str(stop).startswith("interrupted after ")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print(len(model.vectors), len(tt.Word2Vec(min_count=1).fit(sentences).vectors))
"""


def test_ctrl_c_leaves_a_usable_model():
    """The program's own signal handler is back in place, and training again works."""
    result = subprocess.run([sys.executable, "-c", CTRL_C], capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout, result.stderr) == (0, "4 4\n", "")


def test_training_in_a_thread(model):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for found in pool.map(fit_in_child, [1, 1]):
            np.testing.assert_array_equal(found, model.vectors.matrix)


def test_checkpoints_from_python(tmp_path):
    """A run that a callback stops continues, as on the command line, to the same bytes."""
    files = dict(checkpoint=tmp_path / "c", resume=True)
    settings = SMALL | dict(epochs=1000, size=100)
    whole = tt.Word2Vec(**settings).fit(SENTENCES)
    part = tt.Word2Vec(**settings).fit(SENTENCES, **files, on_timer=lambda figures: False, timer_seconds=0.0)
    assert len(part.history) < 1000
    np.testing.assert_array_equal(part.fit(SENTENCES, **files).vectors.matrix, whole.vectors.matrix)


ROYALS = ["king", "queen", "man", "woman", "apple"]


@pytest.fixture
def vectors():
    return tt.Vectors(ROYALS, np.random.default_rng(3).standard_normal((5, 4)))


def test_most_similar(vectors):
    expected = vectors.most_similar(["king", "woman"], "man")
    unit = vectors["king"] / np.linalg.norm(vectors["king"])
    for positive in [unit, "woman"], (word for word in ("king", "woman")):
        found = [(word, cosine) for word, cosine in vectors.most_similar(positive, "man") if word != "king"]
        assert found == [(word, pytest.approx(cosine, abs=1e-6)) for word, cosine in expected]
    assert vectors.most_similar(vectors["king"], topn=1)[0] == ("king", pytest.approx(1))
    farthest = max(-vectors.similarity("king", word) for word in ROYALS[1:])
    assert vectors.most_similar(negative="king", topn=1)[0][1] == pytest.approx(farthest, abs=1e-6)
    assert vectors.most_similar() == [] and len(vectors.most_similar("king", topn=100, restrict=3)) == 2


@pytest.mark.parametrize("method", ["add", "mul"])
def test_analogies_are_those_of_the_command(tmp_path, run, vectors, method):
    vectors.write(tmp_path / "v")
    printed = run("analogy", tmp_path / "v", "man", "king", "woman", "--method", method).stdout_bytes.decode()
    found = tt.Vectors.read(tmp_path / "v").analogy("man", "king", "woman", method=method)
    assert printed == "".join(f"man\tking\twoman\t{word}\t{score:.4f}\n" for word, score in found)


@pytest.mark.parametrize("query", [
    lambda v: v["kings"], lambda v: v.similarity("king", "kings"), lambda v: v.most_similar("kings"),
    lambda v: v.analogy("a", "king", "man"),
])  # fmt: skip
def test_unknown_words(vectors, query):
    with pytest.raises(KeyError, match="no vector for '(kings|a)'"):
        query(vectors)


def test_gensim_without_files(vectors):
    pytest.importorskip("gensim")
    keyed = vectors.to_gensim()
    assert keyed.index_to_key == ROYALS and keyed.most_similar("king")[0][0] == vectors.most_similar("king")[0][0]
    keyed.vectors[:] = 0
    assert vectors.matrix.any()
    vectors.counts = np.arange(len(vectors))
    for source in (keyed := vectors.to_gensim()), type("Model", (), {"wv": keyed}):
        back = tt.Vectors.from_gensim(source)
        assert back.words == ROYALS and back.counts.tolist() == vectors.counts.tolist()
        np.testing.assert_array_equal(back.matrix, vectors.matrix)


def write_sets(folder):
    (folder / "pairs").write_text("king queen 9\nking man 7\nking apple 1\nman apple 2\nman kings 3\n")
    (folder / "questions").write_text(": gender\nman king woman queen\nman woman king queen\nman king woman boy\n")


def test_sets_of_pairs_and_analogies(tmp_path, run, vectors):
    write_sets(tmp_path)
    other = tt.Vectors(ROYALS, np.random.default_rng(5).standard_normal((5, 4)))
    for name, some in ("a", vectors), ("b", other):
        some.write(tmp_path / name)
    pairs, files = str(tmp_path / "pairs"), [tmp_path / "b", tmp_path / "a"]
    printed = json.loads(run("eval-sim", *files, "--set", pairs, "--seed", 2, "--json").stdout_bytes)
    found = tt.evaluate_similarity(tmp_path / "a", [pairs], against=tmp_path / "b", seed=2)
    assert found["sets"] == printed["results"][1]["sets"] and found["mean_rho"] == printed["results"][1]["mean_rho"]
    expected = [{name: value for name, value in line.items() if name != "file"} for line in printed["differences"]]
    assert found["differences"] == expected
    alone = tt.evaluate_similarity(vectors, [pairs], bootstrap=0)
    assert "differences" not in alone and alone["sets"][0]["covered"] == 4 and alone["mean_low"] is None
    questions = str(tmp_path / "questions")
    refused(lambda: tt.evaluate_analogies(vectors, questions, method="avg"), "not pairs", kind=tt.Contradiction)
    refused(lambda: tt.evaluate_similarity(vectors, [("king", "man", 7)]), "`sets` must be names", kind=TypeError)
    for restrict in 5, 4:
        options = "--set", questions, "--restrict", restrict, "--json"
        printed = json.loads(run("eval-analogy", *files, *options).stdout_bytes)
        found = tt.evaluate_analogies(tmp_path / "a", questions, against=files[0], restrict=restrict)
        sections = [printed[name][-1]["sections"] for name in ("results", "differences")]
        assert [found["sections"], found["differences"]] == sections


def test_models_are_evaluated_by_their_vectors(tmp_path):
    write_sets(tmp_path)
    model = tt.Word2Vec(size=4, epochs=1, min_count=1, threads=1).fit([ROYALS] * 50)
    model.save(tmp_path / "m.npz")
    evaluated = lambda source: tt.evaluate_similarity(source, [str(tmp_path / "pairs")])
    by_model, by_file, by_vectors = map(evaluated, (model, tmp_path / "m.npz", model.vectors))
    assert by_model == by_file == by_vectors
    with pytest.raises(tt.TiedtoolsError, match="not trained; call `fit` first"):
        _ = tt.Word2Vec().vectors
    (tmp_path / "text").write_text("a b\n")
    refused(lambda: tt.load(tmp_path / "text"), "neither a word2vec header")
    refused(lambda: tt.Word2Vec().fit(tmp_path / "none"), "No such file")
