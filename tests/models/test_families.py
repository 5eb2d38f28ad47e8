"""Test the table of model families, and vectors of all kinds of model files."""

import gzip
import os
import pathlib
import re

import lmcase
import numpy as np
import pytest
import rnnlmcase
from common import ROOT, refused, save
from toylm import ToyLM

import tiedtools as tt
from tiedtools.base.errors import TiedtoolsError
from tiedtools.files import modelfile
from tiedtools.files.families import FAMILIES, LANGUAGE, Family
from tiedtools.files.modelfile import load_language_model, load_model, load_translator
from tiedtools.models.lm.trainer import LstmTrainer
from tiedtools.models.rnnlm import program
from tiedtools.models.word2vec.config import Config
from tiedtools.models.word2vec.model import Word2Vec
from tiedtools.vectors.check import Check
from tiedtools.vectors.vectors import Vectors, files_read

SENTENCES = [["the", "cat", "sat"], ["the", "cat"], ["a", "cat", "sat"]] * 20


class ToyTrainer(LstmTrainer):
    Model = ToyLM


TOY = Family(
    "toy",
    says=LANGUAGE,
    model="toylm:ToyLM",
    trainer="test_families:ToyTrainer",
    estimator="tiedtools.api.language:LanguageModel",
    configure="tiedtools.models.lm.config:configure",
    warm_up={"toy": []},
)


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """Path of a model file of the toy family, which the table has."""
    monkeypatch.setitem(FAMILIES, "toy", TOY)
    path = str(tmp_path / "toy.npz")
    tt.LanguageModel("toy", epochs=1, batch=2, steps=3, valid_share=0.0, lr=1.0).fit(SENTENCES, save_model=path)
    return path


def test_a_toy_family_is_one_row(run, saved, tmp_path, monkeypatch):
    (text := tmp_path / "text").write_text("the cat sat\n")
    for model in load_model(saved), load_language_model(saved), tt.load(saved).model:
        assert type(model) is ToyLM
    assert tt.load(saved).kind == "toy" and tt.load(saved).settings["batch"] == 2
    ppl = float(re.search(r" ppl= ([\d.]+) ", run("ppl", saved, text).stdout)[1])
    assert ppl == pytest.approx(tt.load(saved).perplexity([["the", "cat", "sat"]]), rel=1e-4)
    np.testing.assert_array_equal(tt.Vectors.read(saved).matrix, model.W)
    assert run("nn", saved, "cat").stdout.count("\n") == 4
    refused(lambda: load_translator(saved), "toy.npz: is a language model, not a translation model; give a model of")
    refused(lambda: tt.Vectors.read(f"{saved}:source"), "has no source vectors; give a translation model, of")
    refused(lambda: tt.LanguageModel("toys"), "is not one of lstm, lm, rnnlm, ", "toy")
    monkeypatch.delitem(FAMILIES, "toy")
    refused(lambda: tt.load(saved), "is a model of kind 'toy'")


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_rows_name_classes(family):
    assert family.get("model").kind == family.kind
    assert {*family.get("estimator").sides} == {*family.sides}
    assert callable(family.get("trainer"))


def test_nobody_else_asks_for_a_kind():
    """Comparisons with the name of a family, outside the table and the option that chooses a cell."""
    pattern = re.compile(rf"""kind\b[^=\n]*[!=]= ["']({"|".join(FAMILIES)})["']""")
    package = pathlib.Path(ROOT, "tiedtools")
    assert [path.name for path in package.rglob("*.py") if pattern.search(path.read_text())] == []


def word2vec(**options):
    model = Word2Vec(lmcase.VOCAB, Config(size=7, **options))
    model.emb_out[:] += np.random.default_rng(1).normal(size=model.emb_out.shape)
    return model


MODELS = {
    "w2v": lambda: word2vec(), "w2v tied": lambda: word2vec(tying="tied"), "w2v signs": lambda: word2vec(tying="signs"),
    "w2v tied+L": lambda: word2vec(tying="linear"), "w2v with hs": lambda: word2vec(hs=True),
    "lstm": lambda: lmcase.model(dtype="float32", hidden=17), "lstm tied": lambda: lmcase.model(tying="tied"),
    "lstm tied+L": lambda: lmcase.model(tying="linear", hidden=17), "rnnlm": lambda: rnnlmcase.model(dtype="float32"),
    "rnnlm with document vectors": lambda: rnnlmcase.model(**rnnlmcase.DOC),
}  # fmt: skip


def save_in(model, folder, name="model.npz"):
    path = folder / name
    save(model, path)
    return path


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_input_and_output_vectors_are_read_from_a_model_file(make, tmp_path):
    model = make()
    path = save_in(model, tmp_path)
    for suffix, which in (("", "in"), (":in", "in"), (":out", "out")):
        vectors, expected = Vectors.read(f"{path}{suffix}"), model.vectors(which)
        assert vectors.words == expected.words
        np.testing.assert_array_equal(vectors.matrix, expected.matrix)
    if getattr(model.config, "tying", None) == "signs":
        refused(lambda: Vectors.read(f"{path}:sum"), f"{path}: its input and output vectors", f"; read {path}:in")
    elif not getattr(model.config, "hs", False) and getattr(model.config, "hidden", 0) != 17:
        matrix = Vectors.read(f"{path}:sum").matrix
        np.testing.assert_allclose(matrix, model.vectors("sum").matrix, rtol=1e-5, atol=1e-6)


