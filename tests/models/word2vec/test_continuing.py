"""Test training that continues, held-out text, and many runs."""

import collections
import functools
import json
import time

import numpy as np
import pytest
import reference
from common import refused
from w2vcase import VARIANTS, encoded, topic_text

import tiedtools as tt
from tiedtools.kernels.base.scalar import mix
from tiedtools.kernels.word2vec import sampling
from tiedtools.models.word2vec import run as word2vecrun
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.manyruns import ManyRuns
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.models.word2vec.run import Run
from tiedtools.vectors.runs import Runs

RNG = np.random.default_rng(5)
TYINGS = ["untied", "tied", "signs", "linear"]
WHOLE = {name: options for name, options in VARIANTS.items() if "subwords" not in options}  # others have local matrices
SMALL = dict(size=8, epochs=2, min_count=1, threads=1)


def sentences(names, n=300):
    return [[f"w{names[k % len(names)]}" for k in RNG.zipf(1.3, 12)] for _ in range(n)]


FIRST, SECOND = sentences(range(40)), sentences(range(20, 60))


@pytest.fixture
def saved(tmp_path):
    """Return a function that trains on FIRST and saves the model."""

    def save(**settings):
        model = tt.Word2Vec(**{**SMALL, **settings}).fit(FIRST, save_model=tmp_path / "first.npz")
        return model, tmp_path / "first.npz"

    return save


def rows(model, words, name="emb_in"):
    index = {word: row for row, word in enumerate(model.model.vocab.words)}
    return getattr(model.model, name)[[index[word] for word in words]]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("tying", TYINGS)
@pytest.mark.parametrize("threads", [dict(threads=1), dict(threads=2, deterministic=True)], ids=["1", "2"])
def test_frozen_words_keep_their_vectors_and_new_words_learn(saved, tying, exact, threads):
    settings = dict(tying=tying, exact=exact)
    if exact and threads["threads"] > 1:
        threads = dict(threads=2)
    old, path = saved(**settings)
    new = tt.Word2Vec(**{**SMALL, **settings, **threads}).fit(SECOND, init_from=path, grow=True, freeze="old")
    words = old.model.vocab.words
    np.testing.assert_array_equal(new.model.proj, old.model.proj)
    for name in {"emb_in", "emb_out"} & old.model.arrays.keys():
        np.testing.assert_array_equal(rows(new, words, name), rows(old, words, name))
    added = sorted(set(new.model.vocab.words) - set(words))
    assert added == [f"w{k}" for k in range(40, 60)]
    assert np.abs(rows(new, added)).max() > 0.05  # beyond the initial range


@pytest.mark.parametrize("side, other", [("in", "emb_out"), ("out", "emb_in")])
@pytest.mark.parametrize("architecture", ["cbow", "skipgram"])
def test_one_matrix_is_frozen(saved, architecture, side, other):
    old, path = saved(architecture=architecture)
    new = tt.Word2Vec(**SMALL, architecture=architecture).fit(SECOND, init_from=path, freeze=side)
    words = old.model.vocab.words
    assert new.model.vocab.words == sorted(words, key=new.model.vocab.words.index)
    np.testing.assert_array_equal(rows(new, words, f"emb_{side}"), rows(old, words, f"emb_{side}"))
    known = [f"w{k}" for k in range(20, 30)]
    assert (rows(new, known, other) != rows(old, known, other)).any(1).all()


def test_words_that_the_text_or_the_model_lacks(saved, tmp_path, messages):
    """They are neither centers nor negatives, since these are drawn by the counts of the text."""
    old, path = saved()
    new = tt.Word2Vec(**SMALL).fit(SECOND, init_from=path)
    absent = sorted(set(old.model.vocab.words) - {word for line in SECOND for word in line} - {"</s>"})
    assert len(absent) > 10
    for name in "emb_in", "emb_out":
        np.testing.assert_array_equal(rows(new, absent, name), rows(old, absent, name))
    new = tt.Word2Vec(**{**SMALL, "min_count": 3}).fit(SECOND, init_from=path, grow=True, save_vocab=tmp_path / "v")
    counts = dict(zip(old.model.vocab.words, old.model.vocab.counts.tolist()))
    own = collections.Counter(word for line in SECOND for word in [*line, "</s>"])
    expected = {word: counts.get(word, 0) + own[word] for word in {*counts, *own}}
    expected = {word: count for word, count in expected.items() if word in counts or own[word] >= 3}
    vocab = new.model.vocab
    assert dict(zip(vocab.words, vocab.counts.tolist())) == expected
    assert (np.diff(vocab.counts[1:]) <= 0).all() and vocab.words[0] == "</s>"
    written = dict(line.split() for line in (tmp_path / "v").read_text().splitlines())
    assert {word: int(count) for word, count in written.items()} == expected
    other = [["other", "words", "here"]] * 50
    refused(lambda: tt.Word2Vec(**SMALL).fit(other, init_from=path))
    tt.Word2Vec(**{**SMALL, "sample": 0}).fit(other, init_from=path, grow=True)
    assert "none of its words" in messages()


