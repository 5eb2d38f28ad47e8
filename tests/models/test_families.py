"""Test that a family of models is one row of the table: its models are then trained, loaded, scored, and listed."""

import pathlib
import re

import numpy as np
import pytest
from paths import ROOT
from toylm import ToyLM

import tiedtools as tt
from tiedtools.base.errors import TiedtoolsError
from tiedtools.files.families import FAMILIES, LANGUAGE, Family
from tiedtools.files.modelfile import load_language_model, load_model, load_translator
from tiedtools.models.lm.trainer import LstmTrainer

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


def test_a_toy_family_is_one_row(run, saved, tmp_path):
    (text := tmp_path / "text").write_text("the cat sat\n")
    for model in load_model(saved), load_language_model(saved), tt.load(saved).model:
        assert type(model) is ToyLM
    assert tt.load(saved).kind == "toy" and tt.load(saved).settings["batch"] == 2
    ppl = float(re.search(r" ppl= ([\d.]+) ", run("ppl", saved, text).stdout)[1])
    assert ppl == pytest.approx(tt.load(saved).perplexity([["the", "cat", "sat"]]), rel=1e-4)
    np.testing.assert_array_equal(tt.Vectors.read(saved).matrix, model.W)
    assert run("nn", saved, "cat").stdout.count("\n") == 4
    with pytest.raises(TiedtoolsError, match="toy.npz: is a language model, not a translation model; give a model of"):
        load_translator(saved)
    with pytest.raises(TiedtoolsError, match="has no source vectors; give a translation model, of `tiedtools nmt`"):
        tt.Vectors.read(f"{saved}:source")
    with pytest.raises(TiedtoolsError, match="is not one of lstm, lm, rnnlm, .*toy"):
        tt.LanguageModel("toys")


def test_without_its_row_it_is_unknown(saved, monkeypatch):
    monkeypatch.delitem(FAMILIES, "toy")
    with pytest.raises(TiedtoolsError, match="is a model of kind 'toy'"):
        tt.load(saved)


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
