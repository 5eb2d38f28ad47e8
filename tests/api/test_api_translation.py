"""Test translation models from Python: training, files, translation, and scores."""

import numpy as np
import pytest
from refusals import refused

import tiedtools
from tiedtools.base.errors import Contradiction

SOURCE = [["a", "b"], ["b"], ["c", "a", "b"], ["c"]] * 6
TARGET = [["x", "y"], ["y"], ["z", "x", "y"], ["z"]] * 6
SETTINGS = dict(size=8, hidden=8, epochs=2, batch=4, threads=1, seed=2)


@pytest.fixture(scope="module")
def model():
    return tiedtools.Translator(tie="decoder", **SETTINGS).fit(SOURCE, TARGET)


def test_fit_and_vectors(model):
    assert [epoch["epoch"] for epoch in model.history] == [1, 2]
    assert set(model.vectors.words) == {"</s>", "<unk>", "x", "y", "z"}
    assert set(model.word_vectors("source").words) == {"</s>", "<unk>", "a", "b", "c"}
    assert repr(model) == f"Translator(tie='decoder', {', '.join(f'{k}={v}' for k, v in SETTINGS.items())})"


def test_validation():
    pytest.importorskip("sacrebleu")
    seen = []
    model = tiedtools.Translator(tie="all", **SETTINGS)
    model.fit(SOURCE, TARGET, SOURCE[:4], TARGET[:4], on_epoch=seen.append)
    assert [epoch["valid_bleu"] for epoch in model.history] == [epoch["valid_bleu"] for epoch in seen]


def test_translations_have_the_scores_of_given_ones(model):
    sentences = [["a", "b"], [], ["c", "nothing"]]
    found = list(model.translations(sentences, beam=3, align=True, max_length=5))
    assert [best.text for best, *_ in found] == list(model.translate(sentences, beam=3, max_length=5))
    assert found[1][0].text == "" and found[0][0].weights.shape == (len(found[0][0].target), 3)
    for normalize in False, True:
        best = found[0]
        scores = model.score([["a", "b"]] * len(best), [t.text.split() for t in best], normalize=normalize)
        lengths = [len(t.target) if normalize else 1 for t in best]
        np.testing.assert_allclose(scores, [t.logprob / n for t, n in zip(best, lengths)], atol=1e-4)
    assert len(list(model.translate(iter([["a"]] * 3), batch=1))) == 3


def test_save_and_load(model, tmp_path):
    model.save(tmp_path / "m.npz")
    again = tiedtools.load(tmp_path / "m.npz", threads=1)
    assert isinstance(again, tiedtools.Translator) and again.settings["tie"] == "decoder"
    assert list(again.translate(SOURCE[:3])) == list(model.translate(SOURCE[:3]))


def test_mistakes(model):
    refused(lambda: tiedtools.Translator(sise=3), "unknown setting `sise`", kind=Contradiction)
    refused(lambda: tiedtools.Translator(tie="both"), "`tie='both'` is not one of none", kind=Contradiction)
    refused(lambda: tiedtools.Translator(optimizer="asgd", sessions=2), "`optimizer=asgd` averages", kind=Contradiction)
    refused(lambda: model.translations(SOURCE, beam=0), "beam=0", kind=Contradiction)
    refused(lambda: model.score(SOURCE, TARGET[:1]), "target: has 1 lines, fewer than source")
    refused(lambda: tiedtools.Translator().translate(SOURCE), "call `fit` first")
    refused(lambda: tiedtools.LanguageModel().word_vectors("source"), "`which='source'`", kind=Contradiction)
