"""What users of gensim type: it gives gensim's result, or an error that names the line to type."""

import io
import re
import sys
import tempfile

import numpy as np
import pytest
from common import refused, regex_or_skip
from listening import Terminal

import tiedtools as tt
from tiedtools.base.aliases import ALIASES, METHODS, UNAVAILABLE
from tiedtools.runs.progress import Bar, Callbacks
from tiedtools.text.sentences import Sentences
from tiedtools.vectors.gensimnames import GensimNames

WORDS = ["king", "queen", "man", "woman", "apple", "pear", "river", "lake"]
SENTENCES = [WORDS[:4], WORDS[2:6], WORDS[4:]] * 30
SMALL = dict(vector_size=8, min_count=1, workers=1, seed=3)

QUERIES = """
wv["king"]
wv[["king", "pear"]]
wv["king", "pear"]
wv.get_vector("king")
wv.get_vector("king", norm=True)
wv.vectors
wv.vector_size
wv.index_to_key
wv.key_to_index["pear"]
wv.get_index("pear"), wv.get_index("plum", -1)
wv.has_index_for("pear"), wv.has_index_for("plum"), "pear" in wv, "plum" in wv, len(wv)
wv.get_normed_vectors()
wv.most_similar("king", topn=3)
wv.most_similar(positive=["king", "woman"], negative=["man"])
wv.most_similar("king", negative=None, restrict_vocab=4)
wv.similar_by_word("king", 3)
wv.similar_by_key("king", restrict_vocab=5)
wv.similar_by_vector(wv["king"] + wv["pear"], topn=3)
wv.similarity("king", "queen")
wv.distance("king", "queen")
wv.distances("king", None)
wv.distances("king", ["queen", "lake"])
wv.distances(wv["king"] - wv["man"])
wv.doesnt_match(["king", "queen", "man", "lake"])
wv.n_similarity(["king", "queen"], ["man", "woman", "plum"])
wv.rank("king", "pear")
wv.rank("king", "king")
wv.closer_than("king", "pear")
wv.most_similar_to_given("king", ["pear", "lake", "man"])
wv.get_mean_vector(["king", "plum", wv["pear"] * 3])
wv.get_mean_vector(["king", "pear"], weights=[2, -1], pre_normalize=False, post_normalize=True)
"""


@pytest.fixture(scope="module")
def vectors():
    return tt.Vectors(WORDS, np.random.default_rng(5).standard_normal((8, 6)))


@pytest.fixture(scope="module")
def model():
    return tt.Word2Vec(sentences=SENTENCES, **SMALL)


def assert_alike(ours, theirs):
    """Check that nested results are equal, numbers up to rounding."""
    if isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for pair in zip(ours, theirs):
            assert_alike(*pair)
    elif isinstance(theirs, str | bool):
        assert ours == theirs
    else:
        np.testing.assert_allclose(ours, theirs, atol=1e-6)


@pytest.mark.parametrize("line", QUERIES.split("\n")[1:-1])
def test_queries_have_the_results_of_gensim(vectors, line):
    pytest.importorskip("gensim")
    assert_alike(*(eval(line, {"wv": wv}) for wv in (vectors, vectors.to_gensim())))


@pytest.mark.parametrize("binary", [False, True])
def test_files_are_exchanged_with_gensim(tmp_path, binary):
    vectors = tt.Vectors(["</s>", "é", "a\u00a0b", *WORDS], np.random.default_rng(5).standard_normal((11, 6)))
    KeyedVectors = pytest.importorskip("gensim.models").KeyedVectors
    vectors.save_word2vec_format(tmp_path / "ours", binary=binary)
    theirs = KeyedVectors.load_word2vec_format(str(tmp_path / "ours"), binary=binary)
    assert theirs.index_to_key == vectors.words
    np.testing.assert_array_equal(theirs.vectors, tt.load(tmp_path / "ours").matrix)
    theirs.save_word2vec_format(str(tmp_path / "theirs"), binary=binary)
    read = tt.Vectors.load_word2vec_format(tmp_path / "theirs", None, binary, "UTF-8", "ignore", 3)
    assert read.words == theirs.index_to_key[:3] and read.rank("é", "é") == 1
    np.testing.assert_array_equal(read.matrix, theirs.vectors[:3])
    for load in tt.load, tt.Vectors.load:
        np.testing.assert_array_equal(load(tmp_path / "theirs").matrix, theirs.vectors)