def test_linear_tying_projects_the_input_vectors():
    model = word2vec(tying="linear")
    model.proj[:] = np.random.default_rng(2).normal(size=model.proj.shape)
    mapped = model.emb_in @ model.proj
    np.testing.assert_array_equal(model.vectors("sum").matrix, mapped + model.emb_in)
    np.testing.assert_array_equal(model.vectors("concat").matrix, np.hstack([mapped, model.emb_in]))
    np.testing.assert_array_equal(model.vectors("out").matrix, model.emb_in)


def test_missing_or_invalid_vectors_are_rejected(tmp_path):
    path = save_in(word2vec(hs=True, negative=0), tmp_path)
    assert Vectors.read(f"{path}:in").dim == 7
    refused(lambda: Vectors.read(f"{path}:out"), "model.npz: has no output vectors because it uses hierarchical", ":in")
    faulty = (
        dict(values=np.ones(6)), dict(word_out=np.ones((3, 2))), dict(emb_in=np.ones((3, 2), int)),
        dict(emb_in=np.ones((2, 2))),
    )  # fmt: skip
    for arrays in faulty:
        with open(path, "wb") as file:
            modelfile.save(file, "word2vec", {}, ["a", "b", "c"], arrays)
        for which in ("in", "out", "sum"):
            with pytest.raises(TiedtoolsError, match=f"^{path}: has no (in|out)put vectors for its 3 words"):
                Vectors.read(f"{path}:{which}")
    for proj in np.ones((2, 3)), np.ones((2, 2), int), np.ones(2):
        with open(path, "wb") as file:
            modelfile.save(file, "word2vec", {}, ["a", "b", "c"], dict(emb_in=np.ones((3, 2)), proj=proj))
        refused(lambda: Vectors.read(f"{path}:sum"), "cannot be added")
    refused(lambda: MODELS["lstm"]().vectors("sum"), "of different dimensions cannot be added")
    (tmp_path / "folder.npz").mkdir()
    for name, reason in ("none", "No such file"), ("folder", "Is a directory"):
        refused(lambda: Vectors.read(tmp_path / f"{name}.npz:out"), f"{name}.npz: cannot be read: {reason}")


def test_models_are_recognized_by_content(tmp_path):
    model = word2vec()
    for name in "model", "model.txt", "model.npy", "other:out", "a b\n:in:out", "%s{}", "-":
        path = str(save_in(model, tmp_path, name))
        for suffix, which in (("", "in"), (":in", "in"), (":out", "out"), (":sum", "sum")):
            np.testing.assert_array_equal(Vectors.read(path + suffix).matrix, model.vectors(which).matrix)
            assert files_read(path + suffix) == [path]
            assert Check(path + suffix).format == "model"
    model = rnnlmcase.model(dtype="float32")
    for binary in (False, True):
        path = tmp_path / "rnnlm"
        with open(path, "wb") as file:
            program.write(file, model, binary)
        for which in ("in", "out"):
            vectors, expected = Vectors.read(f"{path}:{which}"), model.vectors(which)
            assert vectors.words == expected.words
            np.testing.assert_allclose(vectors.matrix, expected.matrix, rtol=1e-6)


def test_names_of_files_and_suffixes(tmp_path, run):
    path = save_in(word2vec(), tmp_path, "m")
    other = Vectors(["a"], [[1, 2]])
    other.write(tmp_path / "v:in")
    assert Vectors.read(tmp_path / "v:in").words == ["a"]
    for name in ("m:in", "none.npz:in"):
        refused(lambda: other.write(tmp_path / name), "would be read as a model file")
    os.rename(tmp_path / "v:in", tmp_path / "m:out")
    assert Vectors.read(f"{path}:out").words == ["a"]
    refused(lambda: Vectors.read(tmp_path / "m:out:sum"), f"{tmp_path}/m:out: is not a model file, so :sum does not")
    (tmp_path / "v").write_text("version: 10 2\nb 3 4\n")
    assert Vectors.read(tmp_path / "v").words == ["version:", "b"]
    path = save_in(lmcase.model(), tmp_path)
    answers = [run("nn", f"{path}{suffix}", "w7", "-k", 3).stdout for suffix in ("", ":in", ":out")]
    assert answers[0] == answers[1] != answers[2] and answers[2].count("\n") == 3


def test_piped_and_compressed_models_are_rejected(run, tmp_path):
    path = save_in(word2vec(), tmp_path)
    (packed := tmp_path / "model.gz").write_bytes(gzip.compress(path.read_bytes()))
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
        refused(lambda: load_language_model(tmp_path / "pipe"), "pipe: a model cannot be read from a pipe; give the")
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
