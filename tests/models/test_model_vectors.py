"""Test vectors of all kinds of model files, read as `MODEL`, `MODEL:in`, `MODEL:out`, or `MODEL:sum`."""

import gzip
import os
import re

import lmcase
import numpy as np
import pytest
import rnnlmcase

from tiedtools.base.errors import TiedtoolsError
from tiedtools.files import modelfile
from tiedtools.files.modelfile import load_language_model
from tiedtools.models.rnnlm import program
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.vectors.check import Check
from tiedtools.vectors.vectors import Vectors, files_read


def word2vec(**options):
    model = Word2Vec(lmcase.VOCAB, Config(size=7, **options))
    model.emb_out[:] += np.random.default_rng(1).normal(size=model.emb_out.shape)
    return model


MODELS = {
    "w2v": lambda: word2vec(),
    "w2v tied": lambda: word2vec(tying="tied"),
    "w2v signs": lambda: word2vec(tying="signs"),
    "w2v tied+L": lambda: word2vec(tying="linear"),
    "w2v with hs": lambda: word2vec(hs=True),
    "lstm": lambda: lmcase.model(dtype="float32", hidden=17),
    "lstm tied": lambda: lmcase.model(tying="tied"),
    "lstm tied+L": lambda: lmcase.model(tying="linear", hidden=17),
    "rnnlm": lambda: rnnlmcase.model(dtype="float32"),
    "rnnlm with document vectors": lambda: rnnlmcase.model(**rnnlmcase.DOC),
}


def saved(model, folder, name="model.npz"):
    path = folder / name
    with open(path, "wb") as file:
        model.save(file)
    return path


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_input_and_output_vectors_are_read_from_a_model_file(make, tmp_path):
    model = make()
    path = saved(model, tmp_path)
    for suffix, which in (("", "in"), (":in", "in"), (":out", "out")):
        vectors, expected = Vectors.read(f"{path}{suffix}"), model.vectors(which)
        assert vectors.words == expected.words
        np.testing.assert_array_equal(vectors.matrix, expected.matrix)
    if getattr(model.config, "tying", None) == "signs":
        with pytest.raises(
            TiedtoolsError, match=f"^{path}: its input and output vectors differ only in signs.*; read {path}:in$"
        ):
            Vectors.read(f"{path}:sum")
    elif not getattr(model.config, "hs", False) and getattr(model.config, "hidden", 0) != 17:
        np.testing.assert_allclose(
            Vectors.read(f"{path}:sum").matrix, model.vectors("sum").matrix, rtol=1e-5, atol=1e-6
        )


def test_linear_tying_projects_the_input_vectors():
    model = word2vec(tying="linear")
    model.proj[:] = np.random.default_rng(2).normal(size=model.proj.shape)
    mapped = model.emb_in @ model.proj
    np.testing.assert_array_equal(model.vectors("sum").matrix, mapped + model.emb_in)
    np.testing.assert_array_equal(model.vectors("concat").matrix, np.hstack([mapped, model.emb_in]))
    np.testing.assert_array_equal(model.vectors("out").matrix, model.emb_in)


def test_commands_accept_the_suffix(run, tmp_path):
    path = saved(lmcase.model(), tmp_path)
    answers = [run("nn", f"{path}{suffix}", "w7", "-k", 3).stdout for suffix in ("", ":in", ":out")]
    assert answers[0] == answers[1] != answers[2] and answers[2].count("\n") == 3