@pytest.mark.parametrize("name", ["v.txt", "v.npy", "v.npz:in", "v:1.txt", "v/"])
def test_any_vectors_are_a_start(saved, tmp_path, name):
    old, path = saved()
    if name == "v.npz:in":
        name = "first.npz:in"
    else:
        spaced = tt.Vectors(["new york"], np.ones((1, 8)))  # left out
        (spaced.joined(old.vectors) if name == "v.npy" else old.vectors).write(tmp_path / name)
    absent = sorted(set(old.model.vocab.words) - {word for line in SECOND for word in line} - {"</s>"})
    for how in dict(freeze="in"), dict(freeze="old", grow=True):  # which does not freeze output vectors of 0
        new = tt.Word2Vec(**SMALL).fit(SECOND, init_from=tmp_path / name, **how)
        np.testing.assert_allclose(rows(new, old.model.vocab.words), old.model.emb_in, atol=1e-5)
        assert not rows(new, absent, "emb_out").any() and rows(new, ["w20"], "emb_out").all()


def test_the_command_takes_the_settings_of_the_model(saved, tmp_path, run):
    saved(architecture="skipgram", tying="tied", window=3)
    (text := tmp_path / "text").write_text("".join(" ".join(line) + "\n" for line in SECOND))
    args = ["w2v", text, "--init-from", tmp_path / "first.npz", "-min-count", 1, "-threads", 1, "--buckets", 9]
    assert run(*args, "-output", tmp_path / "v", "-save-model", tmp_path / "second.npz").exit_code == 0
    config = tt.load(tmp_path / "second.npz").model.config
    settings = config.size, config.architecture, config.tying, config.window, config.lr
    assert settings == (8, "skipgram", "tied", 3, 0.0125)
    config = tt.Word2Vec(min_count=1).fit(SECOND, init_from=tmp_path / "first.npz").model.config
    assert (config.size, config.architecture, config.tying, config.window, config.lr) == settings
    for how, named in ("--freeze out", "--freeze out"), ("--freeze old", "--grow"), ("--preset fasttext", "--preset"):
        run.fails(2, named, *args, *how.split(), "-output", tmp_path / "v")
    saved(fit_pmi=True)
    config = tt.Word2Vec(min_count=1, negative=9).fit(SECOND, init_from=tmp_path / "first.npz").model.config
    assert config.fit_pmi and config.shift == pytest.approx(-np.log(9))  # it follows from the new number


