"""Training that continues from earlier vectors."""

import numpy as np
import pytest
from refusals import refused

import tiedtools as tt

RNG = np.random.default_rng(5)
TYINGS = ["untied", "tied", "signs", "linear"]
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


def test_words_that_the_text_lacks_keep_their_vectors(saved):
    """They are neither centers nor negatives, since these are drawn by the counts of the text."""
    old, path = saved()
    new = tt.Word2Vec(**SMALL).fit(SECOND, init_from=path)
    absent = sorted(set(old.model.vocab.words) - {word for line in SECOND for word in line} - {"</s>"})
    assert len(absent) > 10
    for name in "emb_in", "emb_out":
        np.testing.assert_array_equal(rows(new, absent, name), rows(old, absent, name))


def test_counts_are_added_and_words_in_their_order(saved, tmp_path):
    old, path = saved()
    new = tt.Word2Vec(**{**SMALL, "min_count": 3}).fit(SECOND, init_from=path, grow=True, save_vocab=tmp_path / "v")
    counts = dict(zip(old.model.vocab.words, old.model.vocab.counts.tolist()))
    own = {}
    for word in (word for line in SECOND for word in line):
        own[word] = own.get(word, 0) + 1
    own["</s>"] = len(SECOND)
    expected = {word: counts.get(word, 0) + own.get(word, 0) for word in {*counts, *own}}
    expected = {word: count for word, count in expected.items() if word in counts or own[word] >= 3}
    vocab = new.model.vocab
    assert dict(zip(vocab.words, vocab.counts.tolist())) == expected
    assert (np.diff(vocab.counts[1:]) <= 0).all() and vocab.words[0] == "</s>"
    written = dict(line.split() for line in (tmp_path / "v").read_text().splitlines())
    assert {word: int(count) for word, count in written.items()} == expected


@pytest.mark.parametrize("name", ["v.txt", "v.npy", "v.npz:in"])
def test_any_vectors_are_a_start(saved, tmp_path, name):
    old, path = saved()
    if name == "v.npz:in":
        name = "first.npz:in"
    else:
        old.vectors.write(tmp_path / name)
    new = tt.Word2Vec(**SMALL).fit(SECOND, init_from=tmp_path / name, freeze="in")
    np.testing.assert_allclose(rows(new, old.model.vocab.words), old.model.emb_in, atol=1e-5)
    absent = sorted(set(old.model.vocab.words) - {word for line in SECOND for word in line} - {"</s>"})
    assert not rows(new, absent, "emb_out").any()


def test_the_command_takes_the_settings_of_the_model(saved, tmp_path, run):
    saved(architecture="skipgram", tying="tied", window=3)
    text = tmp_path / "text"
    text.write_text("".join(" ".join(line) + "\n" for line in SECOND))
    args = ["w2v", text, "--init-from", tmp_path / "first.npz", "-min-count", 1, "-threads", 1]
    assert run(*args, "-output", tmp_path / "v", "-save-model", tmp_path / "second.npz").exit_code == 0
    config = tt.load(tmp_path / "second.npz").model.config
    settings = config.size, config.architecture, config.tying, config.window, config.lr
    assert settings == (8, "skipgram", "tied", 3, 0.0125)
    result = run(*args, "--freeze", "out", "-output", tmp_path / "v")
    assert result.exit_code == 2 and "--freeze out" in result.stderr


def test_a_continued_run_resumes(saved, tmp_path):
    _, path = saved()
    options = dict(init_from=path, grow=True, freeze="old")
    whole = tt.Word2Vec(**SMALL).fit(SECOND, save_model=tmp_path / "whole.npz", no_manifest=True, **options)
    files = dict(checkpoint=tmp_path / "c", save_model=tmp_path / "part.npz", no_manifest=True)
    tt.Word2Vec(**SMALL).fit(SECOND, on_epoch=lambda figures: False, **files, **options)
    tt.Word2Vec(**SMALL).fit(SECOND, resume=True, **files, **options)
    assert (tmp_path / "part.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()
    assert whole.history
    refused(lambda: tt.Word2Vec(**SMALL).fit(SECOND, resume=True, **files, **{**options, "freeze": None}))


def test_runs_start_from_the_same_vectors(saved, tmp_path):
    old, path = saved()
    model = tt.Word2Vec(**SMALL).fit(SECOND, init_from=path, freeze="in", runs=3)
    vectors = old.vectors
    for words, matrix in model.runs:
        np.testing.assert_allclose(matrix, [vectors[word] for word in words], rtol=1e-3)


@pytest.mark.parametrize("settings, options", [
    (dict(size=9), {}), (dict(tying="tied"), {}), (dict(tying="tied"), dict(init_from="first.npz:in", freeze="in")),
    (dict(hs=True, negative=0), {}), ({}, dict(init_from=None, freeze="in")), ({}, dict(init_from="none.npz")),
    ({}, dict(init_from="checkpoint")), ({}, dict(freeze="all")), ({}, dict(read_vocab="v")),
], ids=str)  # fmt: skip
def test_what_cannot_be_continued_is_refused(saved, tmp_path, settings, options):
    saved()
    tt.Word2Vec(**SMALL).fit(FIRST, checkpoint=tmp_path / "checkpoint", save_vocab=tmp_path / "v")
    options = {"init_from": "first.npz", **options}
    options |= {name: str(tmp_path / options[name]) for name in ("init_from", "read_vocab") if options.get(name)}
    refused(lambda: tt.Word2Vec(**{**SMALL, **settings}).fit(SECOND, **options))


def test_texts_without_a_known_word(saved, caplog):
    _, path = saved()
    other = [["other", "words", "here"]] * 50
    refused(lambda: tt.Word2Vec(**SMALL).fit(other, init_from=path))
    tt.Word2Vec(**{**SMALL, "sample": 0}).fit(other, init_from=path, grow=True)
    assert any("none of its words" in record.getMessage() for record in caplog.records)