def test_models_have_vectors_and_counts_and_are_trained_by_the_constructor(tmp_path, model):
    assert model.wv.index_to_key == model.vectors.words
    assert [model.wv.get_vecattr(word, "count") for word in WORDS] == [30, 30, 60, 60, 60, 60, 30, 30]
    model.wv.words.sort(), model.wv.counts.sort()  # of copies
    model.save(m := tmp_path / "m.npz")
    model.fit(SENTENCES, output=(v := tmp_path / "v.txt"), manifest=tmp_path / "v.txt.manifest.json")
    for loaded in tt.load(m).wv, tt.Word2Vec.load(m, mmap="r").wv, tt.KeyedVectors.load(v, mmap="r"), tt.load(v):
        np.testing.assert_array_equal(loaded.counts, model.wv.counts)
        assert loaded.restrict(["pear", "plum", "king"]).counts.tolist() == [60, 30] and loaded[:2].counts[1] == 60
    assert isinstance(output := tt.load(f"{tmp_path}/m.npz:out"), tt.Vectors)
    (tmp_path / "m.npz").unlink()
    assert output[:2].counts.tolist() == model.wv.counts[:2].tolist()
    (tmp_path / "text").write_text("".join(" ".join(sentence) + "\n" for sentence in SENTENCES))
    trained = tt.Word2Vec(**SMALL).fit(SENTENCES)
    for other in model, tt.Word2Vec(SENTENCES, **SMALL), tt.Word2Vec(corpus_file=tmp_path / "text", **SMALL):
        np.testing.assert_array_equal(other.wv.vectors, trained.vectors.matrix)
    with pytest.raises(TypeError, match="`sentences` and `corpus_file`"):
        tt.Word2Vec(SENTENCES, corpus_file="text")


@pytest.mark.parametrize(
    "typed, own",
    [
        (dict(SMALL, tie_signs=False), dict(size=8, min_count=1, threads=1, seed=3)),
        (dict(sg=1, iter=3, alpha=0.1, hs=1), dict(architecture="skipgram", epochs=3, lr=0.1, hs=True)),
        (dict(sg=0, hs=0, cbow_mean=0, learning_rate=0.1), dict(architecture="cbow", cbow_sum=True, lr=0.1)),
        (dict(cbow=0, ns_exponent=0.5, epochs=2), dict(architecture="skipgram", ns_exponent=0.5, epochs=2)),
        (dict(cbow=np.True_, cbow_mean=1, shrink_windows=0, tying="tied+L"), dict(fixed_window=True, tying="linear")),
        (dict(architecture="skip-gram", tie_linear=True), dict(architecture="skipgram", tying="linear")),
    ],
    ids=str,
)  # fmt: skip
def test_settings_have_the_names_of_gensim(typed, own):
    assert tt.Word2Vec(**typed).configured == tt.Word2Vec(**own).configured
    for name in ALIASES:
        refused(lambda: tt.Word2Vec(**{name: [1]}), kind=tt.Contradiction)


