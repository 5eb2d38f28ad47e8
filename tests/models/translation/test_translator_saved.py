"""Test parameter counts of translation models, and their files."""

import io
import pickle

import numpy as np
import pytest
from nmtcase import V_SOURCE, V, batch, every_tying, model, values

from tiedtools.base.errors import Contradiction, TiedtoolsError
from tiedtools.files.modelfile import load_model
from tiedtools.kernels.base.arrays import imagining
from tiedtools.models.translation.config import TranslationConfig
from tiedtools.models.translation.model import Translator
from tiedtools.network.threads import idle
from tiedtools.text.vocab import Vocab

Counted = idle(Translator)


@pytest.mark.parametrize("tie, millions", [("none", 167.9), ("decoder", 121.9), ("all", 79.4)])
def test_parameters_of_press_and_wolf(tie, millions):
    """Their English-French models: 168M, 122M, and 80M in table 8."""
    source, target = (Vocab.made_up(V) for V in (87_000, 92_000))
    if tie == "all":
        source = target = Vocab.made_up(94_000)
    with imagining():
        m = Counted(source, target, TranslationConfig(size=500, hidden=1000, tie=tie))
    assert m.n_params == pytest.approx(millions * 1e6, abs=0.05e6)


@every_tying
def test_number_of_parameters(tie):
    m, n = 5, 3
    words = {"none": V_SOURCE + 2 * V, "decoder": V_SOURCE + V, "all": V}[tie] * m + V
    gru = lambda inputs: 3 * n * (inputs + n + 1)
    encoder, decoder = 2 * gru(m), gru(m) + gru(2 * n) + (2 * n + 1) * n
    attention = (2 * n) ** 2 + 2 * n + n * 2 * n + 2 * n
    readout = m * (n + m + 2 * n + 1)
    assert model(tie).n_params == words + encoder + decoder + attention + readout


def test_tied_embeddings_are_one_array():
    m = model("all")
    m.params["emb_source"][7, 2] = 5
    assert m.params["emb_in"][7, 2] == m.params["emb_out"][7, 2] == 5
    m = model("decoder")
    m.params["emb_in"][7, 2] = 5
    assert m.params["emb_out"][7, 2] == 5 != m.params["emb_source"][7, 2]


def same(m, other):
    assert other.codes == m.codes and other.source_vocab.words == m.source_vocab.words
    assert (other.source_vocab is other.target_vocab) == (m.source_vocab is m.target_vocab)
    given, theirs = values(m), values(other)
    for name, array in theirs.items():
        np.testing.assert_array_equal(array, given[name])
    for which in "source", "in", "out", "sum", "concat":
        np.testing.assert_array_equal(other.vectors(which).matrix, m.vectors(which).matrix)
    ids, targets, _ = batch(m)
    np.testing.assert_allclose(other.score(ids, targets), m.score(ids, targets), rtol=1e-12)


@every_tying
def test_saved_and_pickled(tie, tmp_path):
    m = model(tie)
    m.codes = "#version: 0.2\nt h\nth e</w>\n"
    file = io.BytesIO()
    m.save(file)
    path = tmp_path / "model.npz"
    path.write_bytes(file.getvalue())
    same(m, load_model(str(path), 2))
    same(m, pickle.loads(pickle.dumps(m)))


def test_vectors():
    m = model()
    assert m.vectors("source").words == m.source_vocab.words and m.vectors("in").words == m.target_vocab.words
    np.testing.assert_array_equal(m.vectors("source").matrix, m.params["emb_source"].astype(np.float32))
    both = m.params["emb_in"].astype(np.float32), m.params["emb_out"].astype(np.float32)
    np.testing.assert_allclose(m.vectors("sum").matrix, both[0] + both[1], atol=1e-6)


def test_three_way_tying_needs_one_vocabulary():
    with pytest.raises(Contradiction, match="one vocabulary"):
        Translator(Vocab.made_up(9), Vocab.made_up(9), TranslationConfig(tie="all"))


def test_damaged_files(tmp_path):
    m, path, file = model(), tmp_path / "model.npz", io.BytesIO()
    m.save(file)
    path.write_bytes(file.getvalue()[:-400])
    with pytest.raises(TiedtoolsError, match="corrupt"):
        load_model(str(path))
    m.source_vocab.words[3], file = "w4", io.BytesIO()
    m.save(file)
    path.write_bytes(file.getvalue())
    with pytest.raises(TiedtoolsError, match="comes twice"):
        load_model(str(path))


def test_memory_grows_with_what_is_trained():
    vocabs = Vocab.made_up(2000), Vocab.made_up(3000)
    need = lambda **settings: Translator.memory(vocabs, TranslationConfig(**settings))
    embeddings = 4 * 128 * (2000 + 2 * 3000)
    base = need(optimizer="sgd")
    assert base > 3 * embeddings
    assert need(optimizer="adam") > base + 2 * embeddings
    assert need(batch=64, optimizer="sgd") > base + 10**6 and need(max_length=200, optimizer="sgd") > base + 10**6
    assert need(tie="decoder", optimizer="sgd") < base - 3 * 4 * 128 * 3000 * 0.9