def test_a_continued_run_resumes_and_runs_start_alike(saved, tmp_path):
    _, path = saved()
    options = dict(init_from=path, grow=True, freeze="old")
    whole = tt.Word2Vec(**SMALL).fit(SECOND, save_model=tmp_path / "whole.npz", no_manifest=True, **options)
    files = dict(checkpoint=tmp_path / "c", save_model=tmp_path / "part.npz", no_manifest=True)
    tt.Word2Vec(**SMALL).fit(SECOND, on_epoch=lambda figures: False, **files, **options)
    tt.Word2Vec(**SMALL).fit(SECOND, resume=True, **files, **options)
    assert (tmp_path / "part.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes() and whole.history
    refused(lambda: tt.Word2Vec(**SMALL).fit(SECOND, resume=True, **files, **{**options, "freeze": None}))
    old, path = saved()
    model = tt.Word2Vec(**SMALL).fit(SECOND, init_from=path, freeze="in", runs=3)
    for words, matrix in model.runs:
        np.testing.assert_allclose(matrix, [old.vectors[word] for word in words], rtol=1e-3)


@pytest.mark.parametrize("settings, options", [
    (dict(size=9), {}), (dict(tying="tied"), {}), (dict(tying="tied"), dict(init_from="first.npz:in", freeze="in")),
    (dict(hs=True, negative=0), {}), ({}, dict(init_from=None, freeze="in")), ({}, dict(init_from="none.npz")),
    ({}, dict(init_from="checkpoint")), ({}, dict(freeze="all")), ({}, dict(read_vocab="v")),
    ({}, dict(init_from="first.npz:in", freeze="out")), ({}, dict(freeze="in", grow=True)),
], ids=str)  # fmt: skip
def test_what_cannot_be_continued_is_refused(saved, tmp_path, settings, options):
    saved()
    tt.Word2Vec(**SMALL).fit(FIRST, checkpoint=tmp_path / "checkpoint", save_vocab=tmp_path / "v")
    options = {"init_from": "first.npz", **options}
    options |= {name: str(tmp_path / options[name]) for name in ("init_from", "read_vocab") if options.get(name)}
    refused(lambda: tt.Word2Vec(**{**SMALL, **settings}).fit(SECOND, **options))


VOCAB, TEXT = topic_text(600)
VALID = topic_text(200, seed=1)[1]


@pytest.fixture
def corpus(tmp_path):
    (path := tmp_path / "corpus.txt").write_text("a b c d e f\n" * 500)
    return path


def trained(valid=VALID, **options):
    run = Run(Word2Vec(VOCAB, Config(size=10, **dict(epochs=2, sample=0.01) | options)), TEXT, valid=valid)
    run.go()
    return run


def losses(run):
    return [epoch["valid_loss"] for epoch in run.history]


@pytest.mark.parametrize("options", WHOLE.values(), ids=WHOLE)
def test_loss_agrees_with_reference_and_changes_no_parameter(options):
    run = trained(**options)
    before = [array.tobytes() for array in run.model.arrays.values()]
    config, model = run.model.config, run.model
    own, seed = run.valid.workspaces[0], np.uint64(mix(np.uint64(0)))
    n = sampling.subsample(*own.text, VALID.ids, run.thresholds, seed)
    text = [array[:n].tolist() for array in own.text]
    matrices = {name: array.astype(np.float64) for name, array in model.arrays.items()}
    nats, predictions = reference.word2vec(
        matrices["emb_in"], matrices.get("emb_out", matrices["emb_in"]), matrices.get("proj", np.zeros((0, 0))), text,
        run.noise.tolist(), run.tree, model.first_node, config, len(own.space.hidden), 1e-30, 1e-30, int(mix(seed)),
    )  # fmt: skip
    assert len(run.valid.cuts) == 2 and predictions > 100
    assert run.valid.loss() == pytest.approx(nats / predictions, rel=1e-5)
    assert before == [array.tobytes() for array in model.arrays.values()]


@pytest.mark.parametrize("options", [{}, dict(threads=3, deterministic=True)], ids=str)
def test_training_is_the_same_with_and_without(options, monkeypatch):
    monkeypatch.setattr(word2vecrun, "CHUNK", 1000)
    runs = [trained(valid, **options) for valid in (VALID, None)]
    assert runs[0].model.emb_in.tobytes() == runs[1].model.emb_in.tobytes()
    assert [epoch["loss"] for epoch in runs[0].history] == [epoch["loss"] for epoch in runs[1].history]
    assert "valid_loss" not in runs[1].history[0] and len(set(losses(runs[0]))) == 2


def test_each_epoch_ends_before_its_loss_is_computed(monkeypatch):
    """All threads wait: no piece of the next epoch may have begun."""
    monkeypatch.setattr(word2vecrun, "CHUNK", 100)
    seen = []

    class Watched(Run):
        def report_epochs(self):
            seen.append(self.next)
            super().report_epochs()

    run = Watched(Word2Vec(VOCAB, Config(size=4, epochs=3, threads=4)), TEXT, valid=VALID)
    run.go()
    assert seen == [(len(run.cuts) - 1) * epoch for epoch in (1, 2, 3)] and len(losses(run)) == 3


def test_validation_loss(monkeypatch):
    """On few sentences the training loss falls on while the validation loss rises."""
    ids = np.random.default_rng(0).integers(1, len(VOCAB), 2000).astype(np.int32)
    ids[::11] = 0
    other = np.random.default_rng(1).integers(1, len(VOCAB), 2000).astype(np.int32)
    model = Word2Vec(VOCAB, Config(size=50, epochs=30, sample=0, lr=0.1))
    run = Run(model, encoded(ids, VOCAB), valid=encoded(other, VOCAB))
    run.go()
    assert run.history[-1]["loss"] < run.history[2]["loss"] - 0.1 and losses(run)[-1] > min(losses(run)) + 0.1
    assert losses(trained(encoded(np.array([1, 0, 2, 0], np.int32), VOCAB), epochs=1)) == [None]
    monkeypatch.setattr(word2vecrun, "CHUNK", 300)
    runs = [trained(epochs=1, threads=threads) for threads in (1, 3)]
    runs[1].model.emb_in[:], runs[1].model.emb_out[:] = runs[0].model.emb_in, runs[0].model.emb_out
    assert runs[0].valid.loss() == runs[1].valid.loss() == losses(runs[0])[0]


def test_validation_on_the_command_line(run, tmp_path, corpus):
    log, valid = tmp_path / "log", tmp_path / "valid.txt"
    valid.write_text("a b c zebra\n" + corpus.read_text()[:2000])
    given = "w2v", "-size", 4, "-iter", 2, "-threads", 1, "-min-count", 1, "-output", tmp_path / "v", "--log-json", log
    result = run(*given, "--valid", valid, corpus)
    assert result.exit_code == 0, result.output
    assert "validation text: " in result.stderr and "nats per prediction, valid loss " in result.stderr
    epochs = [json.loads(line) for line in log.read_text().splitlines()][:2]
    assert all(0 < epoch["valid_loss"] < 10 for epoch in epochs)
    manifest = json.loads((tmp_path / "v.run.json").read_text())
    assert str(valid) in json.dumps(manifest["inputs"]) and manifest["valid_loss"] == epochs[1]["valid_loss"]
    (valid := tmp_path / "valid.txt").write_text("zebra yak\n")
    result = run("w2v", "--valid", valid, corpus)
    assert result.exit_code == 1 and "valid.txt: no word of the vocabulary" in result.output


SENTENCES = [[f"w{k}" for k in RNG.zipf(1.3, 12) % 500] for _ in range(200)]
FEW = dict(size=8, epochs=2, min_count=1)


def runs_of(tmp_path, name="x.runs", settings=FEW, **options):
    options = {"output": tmp_path / name, "runs": 4, **options}
    tt.Word2Vec(**{"threads": 2, **settings}).fit(SENTENCES, **options)
    return Runs.read(str(tmp_path / name))


@pytest.mark.parametrize("tying", ["untied", "linear"])
def test_runs_without_resampling_are_single_runs_with_other_seeds(tmp_path, tying):
    runs = runs_of(tmp_path, settings=dict(FEW, tying=tying, seed=3), resample="none")
    assert runs.training["seeds"] == [3, 4, 5, 6]
    for k, (words, matrix) in enumerate(runs):
        vectors = tt.Word2Vec(**FEW, tying=tying, threads=1, seed=3 + k).fit(SENTENCES).vectors
        assert words == vectors.words
        np.testing.assert_array_equal(matrix, vectors.matrix.astype(np.float16))


def test_bytes_do_not_depend_on_the_number_of_threads(tmp_path):
    runs_of(tmp_path, "one")
    runs_of(tmp_path, "two", dict(FEW, threads=1))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_runs_on_samples_and_the_whole_text(tmp_path):
    """A run's word counts are those of documents drawn with replacement, so that rare words are missing in some."""
    runs = runs_of(tmp_path, runs=20)
    assert runs.training["documents"] == len(SENTENCES)
    assert runs.present.sum() == pytest.approx(20 * runs.counts.sum(), rel=0.01)
    assert (runs.present[:, 0] == len(SENTENCES)).all()  # as many line ends as documents
    assert len(np.unique([runs.counts, *runs.present], axis=0)) == 21  # no two samples are equal
    rare = runs.counts <= 2
    assert 0.05 < np.mean(runs.present[:, rare] == 0) < 0.5
    shuffled = runs_of(tmp_path, resample="shuffle")
    assert (shuffled.present == shuffled.counts).all()
    assert not np.array_equal(shuffled.matrix[0], shuffled.matrix[1]) and not len(shuffled.whole)
    # They have further seeds, and are the means of the intervals.
    runs = runs_of(tmp_path, runs=5)
    assert len(runs.whole) == 3
    for k, (words, matrix) in enumerate(runs.on_whole_text):
        vectors = tt.Word2Vec(**FEW, threads=1, seed=6 + k).fit(SENTENCES).vectors
        assert words == vectors.words
        np.testing.assert_array_equal(matrix, vectors.matrix.astype(np.float16))
    refused(lambda: runs_of(tmp_path, document="paragraph"), "document")
    refused(lambda: runs_of(tmp_path, settings=dict(FEW, lr=1e4, epochs=20, tying="linear")), "run", kind=tt.Diverged)


def test_a_stopped_run_keeps_finished_runs_and_resumes(tmp_path, monkeypatch):
    """The resumed run writes the same bytes as an uninterrupted one."""

    def wait(session, thread, k, work=ManyRuns.work):
        while session.model.finished.sum() > 7 and not session.runs[k].stopped:
            time.sleep(0.01)
        work(session, thread, k)

    settings, files = dict(FEW, threads=1), dict(output=tmp_path / "part.runs", checkpoint=tmp_path / "checkpoint")
    whole, model = runs_of(tmp_path, "whole", settings, runs=20), tt.Word2Vec(**settings)
    with monkeypatch.context() as patch:
        patch.setattr(ManyRuns, "work", wait)
        model.fit(SENTENCES, runs=20, on_epoch=lambda figures: figures["run"] < 6, **files)
    part, reported = Runs.read(str(tmp_path / "part.runs")), []
    assert len(part) == 5  # three of the eight are on the whole text
    np.testing.assert_array_equal(part.matrix, whole.matrix[:5])
    assert (len(model.runs), len(model.runs.whole)) == (5, 3)
    refused(lambda: model.runs.stability(["w1 + w2"]), "w1 + w2", kind=KeyError)
    tt.Word2Vec(**settings).fit(SENTENCES, runs=20, resume=True, on_epoch=reported.append, **files)
    assert (tmp_path / "part.runs").read_bytes() == (tmp_path / "whole").read_bytes() and len(reported) == 15
    again = functools.partial(tt.Word2Vec(**settings).fit, SENTENCES, resume=True, **files)
    for other in dict(runs=20, resample="shuffle"), dict(runs=20, write="out"):
        refused(lambda: again(**other), [*other][-1])
    refused(lambda: again(runs=21), "runs=20")  # on which the seeds of the runs on the whole text depend


@pytest.mark.parametrize("options", [
    dict(classes=3), dict(save_model="m.npz"), dict(valid=SENTENCES), dict(output="-"), dict(runs=0),
    dict(output="x.runs.gz"),
], ids=str)  # fmt: skip
def test_settings_of_a_single_run_are_refused(tmp_path, options):
    refused(lambda: runs_of(tmp_path, **options), kind=tt.Contradiction)


def test_results_in_python(tmp_path):
    model = tt.Word2Vec(**FEW, threads=1).fit(SENTENCES, runs=5, output=tmp_path / "x.runs")
    refused(lambda: model.vectors)
    for runs in model.runs, tt.Runs.load(tmp_path / "x.runs"):
        nearest = runs.most_similar("w1", 3)
        assert nearest[0]["cosine"] == pytest.approx(runs.similarity("w1", nearest[0]["neighbor"]).mean)
        assert 0 <= runs.stability(["w1"])[0] <= 1
        runs.counts = np.arange(len(runs.words)) // 4  # a slice lacks words
        refused(lambda: runs.stability(["w1"], len(runs.words) - 4), "too few for")
        assert {line["word"] for line in runs.shift(runs)} == set(runs.words) - {"</s>"}
        refused(lambda: runs.cosines("w1", "unknown"), kind=KeyError), refused(lambda: runs.most_similar(["w1", "w2"]))
    refused(lambda: tt.Word2Vec(**FEW, threads=1).fit(SENTENCES).runs)


@pytest.mark.parametrize("how, document", [(dict(field="text"), "record"), (dict(tokenize="sentences"), "line")])
def test_a_record_or_a_line_is_a_document(tmp_path, how, document):
    """A record of several lines, or a line of several sentences, is drawn as a whole."""
    pytest.importorskip("regex")
    texts = [f"start{k} {' '.join(line)} .\nEnd{k} x y" for k, line in enumerate(SENTENCES)]
    lines = [json.dumps({"text": text}) if document == "record" else text.replace("\n", " ") for text in texts]
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    options = dict(runs=3, output=tmp_path / "x.runs")
    tt.Word2Vec(**FEW, threads=1, **how).fit(tmp_path / "t.jsonl", **options)
    runs = Runs.read(str(tmp_path / "x.runs"))
    assert runs.training["documents"] == len(SENTENCES) and runs.training["document"] == document
    index = {word: row for row, word in enumerate(runs.words)}
    for k in range(len(SENTENCES)):
        np.testing.assert_array_equal(runs.present[:, index[f"start{k}"]], runs.present[:, index[f"End{k}"]])
    refused(lambda: runs_of(tmp_path, document="record"), kind=tt.Contradiction)