def test_names_of_cells_and_settings_without_equivalent():
    for name in "gru", "rhn":
        model = tt.LanguageModel(name, workers=1, iter=2, tying="tied+L")
        assert (model.kind, model.configured[0].cell, model.configured[0].tying) == ("lm", name, "linear")
        assert model.configured[1].epochs == 2
        refused(lambda: tt.LanguageModel(name, cell="lstm"), f"`cell` is already {name}")
        with pytest.raises(AttributeError, match="init_from"):
            _ = model.train
    for name, remedy in UNAVAILABLE.items():
        with pytest.raises(TypeError, match=re.escape(f"unknown setting `{name}`; {remedy}")):
            tt.Word2Vec(**{name: 1})
    for name, meant in dict(ws="window", dim="size", vectorsize="size", minCount="min_count", maxn="max_n").items():
        with pytest.raises(TypeError, match=meant):
            tt.Word2Vec(**{name: 1})
    refused(lambda: tt.Word2Vec(workers=1, threads=1), "`workers` is another name of `threads`", kind=TypeError)


def test_methods_without_equivalent_say_what_to_type(model, vectors):
    """Each remedy names something that exists, and `hasattr` is False."""
    for owner, names in (model, METHODS), (vectors, GensimNames.instead):
        for name in names:
            assert not hasattr(owner, name)
            with pytest.raises(AttributeError, match=f"has no `{name}`; use") as error:
                getattr(owner, name)
            assert isinstance(error.value, tt.TiedtoolsError)
            remedy = re.search(r"`(tiedtools\.)?(\w+)", str(error.value).partition("use ")[2])[2]
            assert hasattr(tt if "`tiedtools." in str(error.value) and remedy[:3] == "eva" else owner, remedy)
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            _ = owner.nothing


def test_vectors_are_containers_and_a_data_frame(tmp_path, vectors):
    """They are computed when they are indexed."""
    vectors.write(tmp_path / "m.bin", "fasttext")
    read = tt.load(tmp_path / "m.bin")
    assert repr(read) == repr(vectors) and read._repr_html_() == vectors._repr_html_()
    assert read.rank("king", "pear") == vectors.rank("king", "pear") and read[2:4].words == WORDS[2:4]
    np.testing.assert_allclose(np.asarray(read), vectors.matrix, rtol=1e-6)
    np.testing.assert_allclose([row for _, row in read.restrict(["pear", "king"]).items()], vectors[["pear", "king"]])
    assert vectors.shape == np.asarray(vectors).shape == (8, 6) and vectors[-2:].words == WORDS[-2:]
    assert np.asarray(vectors, np.float64).dtype == np.float64 and np.shares_memory(np.asarray(vectors), vectors.matrix)
    assert not np.shares_memory(np.array(vectors), vectors.matrix)
    for each in (vectors, read) if np.__version__ >= "2" else ():
        with pytest.raises(ValueError):
            np.array(each, float, copy=False)
    assert [(word, row.tolist()) for word, row in vectors.items()] == [(w, vectors[w].tolist()) for w in WORDS]
    assert vectors.restrict(np.int64(3)).words == vectors[:3].words == WORDS[:3] and vectors.counts is None
    refused(lambda: vectors.get_vecattr("king", "count"), "no count is known")
    assert "8 words, 6 dimensions: king, queen" in repr(vectors) and "lake" in vectors._repr_html_()
    odd = tt.Vectors([f"<{k}>\n" * 99 for k in range(10**4)], np.zeros((10**4, 300)))
    assert len(repr(odd)) <= 200 and "\n" not in repr(odd)
    assert "<0>" not in odd._repr_html_() and odd._repr_html_().count("<tr>") == 10
    pytest.importorskip("pandas")
    assert vectors.to_frame().index.tolist() == WORDS
    np.testing.assert_array_equal(vectors.to_frame().loc["pear"], vectors["pear"])


def test_a_used_up_generator_is_called_that(model):
    lm = tt.LanguageModel("rnnlm", size=4, epochs=1).fit(SENTENCES)
    model.fit(generator := (sentence for sentence in SENTENCES))
    for use in model.fit, lm.perplexity, lm.score:
        with pytest.raises(ValueError, match="this generator is exhausted"):
            use(generator)
    Sentences.__new__(Sentences).close()  # Python also closes a source whose constructor failed; 3.13 prints the errors
    for use in model.fit, lm.perplexity, lm.score:
        for text in "the king", "king":
            with pytest.raises(FileNotFoundError, match=rf"^'{text}': no such file; .* \['{text}'.split\(\), ...\]"):
                use(text)
        with pytest.raises(FileNotFoundError, match="^king.txt: cannot be read") as error:
            use("king.txt")
        assert error.value.filename == "king.txt"
    assert lm.perplexity(["the king".split()]) > 0


