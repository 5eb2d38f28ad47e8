"""Training of many runs, and of the two sides of a permutation test."""

import json

import numpy as np
import pytest
from refusals import refused

import tiedtools as tt
from tiedtools.vectors.runs import Runs

RNG = np.random.default_rng(5)
SENTENCES = [[f"w{k}" for k in RNG.zipf(1.3, 12) % 500] for _ in range(200)]
SMALL = dict(size=8, epochs=2, min_count=1)


def trained(tmp_path, name="x.runs", settings=SMALL, **options):
    options = {"output": tmp_path / name, "runs": 4, **options}
    tt.Word2Vec(**{"threads": 2, **settings}).fit(SENTENCES, **options)
    return Runs.read(str(tmp_path / name))


@pytest.mark.parametrize("tying", ["untied", "linear"])
def test_runs_without_resampling_are_single_runs_with_other_seeds(tmp_path, tying):
    runs = trained(tmp_path, settings=dict(SMALL, tying=tying, seed=3), resample="none")
    assert runs.training["seeds"] == [3, 4, 5, 6]
    for k, (words, matrix) in enumerate(runs):
        vectors = tt.Word2Vec(**SMALL, tying=tying, threads=1, seed=3 + k).fit(SENTENCES).vectors
        assert words == vectors.words
        np.testing.assert_array_equal(matrix, vectors.matrix.astype(np.float16))


def test_bytes_do_not_depend_on_the_number_of_threads(tmp_path):
    trained(tmp_path, "one")
    trained(tmp_path, "two", dict(SMALL, threads=1))
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_samples_of_documents_have_their_counts(tmp_path):
    """A run's word counts are those of documents drawn with replacement, so that rare words are missing in some."""
    runs = trained(tmp_path, runs=20)
    assert runs.training["documents"] == len(SENTENCES)
    assert runs.present.sum() == pytest.approx(20 * runs.counts.sum(), rel=0.01)
    assert (runs.present[:, 0] == len(SENTENCES)).all()  # as many line ends as documents
    assert not (runs.present == runs.counts).all(1).any()
    rare = runs.counts <= 2
    assert 0.05 < np.mean(runs.present[:, rare] == 0) < 0.5
    shuffled = trained(tmp_path, resample="shuffle")
    assert (shuffled.present == shuffled.counts).all()
    assert not np.array_equal(shuffled.matrix[0], shuffled.matrix[1]) and not len(shuffled.whole)


def test_runs_on_the_whole_text_are_single_runs(tmp_path):
    """They have further seeds, and are the means of the intervals."""
    runs = trained(tmp_path, runs=5)
    assert len(runs.whole) == 3
    for k, (words, matrix) in enumerate(runs.on_whole_text):
        vectors = tt.Word2Vec(**SMALL, threads=1, seed=6 + k).fit(SENTENCES).vectors
        assert words == vectors.words
        np.testing.assert_array_equal(matrix, vectors.matrix.astype(np.float16))


def test_a_stopped_run_keeps_finished_runs_and_resumes(tmp_path):
    """The resumed run writes the same bytes as an uninterrupted one."""
    settings = dict(SMALL, epochs=50, threads=1)
    whole = trained(tmp_path, "whole", settings, runs=20)
    model = tt.Word2Vec(**settings)
    files = dict(output=tmp_path / "part.runs", checkpoint=tmp_path / "checkpoint")
    model.fit(SENTENCES, runs=20, on_epoch=lambda figures: figures["run"] < 6, **files)
    part = Runs.read(str(tmp_path / "part.runs"))
    assert 2 <= len(part) < 20
    np.testing.assert_array_equal(part.matrix, whole.matrix[: len(part)])
    reported = []
    tt.Word2Vec(**settings).fit(SENTENCES, runs=20, resume=True, on_epoch=reported.append, **files)
    assert (tmp_path / "part.runs").read_bytes() == (tmp_path / "whole").read_bytes()
    assert len(reported) == 20 - len(part)
    with pytest.raises(tt.TiedtoolsError, match="resample"):
        tt.Word2Vec(**settings).fit(SENTENCES, runs=4, resample="shuffle", resume=True, **files)


@pytest.mark.parametrize("options", [
    dict(classes=3), dict(save_model="m.npz"), dict(valid=SENTENCES), dict(output="-"), dict(runs=0),
], ids=str)  # fmt: skip
def test_settings_of_a_single_run_are_refused(tmp_path, options):
    refused(lambda: trained(tmp_path, **options), kind=tt.Contradiction)


def test_a_single_document_cannot_be_resampled(tmp_path):
    refused(lambda: trained(tmp_path, document="paragraph"), "document")


def test_a_diverged_run_is_named(tmp_path):
    with pytest.raises(tt.Diverged, match="run"):
        trained(tmp_path, settings=dict(SMALL, lr=1e4, epochs=20, tying="linear"))


def test_results_in_python(tmp_path):
    model = tt.Word2Vec(**SMALL, threads=1).fit(SENTENCES, runs=5, output=tmp_path / "x.runs")
    refused(lambda: model.vectors)
    for runs in model.runs, tt.Runs.load(tmp_path / "x.runs"):
        nearest = runs.most_similar("w1", 3)
        assert nearest[0]["cosine"] == pytest.approx(runs.similarity("w1", nearest[0]["neighbor"]).mean)
        assert 0 <= runs.stability(["w1"])[0] <= 1
        assert {line["word"] for line in runs.shift(runs)} == set(runs.words) - {"</s>"}
        with pytest.raises(KeyError):
            runs.similarity("w1", "unknown")
    refused(lambda: tt.Word2Vec(**SMALL, threads=1).fit(SENTENCES).runs)


def test_a_record_is_a_document(tmp_path):
    """A record of several lines is drawn as a whole."""
    records = ({"text": f"start{k} " + " ".join(line) + f"\nend{k} x y"} for k, line in enumerate(SENTENCES))
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    options = dict(runs=3, output=tmp_path / "x.runs")
    tt.Word2Vec(**SMALL, threads=1, field="text").fit(tmp_path / "t.jsonl", **options)
    runs = Runs.read(str(tmp_path / "x.runs"))
    assert runs.training["documents"] == len(SENTENCES) and runs.training["document"] == "record"
    index = {word: row for row, word in enumerate(runs.words)}
    for k in range(len(SENTENCES)):
        np.testing.assert_array_equal(runs.present[:, index[f"start{k}"]], runs.present[:, index[f"end{k}"]])
    refused(lambda: trained(tmp_path, document="record"), kind=tt.Contradiction)
