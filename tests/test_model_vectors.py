"""The vectors in model files of every kind, by `MODEL.npz`, `MODEL.npz:in` and `MODEL.npz:out`."""

import lmcase
import numpy as np
import pytest
import rnnlmcase

from tiedtools import modelfile
from tiedtools.errors import TiedtoolsError
from tiedtools.models.word2vec import Config, Word2Vec
from tiedtools.vectors import Vectors


def word2vec(**options):
    model = Word2Vec(lmcase.VOCAB, Config(size=7, **options))
    model.emb_out[:] += np.random.default_rng(1).normal(size=model.emb_out.shape)
    return model


MODELS = {
    "w2v": lambda: word2vec(),
    "w2v tied": lambda: word2vec(sharing="tied"),
    "w2v tied+L": lambda: word2vec(sharing="linear"),
    "w2v with hs": lambda: word2vec(hs=True),
    "lstm": lambda: lmcase.model(dtype="float32", hidden=17),
    "lstm tied": lambda: lmcase.model(sharing="tied"),
    "lstm tied+L": lambda: lmcase.model(sharing="linear", hidden=17),
    "rnnlm": lambda: rnnlmcase.model(dtype="float32"),
    "rnnlm with documents": lambda: rnnlmcase.model(**rnnlmcase.DOC),
}


def saved(model, folder):
    path = folder / "model.npz"
    with open(path, "wb") as file:
        model.save(file)
    return path


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_model_file_gives_both_kinds_of_vectors(make, tmp_path):
    model = make()
    path = saved(model, tmp_path)
    for suffix, which in (("", "in"), (":in", "in"), (":out", "out")):
        vectors, expected = Vectors.read(f"{path}{suffix}"), model.vectors(which)
        assert vectors.words == expected.words
        np.testing.assert_array_equal(vectors.matrix, expected.matrix)
    if not getattr(model.config, "hs", False) and getattr(model.config, "hidden", 0) != 17:
        np.testing.assert_allclose(
            Vectors.read(f"{path}:sum").matrix, model.vectors("sum").matrix, rtol=1e-5, atol=1e-6
        )


def test_the_sum_of_what_meets_in_a_score():
    model = word2vec(sharing="linear")
    model.proj[:] = np.random.default_rng(2).normal(size=(7, 7))
    mapped = model.emb_in @ model.proj
    np.testing.assert_array_equal(model.vectors("sum").matrix, mapped + model.emb_in)
    np.testing.assert_array_equal(model.vectors("concat").matrix, np.hstack([mapped, model.emb_in]))
    np.testing.assert_array_equal(model.vectors("out").matrix, model.emb_in)


def test_commands_take_the_suffix(run, tmp_path):
    path = saved(lmcase.model(), tmp_path)
    answers = [run("nn", f"{path}{suffix}", "w7", "-k", 3).stdout for suffix in ("", ":in", ":out")]
    assert answers[0] == answers[1] != answers[2] and answers[2].count("\n") == 3


def test_files_without_such_vectors_are_refused(tmp_path):
    path = saved(word2vec(hs=True, negative=0), tmp_path)
    assert Vectors.read(f"{path}:in").dim == 7
    with pytest.raises(
        TiedtoolsError, match="^.*model.npz: hierarchical softmax has no output word vectors; read .*:in"
    ):
        Vectors.read(f"{path}:out")
    faulty = (
        dict(values=np.ones(6)),
        dict(word_out=np.ones((3, 2))),
        dict(emb_in=np.ones((3, 2), int)),
        dict(emb_in=np.ones((2, 2))),
    )
    for arrays in faulty:
        with open(path, "wb") as file:
            modelfile.save(file, "checkpoint", {}, ["a", "b", "c"], arrays)
        for which in ("in", "out", "sum"):
            with pytest.raises(TiedtoolsError, match=f"^{path}: holds no (in|out)put vectors for its 3 words"):
                Vectors.read(f"{path}:{which}")
    for proj in np.ones((2, 3)), np.ones((2, 2), int), np.ones(2):
        with open(path, "wb") as file:
            modelfile.save(file, "word2vec", {}, ["a", "b", "c"], dict(emb_in=np.ones((3, 2)), proj=proj))
        with pytest.raises(TiedtoolsError, match="do not go together"):
            Vectors.read(f"{path}:sum")
    (tmp_path / "folder.npz").mkdir()
    for name, reason in ("none", "No such file"), ("folder", "Is a directory"):
        with pytest.raises(TiedtoolsError, match=f"{name}.npz: cannot be read: {reason}"):
            Vectors.read(tmp_path / f"{name}.npz:out")