def test_errors_are_those_of_python(tmp_path, vectors):
    for call, kind in {
        lambda: vectors["plum"]: KeyError,
        lambda: vectors.get_mean_vector(["plum"]): ValueError,
        lambda: vectors.get_mean_vector(["king"], weights=[1, 2]): ValueError,
        lambda: vectors.most_similar(3): TypeError,
        lambda: vectors.most_similar_to_given("king", iter(())): ValueError,
        lambda: vectors.n_similarity("king", "queen"): TypeError,
        lambda: tt.Word2Vec(min_count=1).fit([{"text": "a b"}] * 9): TypeError,
        lambda: tt.documents([{"text": "a b"}], "text"): TypeError,
        lambda: tt.SentenceVectors(vectors, 0.1).word_vectors: tt.TiedtoolsError,
        lambda: tt.Word2Vec().fit(open(tmp_path / "new", "w")): tt.TiedtoolsError,
        lambda: tt.Word2Vec().fit(open(tmp_path / "new"), output=tmp_path / "new"): tt.Contradiction,
        lambda: vectors.most_similar("king", topn=-1): ValueError,
        lambda: tt.Word2Vec(size=0): ValueError,
        lambda: tt.Word2Vec(size="8"): TypeError,
        lambda: tt.Word2Vec(3): TypeError,
        lambda: tt.load(tmp_path / "none.txt"): FileNotFoundError,
        lambda: tt.Word2Vec().fit(tmp_path): OSError,
        lambda: vectors.write(tmp_path / "none" / "v.txt"): OSError,
    }.items():  # fmt: skip
        with pytest.raises(kind) as error:
            call()
        assert isinstance(error.value, tt.TiedtoolsError) and "\n" not in str(error.value), kind


def test_outputs_and_texts_of_notebooks(monkeypatch, tmp_path, model):
    """Streams may be replaced by others, and sys.path have a Path."""
    monkeypatch.setattr("sys.stdout", io.StringIO())
    monkeypatch.setattr("sys.stderr", None)
    regex_or_skip()
    monkeypatch.setattr("sys.path", [tmp_path, *sys.path])
    texts = [" ".join(sentence) for sentence in SENTENCES] * 1000
    assert sum(1 for _ in tt.tokenize(texts, threads=2)) == len(texts)
    with tempfile.NamedTemporaryFile("w+") as text:
        text.write("\n".join(texts[:90])), text.seek(0)
        model.fit(text, progress=True, save_model=tmp_path / "m.npz", save_vocab=tmp_path / "vocab")
    assert tt.load(tmp_path / "m.npz").wv.words == model.wv.words
    refused(lambda: model.wv.write("-"), "name a file to write")


def test_fit_shows_a_bar_on_a_terminal(monkeypatch, model):
    """What a callback prints is above the bar."""
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)  # imported by tests of notebooks
    for stream, progress, shown in (Terminal(), None, True), (Terminal(), False, False), (io.StringIO(), None, False):
        monkeypatch.setattr("sys.stderr", stream)
        model.fit(SENTENCES, progress=progress)
        assert ("ETA" in stream.getvalue()) == shown
    stream.close(), model.fit(SENTENCES)
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("sys.stdout", stream)
    callbacks = Callbacks(lambda figures: print("epoch 1"), listener=Bar())
    callbacks.begin(100)
    callbacks.epoch(loss=1.0)
    callbacks.close()
    before, _, after = stream.getvalue().partition("epoch 1\n")
    assert before.rstrip(" ").endswith("\r") and "%" in after
