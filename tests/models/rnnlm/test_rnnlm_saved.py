"""Test model files of the RNN language model, and its vectors."""

import numpy as np
import pytest
from filecase import MODEL_DAMAGES, rewrite, save
from rnnlmcase import CONFIGS, DOC, every_config, model, score, text

from tiedtools.base.errors import TiedtoolsError
from tiedtools.base.processor import available_cores
from tiedtools.files.modelfile import load_language_model
from tiedtools.models.rnnlm.model import Rnnlm
from tiedtools.vectors.vectors import Vectors


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.npz"


@every_config
def test_loading_restores_the_saved_model(options, path, dtype="float32"):
    m, ids = model(dtype=dtype, **options), text(100)
    m.learn(ids, 0.1)
    m.progress = {"iter": 3, "alpha": 0.05, "halving": 1, "llogp": -1234.5}
    save(m, path)
    assert type(load_language_model(path)) is Rnnlm
    loaded = Rnnlm.load(path, m.config.threads)
    assert loaded.config == m.config and loaded.vocab.words == m.vocab.words and loaded.progress == m.progress
    assert loaded.vocab.counts.tolist() == m.vocab.counts.tolist() and loaded.starts.tolist() == m.starts.tolist()
    assert loaded.params.values.tobytes() == m.params.values.tobytes()
    np.testing.assert_array_equal(score(loaded, ids), score(m, ids))
    np.testing.assert_array_equal(loaded.learn(ids, 0.1), m.learn(ids, 0.1))
    assert loaded.params.values.tobytes() == m.params.values.tobytes()


def test_custom_word_classes_are_saved(path):
    test_loading_restores_the_saved_model(DOC, path, "float64")
    m = model()
    odd = Rnnlm(m.vocab, m.config, starts=np.array([0, 5, 20, len(m.vocab)]))
    assert odd.params["class_hid"].shape == (5, 3)
    save(odd, path)
    assert Rnnlm.load(path).starts.tolist() == [0, 5, 20, len(m.vocab)]


def test_progress_defaults_to_empty(path):
    save(model(), path)
    assert Rnnlm.load(path).progress == {}


def test_loading_uses_the_thread_count_of_this_machine(path):
    save(model(threads=available_cores() + 1), path)
    assert Rnnlm.load(path).config.threads == available_cores() and Rnnlm.load(path, threads=2).config.threads == 2


DAMAGES = {
    **MODEL_DAMAGES,
    "array missing": lambda header, words, arrays: arrays.pop("hid"),
    "different hidden size": lambda header, words, arrays: header["config"].update(hidden=12),
    "different doc_dim": lambda header, words, arrays: header["config"].update(doc_dim=12),
    "class bounds beyond the vocabulary": lambda header, words, arrays: arrays["starts"].__setitem__(-1, 10**6),
    "decreasing class bounds": lambda header, words, arrays: arrays["starts"].__setitem__(1, 40),
    "non-integer class bounds": lambda header, words, arrays: arrays.update(starts=arrays["starts"] / 1),
    "progress of the wrong type": lambda header, words, arrays: header["config"].update(progress=dict(alpha=[1])),
    "negative epochs": lambda header, words, arrays: header["config"].update(progress=dict(iter=-1)),
    "negative position": lambda header, words, arrays: header["config"].update(progress=dict(position=-1)),
    "learning rate beyond float32": lambda header, words, arrays: header["config"].update(progress=dict(alpha=1e40)),
    "option beyond float32": lambda header, words, arrays: header["config"].update(doc_lr=1e39),
    "bptt too large": lambda header, words, arrays: header["config"].update(bptt=10**9),
    "options not a mapping": lambda header, words, arrays: header.update(config=[]),
    "different kind": lambda header, words, arrays: header.update(kind="word2vec"),
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_errors_name_the_corrupt_file(change, path):
    save(model(**DOC), path)
    rewrite(path, change)
    with pytest.raises(TiedtoolsError, match=f"^{path}: .*(corrupt|of kind)"):
        Rnnlm.load(path)


def test_vectors():
    m = model(**CONFIGS["document"])
    E, W = m.params["emb_in"], m.params["word_out"][:, : m.config.hidden]
    expected = {"in": E, "out": W, "sum": E + W, "concat": np.hstack([E, W])}
    for which, matrix in expected.items():
        vectors = m.vectors(which)
        assert vectors.words == m.vocab.words
        np.testing.assert_array_equal(vectors.matrix, matrix.astype(np.float32))


def test_vectors_are_read_from_a_model_file(path):
    m = model(dtype="float32", **CONFIGS["document"])
    save(m, path)
    np.testing.assert_array_equal(Vectors.read(str(path)).matrix, m.params["emb_in"].astype(np.float32))