def test_missing_or_invalid_vectors_are_rejected(tmp_path):
    path = saved(word2vec(hs=True, negative=0), tmp_path)
    assert Vectors.read(f"{path}:in").dim == 7
    with pytest.raises(
        TiedtoolsError, match="^.*model.npz: has no output vectors because it uses hierarchical softmax; read .*:in"
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
            modelfile.save(file, "word2vec", {}, ["a", "b", "c"], arrays)
        for which in ("in", "out", "sum"):
            with pytest.raises(TiedtoolsError, match=f"^{path}: has no (in|out)put vectors for its 3 words"):
                Vectors.read(f"{path}:{which}")
    for proj in np.ones((2, 3)), np.ones((2, 2), int), np.ones(2):
        with open(path, "wb") as file:
            modelfile.save(file, "word2vec", {}, ["a", "b", "c"], dict(emb_in=np.ones((3, 2)), proj=proj))
        with pytest.raises(TiedtoolsError, match="cannot be added"):
            Vectors.read(f"{path}:sum")
    (tmp_path / "folder.npz").mkdir()
    for name, reason in ("none", "No such file"), ("folder", "Is a directory"):
        with pytest.raises(TiedtoolsError, match=f"{name}.npz: cannot be read: {reason}"):
            Vectors.read(tmp_path / f"{name}.npz:out")


def test_models_are_recognized_by_content(tmp_path):
    model = word2vec()
    for name in "model", "model.txt", "model.npy", "other:out", "a b\n:in:out", "%s{}", "-":
        path = str(saved(model, tmp_path, name))
        for suffix, which in (("", "in"), (":in", "in"), (":out", "out"), (":sum", "sum")):
            np.testing.assert_array_equal(Vectors.read(path + suffix).matrix, model.vectors(which).matrix)
            assert files_read(path + suffix) == [path]
            assert Check(path + suffix).format == "model"


def test_vectors_are_read_from_rnnlm_files(tmp_path):
    model = rnnlmcase.model(dtype="float32")
    for binary in (False, True):
        path = tmp_path / "rnnlm"
        with open(path, "wb") as file:
            program.write(file, model, binary)
        for which in ("in", "out"):
            vectors, expected = Vectors.read(f"{path}:{which}"), model.vectors(which)
            assert vectors.words == expected.words
            np.testing.assert_allclose(vectors.matrix, expected.matrix, rtol=1e-6)


def test_text_vectors_that_look_like_an_rnnlm_file(tmp_path):
    (tmp_path / "v").write_text("version: 10 2\nb 3 4\n")
    assert Vectors.read(tmp_path / "v").words == ["version:", "b"]


def test_file_names_that_end_like_a_suffix(tmp_path):
    path = saved(word2vec(), tmp_path, "m")
    other = Vectors(["a"], [[1, 2]])
    other.write(tmp_path / "v:in")
    assert Vectors.read(tmp_path / "v:in").words == ["a"]
    for name in ("m:in", "none.npz:in"):
        with pytest.raises(TiedtoolsError, match="would be read as a model file"):
            other.write(tmp_path / name)
    os.rename(tmp_path / "v:in", tmp_path / "m:out")
    assert Vectors.read(f"{path}:out").words == ["a"]
    with pytest.raises(TiedtoolsError, match=f"^{tmp_path}/m:out: is not a model file, so :sum does not apply; "):
        Vectors.read(tmp_path / "m:out:sum")


def test_piped_and_compressed_models_are_rejected(run, tmp_path):
    path = saved(word2vec(), tmp_path)
    packed = tmp_path / "model.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for source, name in ((packed, packed), ("-", "standard input")):
        for command in ("nn", "check"):
            result = run(command, source, *["w1"] * (command == "nn"), input=path.read_bytes())
            assert result.exit_code == 1
            assert "contains a model file; give the name of an uncompressed file" in result.stdout + result.stderr
            assert command == "check" or result.stderr.startswith(f"tiedtools: {name}: ")
    assert "standard input: models can only be read from a file; give the name" in run("ppl", "-", input=b"").stderr
    os.mkfifo(tmp_path / "pipe")
    for data in (b"PK\x03\x04", b"version: 10\n"):
        end = os.open(tmp_path / "pipe", os.O_RDWR)
        os.write(end, data)
        with pytest.raises(
            TiedtoolsError, match="pipe: a model cannot be read from a pipe; give the name of a regular file"
        ):
            load_language_model(tmp_path / "pipe")
        os.close(end)


@pytest.mark.parametrize(
    "command", ["nn {} a", "nn {}:out a", "convert {} v", "pca {}", "check {}:out", "ppl {}", "generate {}"]
)
def test_errors_distinguish_checkpoints_from_models(run, tmp_path, command):
    path = tmp_path / "run"
    with open(path, "wb") as file:
        modelfile.save(file, modelfile.CHECKPOINT, {}, ["a"], dict(emb_in=np.ones((1, 2))))
    result = run(*command.format(path).split())
    told = f"{path}: is a checkpoint, not a model; rerun the command that wrote it with --resume --save-model FILE"
    assert result.exit_code == 1 and told in re.sub("^tiedtools: ", "", result.stderr or result.stdout)
